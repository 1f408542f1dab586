package profile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// linkedSums is how many random histories TestLinkedProfilesAreSums runs. 300 take about 4 s of a core.
// go test ./shared/profile -run TestLinkedProfilesAreSums -timeout 5h -linked-sums 100000
var linkedSums = flag.Int("linked-sums", race.Or(300, 20), "how many random histories TestLinkedProfilesAreSums runs")

// weights is a strategy whose scores lose bits when they are added: a third of a third decays under three half-lives.
var weights = strategy.Strategy{
	EventsScoring: []strategy.EventScore{{EventName: "Bought", EventType: event.Conversion, Score: 7}, {EventName: "Seen", EventType: event.View, Score: 3}},
	FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 5}, {FacetName: "brand", Score: 1}},
	HalfLives:     strategy.InDays(1, 7, 90),
}

// summed are two apps that get the same requests, one after the other. The first links tokens.
type summed struct {
	t        *rapid.T
	apps     [2]*config.Store
	engines  [2]*profile.Engine
	store    *store.Store
	ids      [2]string
	clock    atomic.Int64
	events   []store.LogEvent
	excluded bool // by a deletion or an opt-out, after which more than links tell the apps apart
}

// strangers are never linked. Beside them are the tokens of persons.
var strangers = []string{"s", "r"}

// The profile of a token is the formula over the events that count for it by the law of links, within 1e-9.
// A token that was never linked has the very bits that it has in an app without links. Once its links are undone, each
// has the same sums, which may have been added up in another order.
func TestLinkedProfilesAreSums(t *testing.T) {
	stores := []*store.Store{}
	for _, open := range []opener{storetest.NewWithClient, storetest.NewDeployed} {
		s, _ := open(t)
		stores = append(stores, s)
	}
	var histories atomic.Int64
	must.Succeed(t, flag.Set("rapid.checks", fmt.Sprint(*linkedSums)))
	rapid.Check(t, func(t *rapid.T) {
		s := newSummed(t, rapid.SampledFrom(stores).Draw(t, "store"), histories.Add(1))
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			s.step()
		}
		s.check()
		s.undo()
	})
}

func newSummed(t *rapid.T, st *store.Store, n int64) *summed {
	s := &summed{t: t, store: st, ids: [2]string{fmt.Sprint("on", n), fmt.Sprint("off", n)}}
	s.clock.Store(1_700_000_000_000)
	retention := rapid.SampledFrom([]int{15, 90}).Draw(t, "retention")
	lookback := rapid.SampledFrom([]time.Duration{0, 3 * time.Hour, 30 * 24 * time.Hour}).Draw(t, "lookback")
	adds, folds := rapid.SampledFrom([]int{0, 1000}).Draw(t, "additions"), rapid.SampledFrom([]int{3, 1000}).Draw(t, "folds")
	for i, id := range s.ids {
		s.apps[i] = config.NewMemory()
		must.Succeed(t, s.apps[i].CreateApp(ctx, config.App{ID: id, RetentionDays: retention}))
		_, _, err := s.apps[i].SetStrategy(ctx, id, weights)
		must.Succeed(t, err)
		s.engines[i] = profile.New(st, s.apps[i], config.NewCached(s.apps[i], 0), s.now, slog.New(slog.DiscardHandler))
		s.engines[i].SetMaxAdditions(adds)
		s.engines[i].SetLimits(folds, 100, 100, 100, time.Minute)
	}
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := s.apps[0].SetIdentity(ctx, s.ids[0], config.Identity{Mode: mode, Lookback: lookback}, 0)
		must.Succeed(t, err)
	}
	return s
}

func (s *summed) now() time.Time { return time.UnixMilli(s.clock.Load()) }

func (s *summed) app(i int) config.App {
	app, err := s.apps[i].App(ctx, s.ids[i])
	must.Succeed(s.t, err)
	return app
}

