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
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

// A row beyond gRPC's own limit of 4 MB goes in and out by both ways to reach
// the server.
func TestBigtable(t *testing.T) {
	server, err := emulator.StartBigtable(storetest.Disk(t))
	must.Succeed(t, err)
	defer server.Close()
	conn, err := server.Conn()
	must.Succeed(t, err)
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
	must.Succeed(t, err)
	must.Succeed(t, admin.CreateTable(ctx, "t"))
	must.Succeed(t, admin.CreateColumnFamily(ctx, "t", "f"))
	for name, opts := range ways {
		t.Run(name, func(t *testing.T) {
			config := bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}
			client, err := bigtable.NewClientWithConfig(ctx, "p", "i", config, opts...)
			must.Succeed(t, err)
			defer client.Close()
			value := bytes.Repeat([]byte(name), 1<<20)
			write := bigtable.NewMutation()
			write.Set("f", "q", bigtable.Now(), value)
			must.Succeed(t, client.Open("t").Apply(ctx, name, write))
			row, err := client.Open("t").ReadRow(ctx, name)
			must.Succeed(t, err)
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
	must.Succeed(t, err)
	t.Cleanup(server.Close)
	conn, err := server.Conn()
	must.Succeed(t, err)
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	admin, err := bigtable.NewAdminClient(ctx, "p", "i", option.WithGRPCConn(conn))
	must.Succeed(t, err)
	client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	must.Succeed(t, err)
	return ctx, admin, client
}
