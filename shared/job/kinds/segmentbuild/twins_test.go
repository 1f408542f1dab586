package segmentbuild_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/store"
)

// twins are two apps with the same users: of one they live in two regions, of the other in one. Each has a process that
// remembers what it has read.
type twins struct {
	t   *testing.T
	two *residents
	one *harness
	// readers are the processes of both.
	readers [2]*query.Reader
}

// answers are what a process says of an app.
type answers struct {
	Pages  map[string][]query.User // of conditions
	Totals map[string]int
	All    map[string]map[string]float64
	Scores map[string]segment.Summary
	Values []query.Value
}

func newTwins(t *testing.T) *twins {
	w := &twins{t: t, two: newSpread(t, t, 0, 0), one: newHarness(t, in(t), small)}
	w.one.Now = w.two.Now
	for i, h := range []*harness{w.two.harness, w.one} {
		w.readers[i] = query.New(h.store, h.engine, h.runner, func() time.Time { return h.Now }, slog.New(slog.DiscardHandler))
	}
	return w
}

// both applies events to both, and lets the clock of the one follow.
func (w *twins) both(events ...store.LogEvent) {
	w.t.Helper()
	w.two.apply(events...)
	w.one.Now = w.two.Now
	w.one.apply(events...)
}

// ask asks the process of an app.
func (w *twins) ask(n int) answers {
	w.t.Helper()
	h, r := w.one, w.readers[n]
	if n == 0 {
		h = w.two.harness
	}
	a := answers{Pages: map[string][]query.User{}, Totals: map[string]int{}, All: map[string]map[string]float64{}, Scores: map[string]segment.Summary{}}
	for _, text := range conditions {
		where, err := segment.Parse([]byte(text))
		must.Succeed(w.t, err)
		for cursor := ""; ; {
			page, err := r.Page(w.t.Context(), h.app(), where, 5, cursor)
			must.Succeed(w.t, err)
			a.Pages[text], a.Totals[text] = append(a.Pages[text], page.Users...), page.Total
			if cursor = page.Cursor; cursor == "" {
				break
			}
		}
		a.All[text] = map[string]float64{}
		_, err = r.Each(w.t.Context(), h.app(), where, func(u query.User) error {
			if _, twice := a.All[text][u.Token]; twice {
				return errors.New(u.Token + " is found twice")
			}
			a.All[text][u.Token] = u.Score
			if n == 1 && u.Region != "" {
				return fmt.Errorf("%s is in region %s", u.Token, u.Region)
			}
			if n == 1 {
				return nil
			}
			lives, err := profile.ResidentsOf(h.engine).Region(w.t.Context(), h.app(), u.Token)
			if err == nil && lives != u.Region {
				err = fmt.Errorf("%s is in region %q, want %q", u.Token, u.Region, lives)
			}
			return err
		})
		must.Succeed(w.t, err)
	}
	for i := range 4 {
		f := segment.Filter{Filter: event.Filter{Facet: "color", Value: fmt.Sprint("c", i)}}
		var err error
		a.Scores[f.Value], _, err = r.Histogram(w.t.Context(), h.app(), f)
		must.Succeed(w.t, err)
	}
	return a
}

func (w *twins) wantSame(step string) {
	w.t.Helper()
	w.one.Now = w.two.Now
	near := cmpopts.EquateApprox(1e-9, math.SmallestNonzeroFloat64)
	if diff := cmp.Diff(w.ask(1), w.ask(0), near); diff != "" {
		w.t.Fatalf("%s: one region (-) and two (+) answer\n%s\n%s", step, diff, w.two.describe())
	}
}

// values returns the values of a facet in the last builds.
func (w *twins) values(n int) []query.Value {
	w.t.Helper()
	app := w.one.app()
	if n == 0 {
		app = w.two.app()
	}
	v, err := w.readers[n].Values(w.t.Context(), app, "color", 10)
	must.Succeed(w.t, err)
	return v.Values
}

// Users who live in two regions and move give the answers of the same users in one: numbers, pages with their cursors,
// lists, distributions of scores, and values, from processes that remember lists and profiles.
func TestTwoRegionsAnswerAsOne(t *testing.T) {
	w := newTwins(t)
	var events []store.LogEvent
	for i := range 30 {
		for j := range 1 + i%3 { // many have equal scores
			events = append(events, w.two.seen(token(i), fmt.Sprint("c", (i+j)%4), time.Duration(i%4)*24*time.Hour))
		}
	}
	w.both(events...)
	for i := 0; i < 30; i += 2 {
		must.Succeed(t, w.two.moves(t.Context(), token(i), "us"))
	}
	for round := range 2 {
		for i := range 30 {
			w.two.clean(t.Context(), token(i))
		}
		w.two.Now = w.two.Now.Add(time.Minute)
		w.one.Now = w.two.Now
		w.two.build()
		w.one.build()
		w.wantSame("built")
		if one, two := w.values(1), w.values(0); len(one) != 4 || !slices.Equal(one, two) {
			t.Errorf("values %v, want %v", two, one)
		}
		for i := range 3 {
			at := 7*i + 5*round
			w.both(w.two.seen(token(at), "c1", time.Hour), w.two.seen(token(at+1), "c0", time.Hour))
			w.wantSame("changed")
			w.both(w.two.seen(token(at), "c2", time.Hour), w.two.seen(token(at+1), "c3", time.Hour))
			w.wantSame("changed again")
			for j, n := range []int{at, at + 2} {
				must.Succeed(t, w.two.moves(t.Context(), token(n), regions[(n+round+j)%2]))
				w.wantSame("moved")
			}
			_, err := w.two.engine.Delete(t.Context(), app, token(at+3))
			must.Succeed(t, err)
			_, err = w.one.engine.Delete(t.Context(), app, token(at+3))
			must.Succeed(t, err)
			w.wantSame("deleted")
			w.two.order()
			w.one.order()
			w.wantSame("delta")
		}
	}
}

// A build or a delta of users in two regions whose process dies at any request leaves exact answers, and so does its
// repetition.
func TestListsOfResidentsSurviveCrashes(t *testing.T) {
	for _, kind := range []string{"build", "delta"} {
		for _, f := range []jobtest.Fault{jobtest.FailBefore, jobtest.FailAfter} {
			for at := 0; ; at += race.Or(29, 61) {
				r := newSpread(t, t, 12, 6)
				r.build()
				r.run()
				r.apply(r.seen(token(1), "c1", time.Hour), r.seen(token(2), "c1", time.Hour), r.seen(token(3), "c1", time.Hour))
				must.Succeed(t, r.moves(t.Context(), token(5), "us"))
				r.Now = r.Now.Add(time.Minute)
				start := r.runner.Order
				if kind == "build" {
					start = func(ctx context.Context, app string) (bool, error) {
						_, err := r.runner.StartManual(ctx, app)
						return true, err
					}
				}
				_, err := start(t.Context(), app)
				must.Succeed(t, err)
				calls := r.DieAt(at, f)
				r.Drain()
				r.run()
				r.Gate = nil
				what := fmt.Sprintf("a %s died at request %d", kind, at)
				r.wantExact(what)
				r.apply(r.seen(token(1), "c2", time.Hour), r.seen(token(4), "c2", time.Hour), r.seen(token(5), "c2", time.Hour))
				r.order()
				r.wantExact(what + ", another delta")
				if at >= calls() {
					break
				}
			}
		}
	}
}