// both does the same in both apps.
func (s *summed) both(do func(e *profile.Engine, app config.App) error) {
	for i, e := range s.engines {
		must.Succeed(s.t, do(e, s.app(i)))
	}
}

func (s *summed) token() string {
	return rapid.SampledFrom(append(slices.Clone(tokens), strangers...)).Draw(s.t, "token")
}

func (s *summed) step() {
	s.clock.Add(rapid.Int64Range(1, 5*hour).Draw(s.t, "passes"))
	token := s.token()
	exclude := func(do func(e *profile.Engine, ctx context.Context, app, user string) (time.Time, error)) {
		s.excluded = true
		s.both(func(e *profile.Engine, app config.App) error { _, err := do(e, ctx, app.ID, token); return err })
	}
	switch rapid.SampledFrom([]string{"apply", "apply", "apply", "import", "fold", "refresh", "recompute", "unlink", "link", "delete", "opt out", "opt in"}).Draw(s.t, "step") {
	case "apply":
		events := s.draw()
		s.both(func(e *profile.Engine, app config.App) error { _, err := e.Apply(ctx, app, events); return err })
	case "import":
		events := s.draw()
		s.both(func(e *profile.Engine, app config.App) error { _, err := e.Import(ctx, app, events); return err })
	case "fold":
		s.both(func(e *profile.Engine, app config.App) error { _, err := e.Fold(ctx, app, token); return err })
	case "refresh":
		s.both(func(e *profile.Engine, app config.App) error { _, err := e.Refresh(ctx, app, token); return err })
	case "recompute":
		o := rapid.SampledFrom([]profile.RecomputeOptions{{}, {Fold: true}, {OnlyStale: true, Maintain: true}}).Draw(s.t, "options")
		s.both(func(e *profile.Engine, app config.App) error {
			_, err := e.Recompute(ctx, app, store.Range{}, o, func(profile.Progress) error { return nil })
			return err
		})
	case "unlink":
		s.unlink(rapid.SampledFrom(tokens[:2]).Draw(s.t, "anonymous"), rapid.SampledFrom(tokens[2:]).Draw(s.t, "known"))
	case "link":
		err := profile.IdentitiesOf(s.engines[0]).Link(ctx, s.app(0), rapid.SampledFrom(tokens).Draw(s.t, "anonymous"), rapid.SampledFrom(tokens).Draw(s.t, "known"), "asked")
		if _, refused := errors.AsType[profile.LinkRefused](err); !refused {
			must.Succeed(s.t, err)
		}
	case "delete":
		exclude((*profile.Engine).Delete)
	case "opt out":
		exclude(func(e *profile.Engine, ctx context.Context, app, user string) (time.Time, error) {
			return e.OptOut(ctx, app, user)
		})
	case "opt in":
		exclude((*profile.Engine).OptIn)
	}
}

func (s *summed) unlink(a, k string) {
	if _, err := profile.IdentitiesOf(s.engines[0]).Unlink(ctx, s.app(0), a, k); !errors.Is(err, profile.ErrNotLinked) {
		must.Succeed(s.t, err)
	}
}

// draw draws events, some of which were delivered before.
func (s *summed) draw() []store.LogEvent {
	var events []store.LogEvent
	for range rapid.IntRange(1, 5).Draw(s.t, "events") {
		if len(s.events) > 0 && rapid.IntRange(0, 5).Draw(s.t, "again") == 0 {
			events = append(events, rapid.SampledFrom(s.events).Draw(s.t, "event"))
			continue
		}
		e := bought(s.token(), s.clock.Load()-rapid.Int64Range(0, 30*day).Draw(s.t, "age"))
		if rapid.Bool().Draw(s.t, "seen") {
			e.Name, e.Type = "Seen", event.View
		}
		e.ID, e.Strong = fmt.Sprintf("id%09d", len(s.events)), true
		e.Counts = []affinity.Count{{Facet: rapid.SampledFrom([]string{"color", "brand"}).Draw(s.t, "facet"),
			Value: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(s.t, "value"), N: rapid.IntRange(1, 3).Draw(s.t, "n")}}
		if !slices.Contains(strangers, e.User) {
			e.Known = rapid.SampledFrom([]string{"", "k", "k", "l", "a"}).Draw(s.t, "known")
		}
		s.events = append(s.events, e)
		events = append(events, e)
	}
	for i := range events {
		events[i].Receipt = s.clock.Load()
	}
	return slices.CompactFunc(events, func(a, b store.LogEvent) bool { return a.ID == b.ID })
}

