package profile_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/store/storetest"
)

// serverRows counts, at the server, the rows that it sends and those that it writes, by
// table: "users read", "users written".
type serverRows struct {
	mu sync.Mutex
	n  map[string]int
}

// open starts a server that counts.
func (c *serverRows) open(tb testing.TB, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
	server, err := emulator.StartBigtable(grpc.ChainStreamInterceptor(c.stream), grpc.ChainUnaryInterceptor(c.unary))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(server.Close)
	return storetest.OpenAt(tb, server.Addr, dial...)
}

func (c *serverRows) add(table, what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[table[strings.LastIndexByte(table, '/')+1:]+" "+what] += n
}

// of returns the counts of one call.
func (c *serverRows) of(t *testing.T, call func() error) map[string]int {
	t.Helper()
	c.mu.Lock()
	c.n = map[string]int{}
	c.mu.Unlock()
	if err := call(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *serverRows) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	switch r := req.(type) {
	case *bigtablepb.MutateRowRequest:
		c.add(r.TableName, "written", 1)
	case *bigtablepb.CheckAndMutateRowRequest:
		c.add(r.TableName, "written", 1)
	case *bigtablepb.ReadModifyWriteRowRequest:
		c.add(r.TableName, "written", 1)
	}
	return handle(ctx, req)
}

func (c *serverRows) stream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(srv, &countingStream{ServerStream: s, rows: c})
}

type countingStream struct {
	grpc.ServerStream
	rows  *serverRows
	table string
}

func (s *countingStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	switch r := m.(type) {
	case *bigtablepb.ReadRowsRequest:
		s.table = r.TableName
	case *bigtablepb.MutateRowsRequest:
		s.rows.add(r.TableName, "written", len(r.Entries))
	}
	return err
}

func (s *countingStream) SendMsg(m any) error {
	if r, ok := m.(*bigtablepb.ReadRowsResponse); ok {
		for _, chunk := range r.Chunks {
			if chunk.GetCommitRow() {
				s.rows.add(s.table, "read", 1)
			}
		}
	}
	return s.ServerStream.SendMsg(m)
}

// A recompute of users with seven events each reads one row of each user and writes one.
// Before a fold it reads their events, too.
func TestSmallUserIsOneRow(t *testing.T) {
	counted := &serverRows{n: map[string]int{}}
	b := newFixtureOn(t, counted.open, 90, plain)
	const users, events = 40, 7
	var all []store.LogEvent
	for i := range users * events {
		all = append(all, bought(fmt.Sprintf("u%02d", i/events), b.clock-hour*int64(1+i%events)))
	}
	if _, err := b.eng.Import(ctx, b.app(), all); err != nil {
		t.Fatal(err)
	}
	recompute := func(o profile.RecomputeOptions) map[string]int {
		return counted.of(t, func() error { return b.recompute(o) })
	}
	round := profile.RecomputeOptions{OnlyStale: true, Maintain: true}
	for _, c := range []struct {
		name string
		o    profile.RecomputeOptions
		want map[string]int
	}{
		{"before a fold", profile.RecomputeOptions{}, map[string]int{"users read": users, "users written": users, "events read": users * events}},
		// The fold draws a ticket, reads the events again, and commits.
		{"a round that folds", round, map[string]int{"users read": users, "users written": 2 * users, "events read": 2 * users * events}},
		{"a recompute", profile.RecomputeOptions{}, map[string]int{"users read": users, "users written": users}},
		{"without writes", profile.RecomputeOptions{Discard: true}, map[string]int{"users read": users}},
		{"an idle round", round, map[string]int{"users read": users}},
	} {
		got := recompute(c.o)
		for of, n := range c.want {
			if got[of] != n {
				t.Errorf("%s: %d %s, want %d", c.name, got[of], of, n)
			}
		}
		for of, n := range got {
			if _, ok := c.want[of]; !ok {
				t.Errorf("%s: %d %s, want none", c.name, n, of)
			}
		}
	}
}
