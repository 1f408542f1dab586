package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const day = 24 * 60 * 60 * 1000

// shopLog is a log of users who each stay with one size. Colors mean nothing to
// them. Every object is as popular as any other.
func shopLog(t testing.TB, users int) *backtest.Log {
	t.Helper()
	const objects, sizes, colors = 120, 6, 5
	var catalog []backtest.Object
	bySize := map[int][]string{}
	for o := range objects {
		id, size, color := fmt.Sprintf("o%03d", o), o%sizes, o/sizes%colors
		catalog = append(catalog, backtest.Object{ID: id, Filters: []event.Filter{
			{Facet: "color", Value: fmt.Sprint("c", color)}, {Facet: "size", Value: fmt.Sprint("s", size)},
		}})
		bySize[size] = append(bySize[size], id)
	}
	l, err := backtest.NewLog("p", catalog)
	must.Succeed(t, err)
	for u := range users {
		rng := rand.New(rand.NewPCG(7, uint64(u)))
		own := bySize[u%sizes]
		for i, o := range rng.Perm(len(own))[:6] {
			l.Add(backtest.Event{User: fmt.Sprint("u", u), Time: int64(i)*20*day + rng.Int64N(day), ID: fmt.Sprint(i),
				Type: event.View, Name: "Viewed", Index: "p", ObjectIDs: []string{own[o]}})
		}
	}
	return l
}

// byColor scores what means nothing.
var byColor = strategy.Strategy{
	EventsScoring:         []strategy.EventScore{{EventName: "Viewed", EventType: event.View, Score: 10}},
	FacetsScoring:         []strategy.FacetScore{{FacetName: "color", Score: 50}},
	PersonalizationImpact: 50,
	HalfLives:             strategy.InDays(30, 7),
	Ranking:               strategy.PlainRanking(),
}

func casesOf(t testing.TB, l *backtest.Log, given strategy.Strategy) *backtest.Cases {
	t.Helper()
	c, err := l.Cases(t.Context(), given, backtest.Options{})
	must.Succeed(t, err)
	return c
}

func TestFindsTheFacetThatMatters(t *testing.T) {
	l := shopLog(t, 300)
	o, err := Run(t.Context(), casesOf(t, l, byColor), byColor, Options{})
	must.Succeed(t, err)
	if !o.Recommended || o.Gain.Low <= 0 || o.Tuned.NDCG < 2*o.Given.NDCG {
		t.Errorf("gain = %+v, recommended %t: nDCG %.3f given, %.3f tuned", o.Gain, o.Recommended, o.Given.NDCG, o.Tuned.NDCG)
	}
	// Those who chose the same objects share a size too, so neighbours say as much as the facet.
	size, color := o.Strategy.FacetScore("size"), o.Strategy.FacetScore("color")
	if size <= color && o.Strategy.RankingOrDefault().Neighbours.Weight == 0 {
		t.Errorf("tuned scores: size %d, color %d; users stay with a size", size, color)
	}
	if err := o.Strategy.Validate(); err != nil {
		t.Errorf("the tuned strategy is not valid: %v", err)
	}
	text, err := json.Marshal(o.Strategy)
	must.Succeed(t, err)
	if again, err := strategy.Decode(text); err != nil || !again.Equal(o.Strategy) {
		t.Errorf("the tuned strategy does not survive as JSON: %s, %v", text, err)
	}
	if o.Trials > DefaultTrials || o.Tuning+o.Untouched.Len() != casesOf(t, l, byColor).Len() {
		t.Errorf("%d trials; %d + %d cases", o.Trials, o.Tuning, o.Untouched.Len())
	}
}

// A strategy whose impact is 0 ranks by its ranking alone. The search must not judge
// it with the plain ranking, which then orders nothing.
func TestImpactOfZero(t *testing.T) {
	given := byColor
	given.PersonalizationImpact = 0
	given.Ranking = strategy.DefaultRanking().Ranking()
	l := shopLog(t, 150)
	o, err := Run(t.Context(), casesOf(t, l, given), given, Options{})
	must.Succeed(t, err)
	if err := backtest.Check(o.Strategy); err != nil || o.Strategy.PersonalizationImpact != 0 || o.Trials < 10 {
		t.Errorf("after %d trials: %+v, %v", o.Trials, o.Strategy, err)
	}
}

