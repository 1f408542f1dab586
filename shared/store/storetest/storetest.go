// Package storetest gives tests a store of their own: the real client on an
// in-process Bigtable, which holds the data in memory until the test ends.
package storetest

import (
	"context"
	"errors"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/emulator"
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
	server, err := emulator.StartBigtable()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	ctx := context.Background()
	opts := []option.ClientOption{option.WithEndpoint(server.Addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
	admin, err := bigtable.NewAdminClient(ctx, "test", "test", opts...)
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(store.CreateTables(ctx, admin, true), admin.Close()); err != nil {
		tb.Fatal(err)
	}
	client, err := bigtable.NewClientWithConfig(ctx, "test", "test", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	for _, d := range dial {
		opts = append(opts, option.WithGRPCDialOption(d))
	}
	s, err := store.Open(ctx, store.Config{Project: "test", Instance: "test", FilterColumns: FilterColumns, SelfCollect: true}, opts...)
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
