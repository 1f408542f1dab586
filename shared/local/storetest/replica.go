package storetest

import (
	"context"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/store"
)

// servingProfile is the app profile through which the store of NewReplicated reads to
// answer requests.
const servingProfile = "serving"

// Replicated is a Bigtable with a replica.
type Replicated struct {
	*emulator.Replicated
	read counter
}

// PrimaryCounts returns what the cluster that is written has answered since the start.
func (r *Replicated) PrimaryCounts() Counts { return r.read.counts() }

// NewReplicated is NewWithClient on a Bigtable with a replica, which the store reads
// through servingProfile. What the store writes reaches the replica when the test says
// so. The client reads the cluster that is written.
func NewReplicated(tb testing.TB, dial ...grpc.DialOption) (*Replicated, *store.Store, *bigtable.Client) {
	tb.Helper()
	r := &Replicated{}
	server, err := emulator.StartReplicated(servingProfile, emulator.Around(nil, r.read.stream))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	r.Replicated = server
	s, client := OpenServing(tb, server.Addr, newInstance(), dial...)
	return r, s, client
}

// OpenAnalysis opens a store that reads through the app profile servingProfile for analysis,
// and not to answer requests.
func OpenAnalysis(tb testing.TB, addr string) *store.Store {
	tb.Helper()
	s, _ := open(tb, addr, store.Config{Instance: newInstance(), AnalysisProfile: servingProfile}, nil)
	return s
}

// OpenServing is OpenInstance of a store that reads through servingProfile to answer
// requests.
func OpenServing(tb testing.TB, addr, instance string, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
	tb.Helper()
	return open(tb, addr, store.Config{Instance: instance, ServingProfile: servingProfile}, dial)
}

// Serving reports whether the context of a request to Bigtable, in an interceptor, says
// that it goes through servingProfile.
func Serving(ctx context.Context) bool {
	headers, _ := metadata.FromOutgoingContext(ctx)
	return strings.Contains(strings.Join(headers["x-goog-request-params"], "&"), "app_profile_id="+servingProfile)
}
