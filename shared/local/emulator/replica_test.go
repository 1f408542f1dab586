package emulator_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
)

// clusters are the two ways into a replicated Bigtable with a table.
type clusters struct {
	t                *testing.T
	server           *emulator.Replicated
	admin            *bigtable.AdminClient
	primary, replica *bigtable.Table
}

func startReplicated(t *testing.T) *clusters {
	t.Helper()
	server, err := emulator.StartReplicated("serving")
	must.Succeed(t, err)
	t.Cleanup(server.Close)
	conn, err := server.Conn()
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	open := func(profile string) *bigtable.Table {
		client, err := bigtable.NewClientWithConfig(t.Context(), "p", "i",
			bigtable.ClientConfig{AppProfile: profile, MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
		must.Succeed(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return client.Open("t")
	}
	admin, err := bigtable.NewAdminClient(t.Context(), "p", "i", option.WithGRPCConn(conn))
	must.Succeed(t, err)
	c := &clusters{t, server, admin, open("writing"), open("serving")}
	must.Succeed(t, errors.Join(admin.CreateTable(t.Context(), "t"), admin.CreateColumnFamily(t.Context(), "t", "f")))
	return c
}

// expect checks the cells of a column in one cluster, newest first.
func (c *clusters) expect(step string, in *bigtable.Table, key string, want ...string) {
	c.t.Helper()
	row, err := in.ReadRow(c.t.Context(), key)
	must.Succeed(c.t, err)
	var got []string
	for _, cell := range row["f"] {
		got = append(got, string(cell.Value))
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("%s: row %q has %q, want %q", step, key, got, want)
	}
}

func setAt(at bigtable.Timestamp, value string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set("f", "q", at, []byte(value))
	return m
}

// Each kind of write reaches the replica when the test lets it, one after the other, with
// the times that the primary gave its cells.
func TestReplicaLags(t *testing.T) {
	c := startReplicated(t)
	ctx := t.Context()
	row := emulator.Row{Table: "projects/p/instances/i/tables/t", Key: "r"}
	gone := bigtable.NewMutation()
	gone.DeleteRow()
	join := bigtable.NewReadModifyWrite()
	join.AppendValue("f", "q", []byte("+"))
	writes := []struct {
		name string
		do   func(context.Context) error
		want []string
	}{
		{"a write", func(ctx context.Context) error { return c.primary.Apply(ctx, "r", setAt(1000, "a")) }, []string{"a"}},
		{"a write of many rows", func(ctx context.Context) error {
			errs, err := c.primary.ApplyBulk(ctx, []string{"r", "other"}, []*bigtable.Mutation{setAt(2000, "b"), setAt(1000, "o")})
			return errors.Join(append(errs, err)...)
		}, []string{"b", "a"}},
		{"a conditional write", func(ctx context.Context) error {
			return c.primary.Apply(ctx, "r", bigtable.NewCondMutation(bigtable.ValueFilter("b"), setAt(3000, "c"), nil))
		}, []string{"c", "b", "a"}},
		{"a read-modify-write", func(ctx context.Context) error {
			_, err := c.primary.ApplyReadModifyWrite(ctx, "r", join)
			return err
		}, []string{"c+", "c", "b", "a"}},
		{"a write at the server's time", func(ctx context.Context) error {
			for before := time.Now().UnixMilli(); time.Now().UnixMilli() == before; { // a write of the same millisecond replaces
				runtime.Gosched()
			}
			return c.primary.Apply(ctx, "r", setAt(bigtable.ServerTime, "d"))
		}, []string{"d", "c+", "c", "b", "a"}},
		{"a deletion", func(ctx context.Context) error { return c.primary.Apply(ctx, "r", gone) }, nil},
	}
	for _, w := range writes {
		if err := w.do(ctx); err != nil {
			t.Fatal(w.name, err)
		}
		c.expect(w.name, c.primary, "r", w.want...)
		c.expect(w.name+", not replicated", c.replica, "r")
	}
	for _, w := range writes {
		if !slices.Contains(c.server.Waiting(), row) {
			t.Fatalf("%s does not wait", w.name)
		}
		must.Succeed(t, c.server.Replicate(ctx, row))
		c.expect(w.name+", replicated", c.replica, "r", w.want...)
	}
	c.expect("the other row", c.replica, "other")
	must.Succeed(t, errors.Join(c.server.Replicate(ctx, row), c.server.CatchUp(ctx)))
	c.expect("caught up", c.replica, "other", "o")
	if w := c.server.Waiting(); len(w) > 0 {
		t.Errorf("%v still wait", w)
	}
}

// The replica's cells have the times of the primary's, also those that the server set.
func TestReplicaHasTimes(t *testing.T) {
	c := startReplicated(t)
	must.Succeed(t, errors.Join(c.primary.Apply(t.Context(), "r", setAt(bigtable.ServerTime, "a")), c.server.CatchUp(t.Context())))
	var times [2]bigtable.Timestamp
	for i, table := range []*bigtable.Table{c.primary, c.replica} {
		row, err := table.ReadRow(t.Context(), "r")
		must.Succeed(t, err)
		times[i] = row["f"][0].Timestamp
	}
	if times[0] != times[1] {
		t.Errorf("times %v differ", times)
	}
}

// Rows that an administrator drops leave both clusters, and no change brings them back.
func TestReplicaDropsRows(t *testing.T) {
	c := startReplicated(t)
	must.Succeed(t, c.primary.Apply(t.Context(), "r", setAt(1000, "a")))
	must.Succeed(t, errors.Join(c.admin.DropRowRange(t.Context(), "t", "r"), c.server.CatchUp(t.Context())))
	c.expect("dropped", c.primary, "r")
	c.expect("dropped", c.replica, "r")
}
