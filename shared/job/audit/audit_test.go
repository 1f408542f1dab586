package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// soon (ms) is as far ahead of a clock as that of another machine may be.
const soon = int64(4 * time.Minute / time.Millisecond)

// Users with events in blocks and outside, with unfolded events only, unknown,
// deleted, with events that are all too old, and without a stored profile.
func TestCorrectEngineHasNoDifferences(t *testing.T) {
	b := newBench(t)
	for i := range int64(40) {
		b.apply(bought("folded", b.clock-i*day-hour, "Rouge", "Acme"), bought("loose", b.clock-i*hour, "Red", fmt.Sprint("B", i)))
	}
	b.fold("folded")
	b.apply(bought("folded", b.clock-hour/2, "Red", "Acme"), bought("old", b.clock-100*day, "Red", "Acme"),
		bought("gone", b.clock-day, "Red", "Acme"), store.LogEvent{User: "bare", Time: b.clock, ID: "x", Type: event.View, Name: "n", Original: []byte("{}")})
	if _, err := b.eng.Delete(ctx, appID, "gone"); err != nil {
		t.Fatal(err)
	}
	b.apply(bought("out", b.clock-day, "Red", "Acme"))
	for user, types := range map[string][]event.Type{"out": nil, "half": {event.Conversion}} {
		if _, err := b.eng.OptOut(ctx, appID, user, types...); err != nil {
			t.Fatal(err)
		}
		// A process writes a purchase, and has yet to drop it.
		inFlight := bought(user, b.clock+soon, "Red", "Acme")
		inFlight.Receipt = b.clock + soon
		must.Succeed(t, b.store.Events.Log(appID, b.app().Log).Append(ctx, []store.LogEvent{inFlight}))
	}
	b.apply(store.LogEvent{User: "half", Time: b.clock + soon, ID: "y", Receipt: b.clock + soon, Type: event.View, Name: "n", Original: []byte("{}")})
	if _, err := b.eng.Import(ctx, b.app(), []store.LogEvent{bought("imported", b.clock-day, "Red", "Acme")}); err != nil {
		t.Fatal(err)
	}
	b.clock += 12 * hour
	r := b.run("folded", "loose", "nobody", "gone", "old", "bare", "imported", "out", "half")
	if len(r.Differences) > 0 || b.waits > 0 {
		t.Errorf("%d waits, %v", b.waits, r.Differences)
	}
	// folded, loose, old, bare and half are stored; 41 + 40 + 1 + 1 + 1 + 1 + 1 events.
	r.Differences = nil
	if diff := cmp.Diff(audit.Report{Sampled: 9, Compared: 9, Stored: 5, Events: 86}, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWrongStoredProfileIsReported(t *testing.T) {
	b := newBench(t)
	for i, test := range []struct {
		name  string
		spoil func(*affinity.Profile)
		want  []string
	}{
		{"a score, by more than rounding", func(p *affinity.Profile) { p.Affinities[0].Scores = []float64{35 * (1 + 1e-8), 35} },
			[]string{"stored score color:Red (half-life 1): want 35, got 35.00000035"}},
		{"a score, by rounding", func(p *affinity.Profile) { p.Affinities[0].Scores = []float64{35 * (1 + 1e-13), 35} }, nil},
		{"under another half-life", func(p *affinity.Profile) { p.Affinities[1].Scores = []float64{28, 7} },
			[]string{"stored score brand:Acme (half-life 30): want 28, got 7"}},
		{"an affinity too few", func(p *affinity.Profile) { p.Affinities = p.Affinities[1:] },
			[]string{"stored missing color:Red (half-life 1): want 35, got <nil>"}},
		{"one too many", func(p *affinity.Profile) {
			p.Affinities = append(p.Affinities, affinity.Affinity{Facet: "color", Value: "Blue", Scores: []float64{0, 3}})
		}, []string{"stored surplus color:Blue (half-life 30): want <nil>, got 3"}},
		{"the last event", func(p *affinity.Profile) { p.LastEventAt-- },
			[]string{"stored lastEventAt: want 2023-11-14T22:13:20.000Z, got 2023-11-14T22:13:19.999Z"}},
		{"known", func(p *affinity.Profile) { p.Known = false }, []string{"stored known: want true, got false"}},
		{"the total", func(p *affinity.Profile) { p.Total = 9 }, []string{"stored total: want 2, got 9"}},
		{"truncated, but it lists all", func(p *affinity.Profile) {
			p.LeftOut = []affinity.Affinity{{Facet: "color", Scores: []float64{1, 1}}}
		}, []string{"stored truncated: want 2, got 2"}},
		{"half-lives", func(p *affinity.Profile) { p.HalfLives = strategy.InDays(1, 31) },
			[]string{"stored damaged: want [1 30], got [1 31]"}},
		{"of a later scoring: not served", func(p *affinity.Profile) { p.StrategyVersion = 9; p.Affinities = nil }, nil},
		{"of an earlier scoring: not served", func(p *affinity.Profile) { p.StrategyVersion = 0; p.Affinities = nil }, nil},
		{"of another retention: not served", func(p *affinity.Profile) { p.RetentionDays = 1; p.Affinities = nil }, nil},
		{"spent: not served", func(p *affinity.Profile) { p.Until = p.Anchor; p.Affinities = nil }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			user := fmt.Sprint("u", i)
			b.t = t
			b.apply(bought(user, b.clock, "Red", "Acme"), bought("v", b.clock, "Red", "Acme"))
			b.spoil(user, test.spoil)
			b.wants("v "+user, of(user, test.want)...)
		})
	}
	b.t = t
	b.apply(bought("u", b.clock, "Red", "Acme"))
	row := b.row("u")
	b.writeProfile(row, "u", append(slices.Clone(row.Profile), 0))
	b.wants("u", fmt.Sprintf("u: stored damaged: want <nil>, got parse stored profile of %d bytes: checksum does not match", len(row.Profile)+1))
}

// A user with more values than a profile lists is right, unless the profile lists a
// value that scores less than one that it leaves out.
func TestBoundedProfile(t *testing.T) {
	b := newBench(t)
	most := affinity.StandardBounds().FacetValues
	e := bought("u", b.clock, "Red", "Acme")
	for i := range most + 2 {
		e.Counts = append(e.Counts, affinity.Count{Facet: "color", Value: fmt.Sprintf("%04d", i), N: 1 + i/2})
	}
	b.apply(e)
	b.wants("u")
	b.spoil("u", func(p *affinity.Profile) { p.Affinities[0].Value = "0000" })
	b.wants("u", "u: stored surplus color:0000: want <nil>, got 17535", "u: stored score color:0000 (half-life 1): want 35, got 17535",
		"u: stored missing color:1000 (half-life 1): want 17535, got <nil>")
}

// A stored profile is served, and audited, under each strategy of its scoring.
func TestAuditAfterRanking(t *testing.T) {
	b := newBench(t)
	b.apply(bought("u", b.clock, "Red", "Acme"), bought("v", b.clock, "Red", "Acme"))
	ranked := decaying
	ranked.Ranking = strategy.PlainRanking()
	if _, _, err := b.apps.SetStrategy(ctx, appID, ranked); err != nil {
		t.Fatal(err)
	}
	if r := b.run("u", "v"); r.Stored != 2 || r.Differing != 0 {
		t.Errorf("%+v, want both stored profiles compared", r)
	}
	b.spoil("u", func(p *affinity.Profile) { p.StrategyVersion = 2; p.LastEventAt-- }) // as an earlier engine writes it
	if r := b.run("u", "v"); r.Stored != 2 || r.Differing != 1 {
		t.Errorf("%+v, want the spoilt profile compared", r)
	}
}

// Clients do not get a stored profile from before a deletion in progress. They
// get the profile of a machine whose clock is ahead as of its own time.
func TestServedProfiles(t *testing.T) {
	b := newBench(t)
	b.apply(bought("gone", b.clock-hour, "Red", "Acme"), bought("ahead", b.clock-hour, "Red", "Acme"))
	b.must(b.store.Users.AdvanceTombstone(ctx, appID, "gone", affinity.Tombstone{DeletedUntil: b.clock}))
	b.clock -= soon
	r := b.run("gone", "ahead")
	if r.Stored != 1 || r.Differing != 0 || b.waits != 0 {
		t.Errorf("%+v after %d waits", r, b.waits)
	}
}

// While process applies an event, the log has it and no profile counts it yet.
func TestPassingDifferenceIsNotReported(t *testing.T) {
	for after := 1; after < audit.Readings; after++ {
		b := newBench(t)
		late := bought("u", b.clock, "Blue", "Acme")
		b.apply(bought("u", b.clock-day, "Red", "Acme"))
		b.must(b.store.Events.Log(appID, schema.Default()).Append(ctx, []store.LogEvent{late}))
		b.onSleep(func() {
			if b.waits == after {
				b.apply(late)
			}
		})
		b.wants("u")
		if b.waits != after {
			t.Errorf("%d waits, want %d", b.waits, after)
		}
	}
}

// At each reading the log of a busy user has one more event that no profile
// counts yet. That is not a difference, but a real fault of the user is.
func TestBusyUser(t *testing.T) {
	for _, faulty := range []bool{false, true} {
		t.Run(fmt.Sprint("faulty ", faulty), func(t *testing.T) {
			b := newBench(t)
			b.apply(bought("u", b.clock-day, "Red", "Acme"))
			on := func() store.LogEvent { b.clock++; return bought("u", b.clock, "Red", "Acme") }
			under := on()
			b.must(b.store.Events.Log(appID, schema.Default()).Append(ctx, []store.LogEvent{under}))
			b.onSleep(func() {
				b.apply(under)
				if faulty {
					b.spoil("u", func(p *affinity.Profile) { p.Affinities = p.Affinities[:1] })
				}
				under = on()
				b.must(b.store.Events.Log(appID, schema.Default()).Append(ctx, []store.LogEvent{under}))
			})
			r := b.run("u")
			if !faulty && r.Differing > 0 {
				t.Errorf("%v", r.Differences)
			}
			if faulty && (len(r.Differences) != 1 || r.Differences[0].What != "missing" || r.Differences[0].Value != "Acme" || b.waits != audit.Readings-1) {
				t.Errorf("after %d waits: %v", b.waits, r.Differences)
			}
		})
	}
}

// The audit compares users with more events than the reference takes with a
// scorer.
func TestManyEventsUseAScorer(t *testing.T) {
	b := newBench(t)
	b.audit.SetMaxEvents(5)
	for i := range int64(6) {
		b.apply(bought("many", b.clock-i*day, "Rouge", "Acme"), bought("few", b.clock-(i+1)%5*day, "Red", "Acme"))
	}
	r := b.run("few", "many")
	if r.ByScorer != 1 || r.Differing != 0 || r.Events != 11 {
		t.Errorf("%+v", r)
	}
	b.spoil("many", func(p *affinity.Profile) { p.Affinities = p.Affinities[:1] })
	b.wants("few many", fmt.Sprintf("many: stored missing brand:Acme (half-life 1): want %v, got <nil>", 28*(1+.5+.25+.125+.0625+.03125)))
}

// The audit holds a bounded number of a user's values. It says whom it has not compared.
func TestUserWithManyValuesIsNotCompared(t *testing.T) {
	b := newBench(t)
	b.audit.SetMaxEvents(1)
	b.audit.SetHeld(2)
	for i := range int64(3) {
		b.apply(bought("many", b.clock-i*day, "Red", fmt.Sprint("B", i)), bought("few", b.clock-i*day, "Red", "Acme"))
	}
	b.spoil("many", func(p *affinity.Profile) { p.Affinities = p.Affinities[:1] })
	if r := b.run("few", "many"); r.TooLarge != 1 || r.Compared != 1 || r.Differing != 0 || r.Events != 6 || r.Stored != 1 {
		t.Errorf("%+v", r)
	}
}

// timed is a context whose deadline the test sets.
type timed struct {
	context.Context
	up chan struct{}
}

func (c timed) Done() <-chan struct{} { return c.up }

func (c timed) Err() error {
	select {
	case <-c.up:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// stuck is an engine and a store. The engine does not return for one user; the
// deadline comes when two other batches have been read.
type stuck struct {
	audit.Rows
	audit.Engine
	user string
	read atomic.Int32
	up   chan struct{}
}

func (s *stuck) ReadLog(ctx context.Context, app string, l schema.Layout, spans []store.UserRange, fn func(string, store.LogRow) error) error {
	err := s.Rows.ReadLog(ctx, app, l, spans, fn)
	if s.read.Add(1) == 2 {
		close(s.up)
	}
	return err
}

func (s *stuck) Compute(ctx context.Context, app config.App, users []string, sets ...*affinity.Compiled) (map[string][]affinity.Profile, error) {
	if slices.Contains(users, s.user) {
		<-ctx.Done()
		return nil, fmt.Errorf("compute: %w", ctx.Err())
	}
	return s.Engine.Compute(ctx, app, users, sets...)
}

func TestTimeIsUp(t *testing.T) {
	b := newBench(t)
	users := make([]string, 120)
	events := make([]store.LogEvent, len(users))
	for i := range users {
		users[i] = fmt.Sprintf("u%03d", i)
		events[i] = bought(users[i], b.clock, "Red", "Acme")
	}
	b.apply(events...)
	s := &stuck{Rows: audit.RowsOf(b.store), Engine: b.eng, user: users[110], up: make(chan struct{})}
	r, err := audit.New(s, s, b.apps).Run(timed{ctx, s.up}, b.app(), users)
	if err != nil || r.Sampled != 120 || r.Compared != 100 || r.Events != 100 {
		t.Errorf("%d of %d compared, %v; want the first 100", r.Compared, r.Sampled, err)
	}
	// A cancelled context is not a deadline.
	left, leave := context.WithCancel(ctx)
	leave()
	if _, err := b.audit.Run(left, b.app(), users); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}

// An audit samples and compares users of one app only.
func TestSample(t *testing.T) {
	b := newBench(t)
	for i := range 30 {
		b.apply(bought(fmt.Sprintf("u%03d", i), b.clock, "Red", "Acme"))
	}
	for n, want := range map[int]int{10: 10, 100: 30} {
		r, err := b.audit.Sample(ctx, b.app(), n)
		if err != nil || r.Compared != want || r.Stored != want || r.Differing != 0 {
			t.Errorf("%+v, %v; want %d users", r, err, want)
		}
	}
}

func TestTask(t *testing.T) {
	task, err := audit.Task("shop", "2026-11-20", 200)
	must.Succeed(t, err)
	order, err := audit.Kind.Decode(task.Body)
	if err != nil || order != (audit.Request{App: "shop", Sample: 200}) || task.Path != "/audit" || !strings.HasSuffix(task.Name, "-audit-shop-2026-11-20") {
		t.Errorf("%+v, %+v, %v", task, order, err)
	}
	for _, body := range []string{``, `{}`, `{"app":"a,b","sample":1}`, `{"app":"a","sample":0}`, `{"app":"a","sample":10001}`} {
		if _, err := audit.Kind.Decode([]byte(body)); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
}
