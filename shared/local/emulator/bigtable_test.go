package emulator_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/local/emulator"
)

// A row beyond gRPC's own limit of 4 MB goes in and out by both ways to reach
// the server.
func TestBigtable(t *testing.T) {
	server, err := emulator.StartBigtable()
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

// Of a family that keeps one version, superseded cells go with the next write,
// and the newest cell of a column always stays.
func TestBigtableKeepsOneVersion(t *testing.T) {
	ctx, admin, client := startBigtable(t)
	err := errors.Join(admin.CreateTable(ctx, "t"), admin.CreateColumnFamily(ctx, "t", "all"),
		admin.CreateColumnFamilyWithConfig(ctx, "t", "one", bigtable.Family{GCPolicy: bigtable.MaxVersionsPolicy(1)}))
	if err != nil {
		t.Fatal(err)
	}
	table := client.Open("t")
	set := func(family string, at bigtable.Timestamp, value string) *bigtable.Mutation {
		m := bigtable.NewMutation()
		m.Set(family, "q", at, []byte(value))
		return m
	}
	expect := func(step, family string, want ...string) {
		t.Helper()
		row, err := table.ReadRow(ctx, "r")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, cell := range row[family] {
			got = append(got, string(cell.Value))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: family %q holds %q, want %q", step, family, got, want)
		}
	}
	apply := func(m *bigtable.Mutation) {
		t.Helper()
		if err := table.Apply(ctx, "r", m); err != nil {
			t.Fatal(err)
		}
	}

	for i, value := range []string{"a", "b"} {
		apply(set("all", bigtable.Timestamp(1000*(i+1)), value))
		apply(set("one", bigtable.Timestamp(1000*(i+1)), value))
	}
	expect("two writes", "all", "b", "a")
	expect("two writes", "one", "b")

	if errs, err := table.ApplyBulk(ctx, []string{"r"}, []*bigtable.Mutation{set("one", 3000, "c")}); errors.Join(append(errs, err)...) != nil {
		t.Fatal(errs, err)
	}
	expect("a bulk write", "one", "c")

	apply(set("one", 1000, "late"))
	expect("a late write", "one", "c", "late")

	newer := bigtable.NewMutation()
	newer.Set("one", "q", bigtable.ServerTime, []byte("d"))
	apply(bigtable.NewCondMutation(bigtable.PassAllFilter(), newer, nil))
	expect("a conditional write at the server's time", "one", "d", "c", "late")

	add := bigtable.NewReadModifyWrite()
	add.AppendValue("one", "q", []byte("e"))
	row, err := table.ApplyReadModifyWrite(ctx, "r", add)
	if err != nil || string(row["one"][0].Value) != "de" {
		t.Fatalf("%v, %v; want de", row, err)
	}
	expect("a read-modify-write", "one", "de")

	replace := bigtable.NewMutation()
	replace.DeleteCellsInColumn("one", "q")
	replace.Set("one", "q", bigtable.ServerTime, []byte("f"))
	apply(replace)
	expect("a deletion and a write in one mutation", "one", "f")
}

// startBigtable starts a server for the test, and returns clients of it.
func startBigtable(t *testing.T) (context.Context, *bigtable.AdminClient, *bigtable.Client) {
	t.Helper()
	server, err := emulator.StartBigtable()
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
