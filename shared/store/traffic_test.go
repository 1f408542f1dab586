package store_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// traffic measures what goes to Bigtable and what comes from it.
type traffic struct {
	mu       sync.Mutex
	requests int
	largest  int // request, in bytes
	received int
}

// ofRows marks a context as that of a request about rows: others the client makes
// by itself, whenever it likes.
type ofRows struct{}

func (tr *traffic) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, ofRows{}, strings.Contains(info.FullMethodName, "Row"))
}

func (tr *traffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (tr *traffic) HandleConn(context.Context, stats.ConnStats)                       {}

func (tr *traffic) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if ctx.Value(ofRows{}) != true {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	switch s := s.(type) {
	case *stats.OutPayload:
		tr.requests++
		tr.largest = max(tr.largest, s.Length)
	case *stats.InPayload:
		tr.received += s.Length
	}
}

// of measures one call.
func (tr *traffic) of(t *testing.T, call func() error) (requests, largest, received int) {
	t.Helper()
	tr.mu.Lock()
	tr.requests, tr.largest, tr.received = 0, 0, 0
	tr.mu.Unlock()
	must.Succeed(t, call())
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.requests, tr.largest, tr.received
}

func TestReadsSendOnlyWhatIsAskedFor(t *testing.T) {
	tr := &traffic{}
	s, ctx := storetest.New(t, storetest.Connected{}, grpc.WithStatsHandler(tr)), context.Background()
	const profile, summary, session, counted, block, inline, original = 1_000_000, 100_000, 200_000, 20_000, 500_000, 70_000, 50_000
	row, err := s.Users.TakeTicket(ctx, app, "u")
	must.Succeed(t, err)
	big := click("u", 1000, affinity.Count{Facet: "color", Value: strings.Repeat("c", 10_000), N: 1}, affinity.Count{Facet: "size", Value: strings.Repeat("s", 20_000), N: 1})
	big.Original = make([]byte, original)
	for _, write := range []func() error{
		func() error {
			return s.Users.WriteProfiles(ctx, app, []store.ProfileWrite{
				{User: "u", Row: row, Value: make([]byte, profile), Summary: make([]byte, summary), Session: make([]byte, session), Counted: make([]byte, counted)}})
		},
		func() error {
			return s.Histories.WriteBlocks(ctx, app, "u", []store.BlockWrite{{Value: make([]byte, block)}, {ID: blockOf(1, 1), Value: make([]byte, block)}})
		},
		func() error { return s.Events.Log(app, schema.Default()).Append(ctx, []store.LogEvent{big}) },
		func() error {
			_, err := s.Users.CommitFold(ctx, app, "u", row.Ticket, manifest(1), store.SetInline(make([]byte, inline)))
			return err
		},
	} {
		must.Succeed(t, write())
	}
	scan := func(parts store.UserParts) func() error {
		return func() error {
			return s.Users.ScanUsers(ctx, app, "", "", 0, parts, func(string, store.User) error { return nil })
		}
	}
	ranges, c := []store.UserRange{{User: "u", To: history.End}}, affinity.Compile(clicks)
	ignore := func(string, store.LogRow) error { return nil }
	for _, call := range []struct {
		name string
		want int // bytes, apart from some hundred of keys and columns
		do   func() error
	}{
		{"ReadUser", profile, func() error { _, err := s.Users.ReadUser(ctx, app, "u"); return err }},
		{"ReadServing", profile, func() error { _, err := s.Users.ReadServing(ctx, app, "u", store.UserProfile); return err }},
		{"ReadServing, session", profile + session, func() error { _, err := s.Users.ReadServing(ctx, app, "u", store.UserSession); return err }},
		{"ReadBases", profile + session + counted, func() error { _, err := s.Users.ReadBases(ctx, app, []string{"u", "v"}, 1<<20); return err }},
		{"ReadUsers", profile, func() error { _, err := s.Users.ReadUsers(ctx, app, []string{"u", "v"}); return err }},
		{"ScanUsers, profile", profile, scan(store.UserProfile)},
		{"ScanUsers, summary", summary, scan(store.UserSummary)},
		{"ScanUsers, state", 0, scan(store.UserState)},
		{"ScanUsers, history", inline, scan(store.UserHistory)},
		{"ReadInline", inline, func() error {
			return s.Users.ReadInline(ctx, app, []string{"u", "v"}, func(string, []byte) error { return nil })
		}},
		{"TakeTicket", 0, func() error { _, err := s.Users.TakeTicket(ctx, app, "u"); return err }},
		{"ScanUserKeys", 0, func() error { return s.Users.ScanUserKeys(ctx, app, "", "", func(string) error { return nil }) }},
		{"ReadBlocks", block, func() error {
			return s.Histories.ReadBlocks(ctx, app, []store.BlockName{{User: "u", ID: blockOf(1, 1)}}, func(store.BlockName, []byte) error { return nil })
		}},
		{"ScanBlockKeys", 0, func() error {
			return s.Histories.ScanBlockKeys(ctx, app, "", "", func(store.BlockName) error { return nil })
		}},
		{"ListBlocks", 0, func() error { _, err := s.Histories.ListBlocks(ctx, app, "u"); return err }},
		{"ReadLog", 30_000, func() error { return s.Events.Log(app, schema.Default()).Read(ctx, ranges, ignore) }},
		{"ReadLogFor", 10_000, func() error { return s.Events.Log(app, schema.Default()).ReadFor(ctx, ranges, c, ignore) }},
		{"ReadOriginals", 30_000 + original, func() error {
			return s.Events.Log(app, schema.Default()).ReadOriginals(ctx, ranges, func(string, store.LogRow, []byte) error { return nil })
		}},
	} {
		requests, _, received := tr.of(t, call.do)
		if received < call.want || received > call.want+1000 || requests != 1 {
			t.Errorf("%s: received %d bytes in %d requests, want %d in one", call.name, received, requests, call.want)
		}
	}
}

func TestSampleIsNotAScan(t *testing.T) {
	tr := &traffic{}
	s, ctx := storetest.New(t, storetest.Connected{}, grpc.WithStatsHandler(tr)), context.Background()
	var writes []store.ProfileWrite
	for i := range 2000 {
		writes = append(writes, store.ProfileWrite{User: fmt.Sprint("user", i), Row: store.User{Ticket: 1}, Value: make([]byte, 1000), Version: 1})
	}
	must.Succeed(t, s.Users.WriteProfiles(ctx, app, writes))
	_, _, received := tr.of(t, func() error {
		_, err := s.Users.SampleUsers(ctx, app, 5, 20, rand.New(rand.NewPCG(1, 2)))
		return err
	})
	if received > 10_000 { // 20 rows, and some 20 places where the table is cut
		t.Errorf("received %d bytes", received)
	}
}

// Bigtable takes requests of 512 KB that name rows. Writes may be larger, but
// what is in one of them is in memory several times.
func TestRequestsStayWithinLimits(t *testing.T) {
	tr := &traffic{}
	s, ctx := storetest.New(t, storetest.Connected{}, grpc.WithStatsHandler(tr)), context.Background()
	var blocks []store.BlockWrite
	for n := range 10 {
		blocks = append(blocks, store.BlockWrite{ID: blockOf(1, n), Value: bytes.Repeat([]byte{1}, 1<<20)})
	}
	var users []string
	var names []store.BlockName
	var ranges []store.UserRange
	for i := range 6000 {
		user := fmt.Sprintf("user-%s-%d", strings.Repeat("x", 80), i)
		users = append(users, user)
		names = append(names, store.BlockName{User: user})
		ranges = append(ranges, store.UserRange{User: user, To: history.End})
	}
	for _, call := range []struct {
		name  string
		limit int
		do    func() error
	}{
		{"WriteBlocks", 6 << 20, func() error { return s.Histories.WriteBlocks(ctx, app, "u", blocks) }},
		{"ReadBlocks", 512 << 10, func() error {
			return s.Histories.ReadBlocks(ctx, app, names, func(store.BlockName, []byte) error { return nil })
		}},
		{"ReadUsers", 512 << 10, func() error { _, err := s.Users.ReadUsers(ctx, app, users); return err }},
		{"ReadLog", 512 << 10, func() error {
			return s.Events.Log(app, schema.Default()).Read(ctx, ranges, func(string, store.LogRow) error { return nil })
		}},
	} {
		requests, largest, _ := tr.of(t, call.do)
		if largest > call.limit || requests < 2 {
			t.Errorf("%s: %d requests, the largest of %d bytes; want several, of at most %d", call.name, requests, largest, call.limit)
		}
	}
	for _, empty := range []func() error{
		func() error { return s.Histories.ReadBlocks(ctx, app, nil, nil) },
		func() error { return s.Histories.WriteBlocks(ctx, app, "u", nil) },
		func() error { return s.Histories.DeleteBlocks(ctx, app, "u", nil) },
		func() error {
			return s.Events.Log(app, schema.Default()).Read(ctx, []store.UserRange{{User: "u"}}, nil)
		},
		func() error { return s.Histories.ScanBlocks(ctx, app, "v", "u", nil) },
		func() error { return s.Users.ScanUserKeys(ctx, app, "u", "u", nil) },
	} {
		if requests, _, _ := tr.of(t, empty); requests != 0 {
			t.Errorf("%d requests for nothing", requests)
		}
	}
}
