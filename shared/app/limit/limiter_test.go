package limit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/limit"
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time          { return c.at }
func (c *clock) advance(d time.Duration) { c.at = c.at.Add(d) }

// board is a limit.Board in memory. An error that is set fails all exchanges.
type board struct {
	mu    sync.Mutex
	said  map[string]map[string][]byte
	calls int
	err   error
}

func (b *board) ExchangeRates(_ context.Context, app, process string, said []byte) (map[string][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.err != nil {
		return nil, b.err
	}
	if b.said == nil {
		b.said = map[string]map[string][]byte{}
	}
	if b.said[app] == nil {
		b.said[app] = map[string][]byte{}
	}
	b.said[app][process] = said
	all := map[string][]byte{}
	for process, text := range b.said[app] {
		all[process] = text
	}
	return all, nil
}

// processes returns limiters that share a board.
func processes(n int, c *clock, b limit.Board) []*limit.Held {
	all := make([]*limit.Held, n)
	for i := range all {
		all[i] = limit.Hold(limit.New(c.now, limit.Numbers{}, b, func(string, error) {}))
	}
	return all
}

func refused(t *testing.T, err error) *limit.Refused {
	t.Helper()
	var r *limit.Refused
	if !errors.As(err, &r) {
		t.Fatalf("error %v, want a refusal", err)
	}
	if r.RetryAfter < limit.MinRetry || r.RetryAfter > limit.MaxRetry {
		t.Errorf("retry after %d s", r.RetryAfter)
	}
	return r
}

func TestReadsPerSecond(t *testing.T) {
	c := newClock()
	l, own := processes(1, c, nil)[0], limit.Numbers{ReadsPerSecond: 10}
	for i := range 10 {
		s, err := l.Take("shop", own, limit.Reads)
		if err != nil || s.Limit != 10 || s.Remaining != 9-i {
			t.Fatalf("read %d: %+v, %v", i, s, err)
		}
	}
	_, err := l.Take("shop", own, limit.Reads)
	if r := refused(t, err); r.RetryAfter != 1 || r.Limit != 10 || r.Remaining != 0 || !r.Reset.Equal(c.at.Add(time.Second)) {
		t.Errorf("refusal %+v", r)
	}
	if _, err := l.Take("other", own, limit.Reads); err != nil {
		t.Errorf("another app: %v", err)
	}
	c.advance(100 * time.Millisecond)
	if _, err := l.Take("shop", own, limit.Reads); err != nil {
		t.Errorf("after a tenth of a second: %v", err)
	}
	if _, err := l.Take("shop", own, limit.Reads); err == nil {
		t.Error("two reads in a tenth of a second")
	}
	if _, err := l.Take("shop", limit.Numbers{ReadsPerSecond: 1000}, limit.Reads); err == nil {
		t.Error("a new limit gave tokens of the past")
	}
}

// A request may take more than there is. The next ones wait until that is paid for.
func TestLargeRequestsPayLater(t *testing.T) {
	c := newClock()
	l, own := processes(1, c, nil)[0], limit.Numbers{ReadsPerSecond: 10}
	if _, err := l.Take("shop", own, limit.Reads); err != nil {
		t.Fatal(err)
	}
	l.Charge("shop", own, limit.Reads, 99) // 90 more than there were
	c.advance(8 * time.Second)
	_, err := l.Take("shop", own, limit.Reads)
	if r := refused(t, err); r.RetryAfter != 1 {
		t.Errorf("refusal %+v, want a wait of 1 s", r)
	}
	c.advance(1100 * time.Millisecond)
	if _, err := l.Take("shop", own, limit.Reads); err != nil {
		t.Errorf("after all is paid for: %v", err)
	}
	l.Charge("shop", own, limit.Reads, 10_000)
	_, err = l.Take("shop", own, limit.Reads)
	if r := refused(t, err); r.RetryAfter != limit.MaxRetry {
		t.Errorf("refusal %+v, want the longest wait", r)
	}
}

func TestEventsHaveTwoSteps(t *testing.T) {
	c := newClock()
	l, own := processes(1, c, nil)[0], limit.Numbers{EventsPerSecond: 300}
	count := map[string]int{}
	for range 10 * 100 { // ten seconds of 4,600 events per second, in requests of 46
		switch _, slow, err := l.Events("evil", own, 46, c.at); {
		case err != nil:
			refused(t, err)
			if l.MayEvents("evil", own) == nil {
				t.Fatal("MayEvents permits what Events refuses")
			}
			count["refused"] += 46
		case slow:
			count["slow"] += 46
		default:
			count["fast"] += 46
		}
		c.advance(10 * time.Millisecond)
	}
	// The buckets begin full.
	if fast, slow := count["fast"], count["slow"]; fast < 3000 || fast > 3400 || fast+slow < 6000 || fast+slow > 6700 {
		t.Errorf("of 46,000 events: %v, want 3,300 fast and as many slow", count)
	}
}

// In an hour of the clock, an app starts its jobs, in all processes together.
func TestJobsPerHour(t *testing.T) {
	c, own := newClock(), limit.Numbers{JobsPerHour: 3}
	b := &board{}
	all := processes(3, c, b)
	for i := range 3 {
		if _, err := all[i].Take("shop", own, limit.Jobs); err != nil {
			t.Fatalf("job %d: %v", i, err)
		}
		all[i].Flush()
		c.advance(2 * time.Second)
	}
	if _, err := all[2].Take("shop", own, limit.Reads); err != nil {
		t.Fatal(err)
	}
	_, err := all[2].Take("shop", own, limit.Jobs)
	if r := refused(t, err); r.RetryAfter != limit.MaxRetry || !r.Reset.Equal(time.Date(2026, 11, 22, 11, 0, 0, 0, time.UTC)) {
		t.Errorf("refusal %+v", r)
	}
	if _, err := all[2].Take("shop", own, limit.Strategies); err != nil {
		t.Errorf("a strategy: %v", err)
	}
	restarted := processes(1, c, b)[0]
	if _, err := restarted.Take("shop", own, limit.Jobs); err != nil {
		t.Errorf("a process that has not read the board: %v", err)
	}
	restarted.Flush()
	if _, err := restarted.Take("shop", own, limit.Jobs); err == nil {
		t.Error("a new process forgets the jobs of this hour")
	}
	c.advance(time.Hour)
	if s, err := all[0].Take("shop", own, limit.Jobs); err != nil || s.Remaining != 2 {
		t.Errorf("the next hour: %+v, %v", s, err)
	}
}

func TestUsersPerDay(t *testing.T) {
	c, own, b := newClock(), limit.Numbers{UserEventsPerDay: 100}, &board{}
	all := processes(2, c, b)
	send := func(l *limit.Held, n int) int {
		l.Flush()
		if _, _, err := l.Events("shop", limit.Numbers{}, n, c.at); err != nil {
			t.Fatal(err)
		}
		return len(l.Surplus("shop", own, n, func(i int) string { return []string{"bot", fmt.Sprint("user", i)}[i%2] }))
	}
	for i := range 4 { // 20 of the bot each
		if n := send(all[i%2], 40); n != 0 {
			t.Errorf("request %d: %d over the limit", i, n)
		}
		c.advance(2 * time.Second)
		all[0].Flush()
		all[1].Flush()
	}
	// The second process knows 40 of its own and 40 of the first.
	if n := send(all[1], 100); n != 30 {
		t.Errorf("%d of 50 events of the bot are over the limit, want 30", n)
	}
	c.advance(24 * time.Hour)
	if n := send(all[1], 40); n != 0 {
		t.Errorf("the next day: %d over the limit", n)
	}
}

// What the processes of a deployment may use together is the limit, whatever each
// is asked for, and no process is starved.
func TestShare(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + rnd.IntN(20)
		asked, total := make([]float64, n), 0.0
		for i := range asked {
			asked[i] = 1 + rnd.ExpFloat64()*100
			total += asked[i]
		}
		const most = 300.0
		used := 0.0
		for i, mine := range asked {
			others := append(append([]float64{}, asked[:i]...), asked[i+1:]...)
			slices.Sort(others)
			may := limit.Share(most, mine, others)
			if may < most/float64(n)-1e-9 {
				t.Fatalf("%v of %v: %g, less than an even part", mine, asked, may)
			}
			used += min(mine, may)
		}
		if want := min(total, most); used < want-1e-6 || used > most+1e-6 {
			t.Fatalf("asked for %v: %g is used, want %g", asked, used, want)
		}
	}
}

