package query_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	appID = "shop"
	hour  = int64(3_600_000)
	day   = 24 * hour
)

// bench is an app with users, and lists that its tests build.
type bench struct {
	testing.TB
	clock   int64 // ms
	store   *store.Store
	config  *config.Store
	engine  *profile.Engine
	reader  *query.Reader
	builds  *builds
	users   map[string]bool
	events  int
	lists   segment.Manifest
	members map[segment.PartID][]string // of each part, by ordinal
	perPart int                         // users of a base part
	// tamper changes the profiles that a part is made of; nil: nobody does.
	tamper func(map[string]affinity.Profile)
}

// builds counts what a Reader orders.
type builds struct {
	ordered int
	waiting bool // nothing can be ordered
}

func (b *builds) Order(context.Context, string) (bool, error) {
	b.ordered++
	return !b.waiting, nil
}

func (b *builds) Progress(context.Context, string) (string, error) { return "it is half done", nil }

func newBench(tb testing.TB, halfLives ...int) *bench {
	return newBenchOn(tb, storetest.New(tb), halfLives...)
}

func newBenchOn(tb testing.TB, s *store.Store, halfLives ...int) *bench {
	b := &bench{TB: tb, clock: 1_700_000_000_000, store: s, config: config.NewMemory(), builds: &builds{},
		users: map[string]bool{}, members: map[segment.PartID][]string{}, perPart: 40}
	now := func() time.Time { return time.UnixMilli(b.clock) }
	cached := config.NewCached(b.config, 0)
	b.engine = profile.New(b.store, b.config, cached, now, slog.New(slog.DiscardHandler))
	must.Succeed(tb, b.config.CreateApp(tb.Context(), config.App{ID: appID, RetentionDays: 90}))
	b.score(10, halfLives...)
	must.Succeed(tb, b.config.SetSegments(tb.Context(), appID, true))
	b.newReader()
	return b
}

// newBenchOf makes a bench whose lists hold one user, of one brand.
func newBenchOf(tb testing.TB, user, brand string) *bench {
	b := newBench(tb)
	b.see(user, b.clock, brand)
	b.buildLater()
	return b
}

// buildLater builds the lists an hour later.
func (b *bench) buildLater() {
	b.Helper()
	b.clock += hour
	b.build()
}

// newReader takes a Reader that knows nothing, as another process does.
func (b *bench) newReader() {
	b.reader = query.New(b.store, b.engine, b.builds, func() time.Time { return time.UnixMilli(b.clock) }, slog.New(slog.DiscardHandler))
}

// score sets a strategy.
func (b *bench) score(points int, halfLives ...int) {
	b.Helper()
	_, _, err := b.config.SetStrategy(b.Context(), appID, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: "view", Score: points}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "brand", Score: 3}, {FacetName: "color", Score: 1}},
		HalfLives:     strategy.InDays(halfLives...),
	})
	must.Succeed(b, err)
}

func (b *bench) app() config.App {
	b.Helper()
	app, err := b.config.App(b.Context(), appID)
	must.Succeed(b, err)
	return app
}

// see applies an event of a user, and lists the change.
func (b *bench) see(user string, at int64, filters ...string) {
	b.Helper()
	b.events++
	e := store.LogEvent{User: user, Time: at, ID: fmt.Sprintf("%011d", b.events), Receipt: b.clock, Type: event.View, Name: "Seen", Original: []byte("{}")}
	for _, f := range filters {
		facet, value := f[:5], f[6:]
		e.Counts = append(e.Counts, affinity.Count{Facet: facet, Value: value, N: 1})
	}
	if _, err := b.engine.Apply(b.Context(), b.app(), []store.LogEvent{e}); err != nil {
		b.Fatal(err)
	}
	b.users[user] = true
	b.change(user)
}

func (b *bench) change(user string) {
	b.Helper()
	must.Succeed(b, b.store.Changes.Add(b.Context(), appID, store.SlotOf(time.UnixMilli(b.clock)), []string{user}))
}

// profiles reads the profiles of some users, who must be known.
func (b *bench) profiles(users []string) map[string]affinity.Profile {
	b.Helper()
	all := map[string]affinity.Profile{}
	err := b.engine.ReadEach(b.Context(), b.app().For(consent.Segments), users, 0, func(user string, r profile.Result) error {
		if r.Known {
			all[user] = r.Profile
		}
		return nil
	})
	must.Succeed(b, err)
	return all
}

func (b *bench) everybody() []string { return slices.Sorted(maps.Keys(b.users)) }

func (b *bench) cut() int64 {
	return int64(store.SlotOf(time.UnixMilli(b.clock).Add(-15 * time.Second)))
}

// pack writes a part of users, and returns its description.
func (b *bench) pack(users []string, delta bool) segment.Part {
	b.Helper()
	app := b.app()
	cut := b.cut()
	p := segment.NewPacker(segment.Scoring{Version: app.ScoringVersion, RetentionDays: app.RetentionDays, HalfLives: app.Strategy.HalfLives}, 0)
	id := segment.NewPartID(time.UnixMilli(b.clock), uint32(len(b.members)))
	p.Begin(id, delta, b.clock)
	read := b.profiles(users)
	if b.tamper != nil {
		b.tamper(read)
	}
	for _, user := range users {
		r, known := read[user]
		if !known {
			continue
		}
		before := p.Users()
		must.Succeed(b, p.Add(user, r.AppendBinary(nil)))
		if p.Users() > before {
			b.members[id] = append(b.members[id], user)
		}
	}
	w := b.store.Segments.NewSegmentWriter(b.Context(), appID, id)
	part, err := p.Finish(b.clock, w.Write)
	must.Succeed(b, errors.Join(err, w.Flush()))
	part.Cut = cut
	return part
}

