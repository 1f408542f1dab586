package storetest

import (
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/store"
)

// ServingProfile is the app profile through which the store of NewReplicated reads to
// answer requests.
const ServingProfile = "serving"

// NewReplicated is NewWithClient on a Bigtable with a replica, which the store reads
// through ServingProfile. What the store writes reaches the replica when the test says
// so. The client reads the cluster that is written.
func NewReplicated(tb testing.TB, dial ...grpc.DialOption) (*emulator.Replicated, *store.Store, *bigtable.Client) {
	tb.Helper()
	server, err := emulator.StartReplicated(ServingProfile)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	s, client := open(tb, server.Addr, store.Config{Instance: newInstance(), ServingProfile: ServingProfile}, dial)
	return server, s, client
}