// Without the board each process permits the whole limit, and requests do not wait.
func TestBoardFails(t *testing.T) {
	c, b := newClock(), &board{err: errors.New("away")}
	failures := 0
	l := limit.Hold(limit.New(c.now, limit.Numbers{ReadsPerSecond: 100}, b, func(string, error) { failures++ }))
	passed := 0
	for range 10_000 {
		if _, err := l.Take("shop", limit.Numbers{}, limit.Reads); err == nil {
			passed++
		}
		l.Flush()
		c.advance(time.Millisecond)
	}
	if passed < 1000 || passed > 1101 || failures < 9 || failures > 11 {
		t.Errorf("%d reads in ten seconds, %d exchanges", passed, failures)
	}
	b.err = nil
	c.advance(time.Second)
	for range 2 { // the second request begins a window that was busy
		for range 50 {
			if _, err := l.Take("shop", limit.Numbers{}, limit.Reads); err != nil {
				t.Error(err)
			}
		}
		c.advance(time.Second)
	}
	if l.Flush(); len(b.said["shop"]) != 1 {
		t.Errorf("the board is back: %v", b.said)
	}
}

// An app that uses little of its limits costs no exchange.
func TestQuietAppsAreNotExchanged(t *testing.T) {
	c, b := newClock(), &board{}
	l := processes(1, c, b)[0]
	for range 100 {
		if _, err := l.Take("shop", limit.Numbers{}, limit.Reads); err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Events("shop", limit.Numbers{}, 10, c.at); err != nil {
			t.Fatal(err)
		}
		l.Flush()
		c.advance(300 * time.Millisecond)
	}
	if b.calls != 0 {
		t.Errorf("%d exchanges", b.calls)
	}
}

