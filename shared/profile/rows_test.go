package profile_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// serverRows counts, at the server, the rows that it sends and those that it writes, by
// table: "users read", "users written". It also counts "inline blocks read".
type serverRows struct {
	mu sync.Mutex
	n  map[string]int
}

// open starts a server that counts.
func (c *serverRows) open(tb testing.TB, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
	server, err := emulator.StartBttest(emulator.Around(c.unary, c.stream))
	must.Succeed(tb, err)
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
	must.Succeed(t, call())
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
			if chunk.GetFamilyName().GetValue() == "h" {
				s.rows.add("inline blocks", "read", 1)
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
	b.importEvents(all...)
	expect := func(name string, o profile.RecomputeOptions, want map[string]int) {
		t.Helper()
		got := counted.of(t, func() error { return b.recompute(o) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	round := profile.RecomputeOptions{OnlyStale: true, Maintain: true}
	expect("before a fold", profile.RecomputeOptions{}, map[string]int{"users read": users, "users written": users, "events read": users * events})
	// The fold draws a ticket, reads the events again, and commits.
	expect("a round that folds", round, map[string]int{"users read": users, "users written": 2 * users, "events read": 2 * users * events})
	expect("a recompute", profile.RecomputeOptions{}, map[string]int{"users read": users, "inline blocks read": users, "users written": users})
	expect("without writes", profile.RecomputeOptions{Discard: true}, map[string]int{"users read": users, "inline blocks read": users})
	expect("an idle round", round, map[string]int{"users read": users})

	// Of the users who are not stale a round reads no inline block.
	b.importEvents(bought("u07", b.clock))
	expect("a round with one stale user", profile.RecomputeOptions{OnlyStale: true},
		map[string]int{"users read": users + 1, "inline blocks read": 1, "events read": 1, "users written": 1})
}