// On cases that no ranking can do well on, a search finds strategies that are
// better on its own part by chance. The untouched slice must tell.
func TestChanceIsNotRecommended(t *testing.T) {
	cases := casesOf(t, shopLog(t, 300), byColor)
	runs := race.Or(40, 20)
	recommended, better := 0, 0
	for run := range uint64(runs) {
		o, err := Run(t.Context(), cases.RandomRelevant(run), byColor, Options{Trials: 20, Seed: run})
		must.Succeed(t, err)
		if o.Recommended {
			recommended++
		}
		if !o.Strategy.Equal(byColor) {
			better++
		}
	}
	if recommended > runs/10 {
		t.Errorf("recommended in %d of %d runs on random relevant objects", recommended, runs)
	}
	if better < runs/2 {
		t.Errorf("the search changed the strategy in %d of %d runs: the test tries nothing", better, runs)
	}
}

// By the protocol rolling a user has several cases, which are one observation.
func TestChanceIsByUser(t *testing.T) {
	rolling, err := shopLog(t, 300).Cases(t.Context(), byColor, backtest.Options{Protocol: backtest.Rolling})
	must.Succeed(t, err)
	o, err := Run(t.Context(), rolling.RandomRelevant(1), byColor, Options{Trials: 20})
	must.Succeed(t, err)
	tuned, given := o.Tuned.ByCase(), o.Given.ByCase()
	var differences []float64
	for i := range tuned {
		d := tuned[i] - given[i]
		if i > 0 && o.Untouched.UserKey(i) == o.Untouched.UserKey(i-1) {
			differences[len(differences)-1] += d
		} else {
			differences = append(differences, d)
		}
	}
	if len(differences) == len(tuned) {
		t.Fatalf("%d cases of %d users: the test tries nothing", len(tuned), len(differences))
	}
	if want, err := chance(t.Context(), differences); err != nil || math.Abs(o.Chance-want) > 0.005 {
		t.Errorf("chance = %.4f, want %.4f by user; %v", o.Chance, want, err)
	}
}

func TestSplitIsStable(t *testing.T) {
	side := func(users, sample int) map[uint64]bool {
		c, err := shopLog(t, users).Cases(t.Context(), byColor, backtest.Options{Sample: sample})
		must.Succeed(t, err)
		parts, err := split(c, backtest.None)
		must.Succeed(t, err)
		tuning, untouched := parts[0].tuning, parts[0].untouched
		tuned := map[uint64]bool{}
		for i := range tuning.Len() {
			tuned[tuning.Key(i)] = true
		}
		for i := range untouched.Len() {
			if tuned[untouched.Key(i)] {
				t.Fatalf("%d users: a case is in both parts", users)
			}
			tuned[untouched.Key(i)] = false
		}
		if len(tuned) != c.Len() {
			t.Errorf("%d users: %d cases in both parts together, want %d", users, len(tuned), c.Len())
		}
		if share := 100 * tuning.Len() / c.Len(); share < backtest.TuningShare-12 || share > backtest.TuningShare+12 {
			t.Errorf("%d users, sample of %d: %d %% of the cases are for tuning", users, sample, share)
		}
		return tuned
	}
	all := side(300, 0)
	for _, fewer := range []map[uint64]bool{side(200, 0), side(300, 150)} {
		for key, tuned := range fewer {
			if all[key] != tuned {
				t.Fatalf("case %x is for tuning: %t, and %t with more cases", key, tuned, all[key])
			}
		}
	}
}