// A lane is full once its oldest event has waited for ten minutes, and not before.
func TestSlowLaneIsFull(t *testing.T) {
	c, b, own := newClock(), &board{}, limit.Numbers{EventsPerSecond: 10}
	all := processes(2, c, b)
	ingest, process := all[0], all[1]
	began := c.at
	second := func() (slow, refused int) {
		for range 3 {
			_, isSlow, err := ingest.Events("shop", own, 6, c.at)
			if err != nil {
				refused++
			} else if isSlow {
				slow++
			}
		}
		ingest.Flush()
		process.Flush()
		c.advance(time.Second)
		return slow, refused
	}
	for c.at.Sub(began) < 9*time.Minute {
		if slow, _ := second(); slow == 0 {
			t.Fatalf("after %s nothing goes to the lane", c.at.Sub(began))
		}
	}
	for c.at.Sub(began) < 11*time.Minute {
		second()
	}
	if slow, refused := second(); slow != 0 || refused == 0 {
		t.Errorf("after eleven minutes without work: %d requests to the lane, %d refused", slow, refused)
	}
	process.Applied("shop", c.at.Add(-time.Minute))
	second()
	second()
	if slow, _ := second(); slow == 0 {
		t.Error("the lane works, and is full")
	}
	// The engine is idle for an hour, and nobody said that the lane is empty.
	c.advance(time.Hour)
	second()
	if slow, _ := second(); slow == 0 {
		t.Error("a lane that nobody fills is full")
	}
}

func TestFewAtATime(t *testing.T) {
	l := processes(1, newClock(), nil)[0]
	first, err := l.Enter("shop", limit.Audit)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Enter("shop", limit.Audit)
	refused(t, err)
	for app, slot := range map[string]limit.Slot{"shop": limit.Preview, "other": limit.Audit} {
		if _, err := l.Enter(app, slot); err != nil {
			t.Errorf("%s of %s: %v", slot, app, err)
		}
	}
	first()
	if _, err := l.Enter("shop", limit.Audit); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

// Requests that are refused for another reason use up nothing of an hour, and are
// bounded all the same.
func TestRefusedRequestsAreGivenBack(t *testing.T) {
	c, own, b := newClock(), limit.Numbers{JobsPerHour: 2}, &board{}
	all := processes(2, c, b)
	left := -1
	begin := func(l *limit.Held) (context.Context, error) {
		ctx := l.Begin(t.Context(), limit.Jobs, func(s limit.State) { left = s.Remaining })
		return ctx, limit.Authenticated(ctx, "shop", func() (limit.Numbers, error) { return own, nil })
	}
	for i := range 20 {
		ctx, err := begin(all[0])
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		limit.GiveBack(ctx)
		if limit.GiveBack(ctx); left != 2 {
			t.Fatalf("request %d: %d left", i, left)
		}
	}
	_, err := begin(all[0])
	if r := refused(t, err); r.Remaining != 2 || !strings.Contains(r.Error(), "20 of its requests were refused") {
		t.Errorf("after 20 refused ones: %+v, %v", r.State, r)
	}
	all[0].Flush()
	first, err := begin(all[1])
	if err != nil || left != 1 {
		t.Fatalf("another process: %d left, %v", left, err)
	}
	c.advance(time.Hour)
	for range 2 {
		if _, err := begin(all[1]); err != nil {
			t.Errorf("the next hour: %v", err)
		}
	}
	limit.GiveBack(first) // of the hour before
	if _, err := begin(all[1]); err == nil {
		t.Error("a request of the hour before was given back to this one")
	}
}
