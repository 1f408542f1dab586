package store_test

import (
	"context"
	"errors"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// A deployment of before there were narrow rows deletes and purges all the same.
func TestMissingNarrowTable(t *testing.T) {
	ctx := context.Background()
	s := openWithout(t, store.TableEventsNarrow)
	b := fixture{Store: s, layout: schema.Default()}
	if err := b.log().Append(ctx, []store.LogEvent{click("u", 1000), click("u", 2000), click("u", 3000)}); err != nil {
		t.Fatal(err)
	}
	if err := b.log().Delete(ctx, []store.LogEvent{click("u", 1000)}); err != nil {
		t.Error(err)
	}
	if n, err := s.PurgeLog(ctx, app, "u", affinity.Tombstone{DeletedUntil: 2000}); n != 1 || err != nil {
		t.Errorf("purged %d, %v; want one", n, err)
	}
	if got := entries(t, b.log(), schema.Wide); len(got) != 1 {
		t.Errorf("left %q", got)
	}
	narrow := s.Log(app, schema.Of(schema.Narrow))
	if err := narrow.Append(ctx, []store.LogEvent{click("u", 1000)}); err == nil {
		t.Error("an event is lost in silence")
	}
}

// openWithout opens a store of a deployment that lacks a table.
func openWithout(t *testing.T, table string) *store.Store {
	t.Helper()
	ctx := context.Background()
	opts := []option.ClientOption{option.WithEndpoint(storetest.Start(t)), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
	admin, err := bigtable.NewAdminClient(ctx, "p", "i", opts...)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(store.CreateTables(ctx, admin), admin.DeleteTable(ctx, table), admin.Close())
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(ctx, store.Config{Project: "p", Instance: "i", FilterColumns: 6}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