func TestSearchIsDeterministicAndBounded(t *testing.T) {
	cases := casesOf(t, shopLog(t, 200), byColor)
	for _, trials := range []int{1, 3, 40} {
		var reports []Progress
		run := func() *Outcome {
			reports = nil
			o, err := Run(t.Context(), cases, byColor, Options{Trials: trials, Seed: 5, Progress: func(p Progress) { reports = append(reports, p) }})
			must.Succeed(t, err)
			return o
		}
		first, second := run(), run()
		if !first.Strategy.Equal(second.Strategy) || first.Gain != second.Gain {
			t.Errorf("%d trials: two searches differ: %+v, %+v", trials, first.Strategy, second.Strategy)
		}
		if len(reports) != first.Trials+1 || first.Trials > trials {
			t.Errorf("%d reports of %d trials, at most %d", len(reports), first.Trials, trials)
		}
		for i := 1; i < len(reports); i++ {
			if r := reports[i]; r.Trials != i || r.Most != trials || r.Best < reports[i-1].Best {
				t.Errorf("report %d = %+v after %+v", i, r, reports[i-1])
			}
		}
		if trials == 1 && !first.Strategy.Equal(byColor) {
			t.Errorf("one trial, of the given strategy, gave %+v", first.Strategy)
		}
	}
}

// Points with one key must order all objects equally, or the search would not
// judge strategies that differ.
func TestEqualKeysAreEqualOrders(t *testing.T) {
	l := shopLog(t, 80)
	given := byColor
	given.FacetsScoring = append(given.FacetsScoring, strategy.FacetScore{FacetName: "size", Score: 20})
	cases, s := casesOf(t, l, given), newSpace(l, given)
	rng := rand.New(rand.NewPCG(3, 3))
	seen, equal := map[string][]float64{}, 0
	for range 400 {
		p := s.starts[rng.IntN(len(s.starts))]
		for range 3 {
			dim := rng.IntN(len(s.dims))
			p = p.with(dim, rng.IntN(s.dims[dim].levels))
		}
		key := s.key(p)
		if key == "" {
			if backtest.Check(s.strategy(p)) == nil {
				t.Fatalf("%+v scores something but has no key", s.strategy(p))
			}
			continue
		}
		r, err := cases.Judge(t.Context(), s.strategy(p))
		must.Succeed(t, err)
		if before, ok := seen[key]; ok {
			equal++
			if diff := cmp.Diff(before, r.ByCase()); diff != "" {
				t.Fatalf("points with key %q differ:\n%s", key, diff)
			}
		}
		seen[key] = r.ByCase()
	}
	if equal < 10 {
		t.Errorf("only %d points had the key of another", equal)
	}
}

func TestGivenIsTheFirstStart(t *testing.T) {
	l := shopLog(t, 80)
	given := byColor
	given.FacetsScoring = []strategy.FacetScore{{FacetName: "color", Score: 37}, {FacetName: "gone", Score: 4}}
	given.HalfLives = []strategy.HalfLife{strategy.Days(45), strategy.Days(7)}
	given.Aliases = map[string]map[string]string{"color": {"c1": "c2"}}
	s := newSpace(l, given)
	got := s.strategy(s.starts[0])
	if diff := cmp.Diff(given, got); diff != "" {
		t.Errorf("the first start is not the given strategy:\n%s", diff)
	}
	for _, p := range s.starts {
		for dim, level := range p {
			if level < 0 {
				t.Errorf("start %v has no level in dimension %d", p, dim)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	l := shopLog(t, 300)
	cases := casesOf(t, l, byColor)
	few := cases.Subset(func(i int) bool { return i < 25 })
	nothing := byColor
	nothing.FacetsScoring = nil
	for name, run := range map[string]func() error{
		"too many trials": func() error {
			_, err := Run(t.Context(), cases, byColor, Options{Trials: MaxTrials + 1})
			return err
		},
		"no trials": func() error { _, err := Run(t.Context(), cases, byColor, Options{Trials: -1}); return err },
		"few cases": func() error { _, err := Run(t.Context(), few, byColor, Options{}); return err },
		"nothing":   func() error { _, err := Run(t.Context(), cases, nothing, Options{}); return err },
	} {
		var refused *fault.Error
		if err := run(); !errors.As(err, &refused) {
			t.Errorf("%s: error = %v, want a refusal", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, cases, byColor, Options{Progress: func(p Progress) {
		if p.Trials == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error of a cancelled search = %v", err)
	}
}