// check compares each token's profile, as it is read and as it is computed, with the formula.
func (s *summed) check() {
	all := append(slices.Clone(tokens), strangers...)
	app := s.app(0)
	f := readFacts(s.t, app, func(string) *store.Store { return s.store }, all, s.events)
	computed := s.compute(0)
	for _, token := range all {
		read, err := s.engines[0].Read(ctx, app, token, 0)
		must.Succeed(s.t, err)
		var events []affinity.Event
		for n, e := range s.events {
			if f.counts(e, f.receipt[n], token) {
				events = append(events, affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: e.Counts})
			}
		}
		want := affinity.Reference(events, weights, affinity.Window{Now: read.Anchor, RetentionDays: app.RetentionDays})
		s.equal(token, fmt.Sprintf("read (stored: %v)", read.Stored), read.Profile, want)
		s.equal(token, "computed", computed[token].At(read.Anchor), want)
	}
	off := s.compute(1)
	for _, token := range strangers {
		if diff := cmp.Diff(off[token].Affinities, computed[token].Affinities); diff != "" {
			s.t.Fatalf("%s has other bits than in an app without links (-off +on):\n%s", token, diff)
		}
	}
}

// compute computes the profiles of all tokens in an app.
func (s *summed) compute(i int) map[string]affinity.Profile {
	all := append(slices.Clone(tokens), strangers...)
	sets, err := s.engines[i].Compute(ctx, s.app(i), all, affinity.Compile(weights))
	must.Succeed(s.t, err)
	profiles := map[string]affinity.Profile{}
	for _, token := range all {
		profiles[token] = sets[token][0]
	}
	return profiles
}

// undo undoes all links. Nothing of them is left, unless a token was deleted or opted out: then the tokens of a person have
// lost what was theirs.
func (s *summed) undo() {
	if s.excluded {
		return
	}
	for _, a := range tokens {
		row, err := s.store.Users.ReadPrimary(ctx, s.ids[0], a, store.UserState)
		must.Succeed(s.t, err)
		cell, err := links.Parse(row.Links)
		must.Succeed(s.t, err)
		for _, e := range cell.Entries {
			s.unlink(a, e.Known)
		}
	}
	on, off := s.compute(0), s.compute(1)
	for _, token := range tokens {
		s.equal(token, "unlinked", on[token], off[token])
	}
}

func (s *summed) equal(token, way string, p, want affinity.Profile) {
	if p.Known != want.Known || p.Total != want.Total || len(p.Affinities) != len(want.Affinities) {
		s.t.Fatalf("%s, %s: %+v, the log says %+v", token, way, p, want)
	}
	for _, w := range want.Affinities {
		at := slices.IndexFunc(p.Affinities, func(a affinity.Affinity) bool { return a.Facet == w.Facet && a.Value == w.Value })
		if at < 0 {
			s.t.Fatalf("%s, %s: %s is missing, the log says %+v", token, way, w.Value, want)
		}
		for i, score := range p.Affinities[at].Scores {
			if math.Abs(score-w.Scores[i]) > 1e-9*w.Scores[i] {
				s.t.Fatalf("%s, %s: %s has %v, the log says %v", token, way, w.Value, score, w.Scores[i])
			}
		}
	}
}
