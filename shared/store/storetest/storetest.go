// Package storetest gives tests a store of their own: the real client on an
// in-process Bigtable, which holds the data in memory until the test ends, or on
// an emulator that runs already.
package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/store"
)

// FilterColumns suits the in-process Bigtable, which copies a row for every
// column that it is asked to sift.
const FilterColumns = 6

// New starts a Bigtable, makes the tables and opens a store on them. dial adds
// to how the client connects, to make it fail where a test wants it to.
func New(tb testing.TB, dial ...grpc.DialOption) *store.Store {
	tb.Helper()
	s, _ := NewWithClient(tb, dial...)
	return s
}

// NewWithClient does what New does, and gives a client of the same Bigtable to
// put there what no version of the store writes.
func NewWithClient(tb testing.TB, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
	tb.Helper()
	return open(tb, Start(tb), true, dial)
}

// Start starts a Bigtable without tables and returns its address, for OpenAt.
func Start(tb testing.TB) string {
	tb.Helper()
	server, err := emulator.StartBigtable()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	return server.Addr
}

// OpenAt opens a store as it is opened on Bigtable itself, where the server drops
// superseded cells, on an emulator at an address: in an instance of its own, so
// that tests may share the emulator.
func OpenAt(tb testing.TB, addr string, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
	tb.Helper()
	return open(tb, addr, false, dial)
}

func open(tb testing.TB, addr string, selfCollect bool, dial []grpc.DialOption) (*store.Store, *bigtable.Client) {
	tb.Helper()
	const project = "test"
	ctx, instance := context.Background(), "test-"+strings.ToLower(rand.Text())
	opts := []option.ClientOption{option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
	admin, err := bigtable.NewAdminClient(ctx, project, instance, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(store.CreateTables(ctx, admin, selfCollect), admin.Close()); err != nil {
		tb.Fatal(err)
	}
	client, err := bigtable.NewClientWithConfig(ctx, project, instance, bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	for _, d := range dial {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	s, err := store.Open(ctx, store.Config{Project: project, Instance: instance, FilterColumns: FilterColumns, SelfCollect: selfCollect}, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(client.Close(), s.Close()); err != nil {
			tb.Error(err)
		}
	})
	return s, client
}