// build replaces the lists.
func (b *bench) build() {
	b.Helper()
	app := b.app()
	m := segment.Manifest{ScoringVersion: app.ScoringVersion, RetentionDays: app.RetentionDays, HalfLives: app.Strategy.HalfLives,
		Generation: fmt.Sprint("g", b.clock), BuiltAt: b.clock, Since: app.Segments.Since.UnixMilli(), Holdout: app.Holdout.ID()}
	users := b.everybody()
	for len(users) > 0 {
		some := users[:min(b.perPart, len(users))]
		users = users[len(some):]
		part := b.pack(some, false)
		part.Generation = m.Generation
		if len(m.Parts) > 0 {
			part.From = m.Parts[len(m.Parts)-1].To
		}
		if len(users) > 0 {
			part.To = users[0]
		}
		m.Parts = append(m.Parts, part)
	}
	b.swap(m)
}

// update adds a delta of the users who are listed and of some others.
func (b *bench) update(others ...string) {
	b.Helper()
	newest, oldest := store.ChangeSlot(0), store.ChangeSlot(1<<62)
	for _, p := range b.lists.Parts {
		if p.Delta {
			newest = max(newest, store.ChangeSlot(p.Cut))
		} else {
			oldest = min(oldest, store.ChangeSlot(p.Cut))
		}
	}
	listed, _, err := b.store.Changes.List(b.Context(), appID, max(newest, oldest), 0)
	must.Succeed(b, err)
	users := append(slices.Collect(maps.Keys(listed)), others...)
	slices.Sort(users)
	delta := b.pack(slices.Compact(users), true)
	out := map[segment.PartID][]uint16{}
	for _, p := range b.lists.Parts {
		for ordinal, user := range b.members[p.ID] {
			if slices.Contains(users, user) {
				out[p.ID] = append(out[p.ID], uint16(ordinal))
			}
		}
	}
	must.Succeed(b, b.store.Segments.WriteSetOuts(b.Context(), appID, delta.ID, out))
	m := b.lists
	m.Parts = append(slices.Clone(m.Parts), delta)
	b.swap(m)
}

func (b *bench) swap(m segment.Manifest) {
	b.Helper()
	if ok, err := b.store.Segments.SwapSegmentManifest(b.Context(), appID, b.lists.Version, m); err != nil || !ok {
		b.Fatalf("swap: %v, %v", ok, err)
	}
	m.Version = b.lists.Version + 1
	b.lists = m
	b.newReader()
}

func (b *bench) condition(where string) segment.Condition {
	b.Helper()
	c, err := segment.Parse([]byte(where))
	must.Succeed(b, err)
	return c
}

// check compares the answer to a condition with what all profiles say: the number, the
// pages of a walk and the list of all.
func (b *bench) check(what, where string) {
	b.Helper()
	c := b.condition(where)
	q, err := c.Compile(b.app().Strategy)
	must.Succeed(b, err)
	want := segment.Reference(q, b.profiles(b.everybody()), b.clock)
	var got []query.User
	for cursor := ""; ; {
		page, err := b.reader.Page(b.Context(), b.app(), c, 7, cursor)
		if err != nil {
			b.Fatalf("%s: %s: %v", what, where, err)
		}
		if page.Total != len(want) || page.AsOf != b.clock {
			b.Errorf("%s: %s: total %d as of %d, want %d as of %d", what, where, page.Total, page.AsOf, len(want), b.clock)
		}
		got = append(got, page.Users...)
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	if len(got) != len(want) {
		b.Fatalf("%s: %s: pages have %d users, want %d", what, where, len(got), len(want))
	}
	for i, u := range got {
		if u.Token != want[i].Token || !near(u.Score, q.Score(want[i].Order, b.clock)) {
			b.Fatalf("%s: %s: user %d is %v, want %s with %v", what, where, i, u, want[i].Token, q.Score(want[i].Order, b.clock))
		}
	}
	all := map[string]float64{}
	if _, err := b.reader.Each(b.Context(), b.app(), c, func(u query.User) error { all[u.Token] = u.Score; return nil }); err != nil {
		b.Fatal(err)
	}
	for _, u := range got {
		if score, is := all[u.Token]; !is || !near(score, u.Score) {
			b.Errorf("%s: %s: the list of all has %s with %v (%v), want %v", what, where, u.Token, score, is, u.Score)
		}
	}
	if len(all) != len(got) {
		b.Errorf("%s: %s: the list of all has %d users, want %d", what, where, len(all), len(got))
	}
}

func near(a, b float64) bool { return a == b || (a-b)/(a+b) < 1e-9 && (b-a)/(a+b) < 1e-9 }

func (b *bench) slot() store.ChangeSlot { return store.SlotOf(time.UnixMilli(b.clock)) }
