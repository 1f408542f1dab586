package usage_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/local/must"
)

// table is a usage.Table in memory. It fails as fail says: before it has written,
// or after.
type table struct {
	mu      sync.Mutex
	fail    string // "", "before" or "after"
	counts  map[string]map[usage.Day]usage.Counts
	names   map[string]usage.Names // of an app's day
	batches map[string]int64       // of a process in a row
	users   map[string][]usage.User
	keys    map[string]map[string]usage.Day
	deleted map[string]time.Time
	writes  int
}

func newTable() *table {
	return &table{
		counts: map[string]map[usage.Day]usage.Counts{}, names: map[string]usage.Names{}, batches: map[string]int64{},
		users: map[string][]usage.User{}, keys: map[string]map[string]usage.Day{},
	}
}

var errTable = errors.New("the table fails")

func (tb *table) write(do func()) error {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.writes++
	if tb.fail == "before" {
		return errTable
	}
	do()
	if tb.fail == "after" {
		return errTable
	}
	return nil
}

func (tb *table) AddUsage(_ context.Context, b usage.Batch) error {
	return tb.write(func() {
		key := b.App + b.Day.String() + b.Process
		if b.Repeated && tb.batches[key] >= b.Number {
			return
		}
		tb.batches[key]++
		if tb.counts[b.App] == nil {
			tb.counts[b.App] = map[usage.Day]usage.Counts{}
		}
		counts := tb.counts[b.App][b.Day]
		counts.Add(b.Counts)
		tb.counts[b.App][b.Day] = counts
		names := tb.names[b.App+b.Day.String()]
		names.Add(b.Names)
		if len(names.Events) > 0 || names.Left > 0 {
			tb.names[b.App+b.Day.String()] = names
		}
	})
}

func (tb *table) KnownNames(_ context.Context, app string, day usage.Day, _ int) (usage.Names, error) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	known := usage.Names{}
	known.Add(tb.names[app+day.String()])
	return known, nil
}

func (tb *table) PutHotUsers(_ context.Context, app string, _ usage.Day, _ int, _ string, users []usage.User) error {
	return tb.write(func() { tb.users[app] = users })
}

func (tb *table) Deleted(context.Context, string, []usage.User) (map[string]time.Time, error) {
	return tb.deleted, nil
}

func (tb *table) PutKeyDays(_ context.Context, app string, days map[string]usage.Day) error {
	return tb.write(func() {
		if tb.keys[app] == nil {
			tb.keys[app] = map[string]usage.Day{}
		}
		for hash, day := range days {
			tb.keys[app][hash] = max(tb.keys[app][hash], day)
		}
	})
}

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newCounter(tb *table, c *clock) *usage.Counter {
	return usage.NewCounter(tb, c.Now, slog.New(slog.DiscardHandler))
}

func day(t *testing.T, text string) usage.Day {
	t.Helper()
	d, err := usage.ParseDay(text)
	must.Succeed(t, err)
	return d
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestCountsGoToTheirDay(t *testing.T) {
	tb, c := newTable(), &clock{noon}
	counter := newCounter(tb, c)
	counter.Events("shop", 3, func(i int) string { return []string{"ann", "bob", "ann"}[i] })
	counter.Reads("shop", 2)
	counter.Refused("zoo", 1)
	counter.Key("shop", "hash")
	c.now = noon.Add(12 * time.Hour) // midnight
	counter.Events("shop", 1, func(int) string { return "" })
	counter.Key("shop", "hash")
	if tb.writes != 0 {
		t.Errorf("%d writes before the flush", tb.writes)
	}
	must.Succeed(t, counter.Flush(t.Context()))
	first := day(t, "2026-11-22")
	want := map[string]map[usage.Day]usage.Counts{
		"shop": {first: {Events: 3, Reads: 2}, first + 1: {Events: 1}},
		"zoo":  {first: {Refused: 1}},
	}
	if diff := cmp.Diff(want, tb.counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]usage.User{{Token: "ann", Events: 2}, {Token: "bob", Events: 1}}, tb.users["shop"]); diff != "" {
		t.Errorf("hot users (-want +got):\n%s", diff)
	}
	if got := tb.keys["shop"]["hash"]; got != first+1 {
		t.Errorf("the key was last used on %s, want 2026-11-23", got)
	}
	before := tb.writes
	if err := counter.Flush(t.Context()); err != nil || tb.writes != before {
		t.Errorf("%v, %d writes though nothing is new", err, tb.writes-before)
	}
}

// Each event counts once, whether a failed write had an effect or not.
func TestFailedFlushesCountOnce(t *testing.T) {
	for _, fail := range []string{"before", "after"} {
		t.Run(fail, func(t *testing.T) {
			tb, c := newTable(), &clock{noon}
			counter := newCounter(tb, c)
			for range 3 { // the first failure repeats what the next ones add to
				tb.fail = fail
				counter.Events("shop", 1, func(int) string { return "ann" })
				counter.Key("shop", "hash")
				if err := counter.Flush(t.Context()); !errors.Is(err, errTable) {
					t.Fatalf("flush: %v, want the table's error", err)
				}
			}
			tb.fail = ""
			must.Succeed(t, counter.Flush(t.Context()))
			today := day(t, "2026-11-22")
			if got := tb.counts["shop"][today].Events; got != 3 {
				t.Errorf("%d events, want 3", got)
			}
			if got := tb.users["shop"]; len(got) != 1 || got[0].Events != 3 {
				t.Errorf("hot users %v, want ann with 3", got)
			}
			if got := tb.keys["shop"]["hash"]; got != today {
				t.Errorf("the key was last used on %s", got)
			}
		})
	}
}

