package emulator_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

// A row beyond gRPC's own limit of 4 MB goes in and out by both ways to reach
// the server.
func TestBigtable(t *testing.T) {
	server, err := emulator.StartBigtable(storetest.Disk(t))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := server.Conn()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	ways := map[string][]option.ClientOption{
		"connection": {option.WithGRPCConn(conn)},
		"address": {
			option.WithEndpoint(server.Addr), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		},
	}
	admin, err := bigtable.NewAdminClient(ctx, "p", "i", ways["connection"]...)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateTable(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateColumnFamily(ctx, "t", "f"); err != nil {
		t.Fatal(err)
	}
	for name, opts := range ways {
		t.Run(name, func(t *testing.T) {
			config := bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}
			client, err := bigtable.NewClientWithConfig(ctx, "p", "i", config, opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			value := bytes.Repeat([]byte(name), 1<<20)
			write := bigtable.NewMutation()
			write.Set("f", "q", bigtable.Now(), value)
			if err := client.Open("t").Apply(ctx, name, write); err != nil {
				t.Fatal(err)
			}
			row, err := client.Open("t").ReadRow(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if cells := row["f"]; len(cells) != 1 || !bytes.Equal(cells[0].Value, value) {
				t.Errorf("read %d cells, want the one written", len(cells))
			}
		})
	}
}

// startBttest starts a server for the test, and returns clients of it.
func startBttest(t *testing.T) (context.Context, *bigtable.AdminClient, *bigtable.Client) {
	t.Helper()
	server, err := emulator.StartBttest()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	conn, err := server.Conn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	admin, err := bigtable.NewAdminClient(ctx, "p", "i", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	return ctx, admin, client
}