// A process drops whom a deletion names, and counts what they send later.
func TestHotUserIsDeleted(t *testing.T) {
	tb, c := newTable(), &clock{noon}
	counter := newCounter(tb, c)
	flush := func(what string, want ...usage.User) {
		t.Helper()
		must.Succeed(t, counter.Flush(t.Context()))
		if diff := cmp.Diff(want, tb.users["shop"], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	send := func(users ...string) { counter.Events("shop", len(users), func(i int) string { return users[i] }) }
	send("ann", "ann", "bob")
	tb.deleted = map[string]time.Time{"ann": noon.Add(3 * time.Second)}
	flush("deleted before their first flush", usage.User{Token: "bob", Events: 1})
	send("ann")
	flush("before the time of the deletion", usage.User{Token: "bob", Events: 1})
	c.now = noon.Add(4 * time.Second)
	send("ann", "ann")
	flush("they return", usage.User{Token: "ann", Events: 2}, usage.User{Token: "bob", Events: 1})
	tb.deleted = map[string]time.Time{"ann": c.now, "bob": c.now}
	send("ann")
	flush("all are deleted")
}

// A process flushes by itself, and once more at its end.
func TestCounterFlushesByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable()
		counter := usage.NewCounter(tb, time.Now, slog.New(slog.DiscardHandler))
		counter.Start()
		today := usage.DayOf(time.Now())
		counter.Reads("shop", 1)
		time.Sleep(usage.Interval + time.Millisecond)
		synctest.Wait()
		if got := tb.counts["shop"][today].Reads; got != 1 {
			t.Errorf("%d reads after %v, want 1", got, usage.Interval)
		}
		counter.Reads("shop", 1)
		counter.Close()
		if got := tb.counts["shop"][today].Reads; got != 2 {
			t.Errorf("%d reads at the end, want 2", got)
		}
	})
}

// A table that never answers keeps nobody waiting: neither those who count nor,
// for more than five seconds, the end of the process.
func TestSlowTableBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counter := usage.NewCounter(silent{}, time.Now, slog.New(slog.DiscardHandler))
		counter.Start()
		began := time.Now()
		counter.Reads("shop", 1)
		time.Sleep(usage.Interval + time.Second) // a flush is under way
		counter.Reads("shop", 1)
		counter.Key("shop", "hash")
		counter.Events("shop", 1, func(int) string { return "ann" })
		if took := time.Since(began); took != usage.Interval+time.Second {
			t.Errorf("counting took %v", took-usage.Interval-time.Second)
		}
		ending := time.Now()
		counter.Close()
		if took := time.Since(ending); took > 5*time.Second {
			t.Errorf("the end took %v", took)
		}
	})
}

// silent is a table that never answers.
type silent struct{}

func (silent) wait(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (s silent) AddUsage(ctx context.Context, _ usage.Batch) error { return s.wait(ctx) }

func (s silent) KnownNames(ctx context.Context, _ string, _ usage.Day, _ int) (usage.Names, error) {
	return usage.Names{}, s.wait(ctx)
}

func (s silent) PutHotUsers(ctx context.Context, _ string, _ usage.Day, _ int, _ string, _ []usage.User) error {
	return s.wait(ctx)
}

func (s silent) Deleted(ctx context.Context, _ string, _ []usage.User) (map[string]time.Time, error) {
	return nil, s.wait(ctx)
}

func (s silent) PutKeyDays(ctx context.Context, _ string, _ map[string]usage.Day) error {
	return s.wait(ctx)
}

func TestCountingAtOnce(t *testing.T) {
	tb, c := newTable(), &clock{noon}
	counter := newCounter(tb, c)
	var group sync.WaitGroup
	const writers, each = 4, 50
	for range writers {
		group.Go(func() {
			for range each {
				counter.Events("shop", 1, func(int) string { return "ann" })
				counter.Key("shop", "hash")
				if err := counter.Flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := tb.counts["shop"][usage.DayOf(noon)].Events; got != writers*each {
		t.Errorf("%d events, want %d", got, writers*each)
	}
	if got := tb.users["shop"]; len(got) != 1 || got[0].Events != writers*each {
		t.Errorf("hot users %v, want ann with %d", got, writers*each)
	}
}

func BenchmarkCounter(b *testing.B) {
	counter := usage.NewCounter(newTable(), time.Now, slog.New(slog.DiscardHandler))
	user := func(int) string { return "ann" }
	b.Run("event", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			counter.Key("shop", "hash")
			counter.Events("shop", 1, user)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			counter.Key("shop", "hash")
			counter.Reads("shop", 1)
		}
	})
	b.Run("new user", func(b *testing.B) {
		tokens := make([]string, 10_000)
		for i := range tokens {
			tokens[i] = time.Duration(i).String()
		}
		b.ReportAllocs()
		for i := range b.N {
			counter.Events("shop", 1, func(int) string { return tokens[i%len(tokens)] })
		}
	})
}
