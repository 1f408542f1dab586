package configtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// home are placements of a strategy.
var home = map[string]*strategy.Ranking{"home": {Freshness: &strategy.FreshnessRanking{Attribute: "addedAt"}}}

// ranked is scores(n) with another impact.
func ranked(n, impact int) strategy.Strategy {
	s := scores(n)
	s.PersonalizationImpact = impact
	return s
}

// compared gives an app three strategies, of which the last is active and scores as the second does, and returns its
// experiments and one between these two.
func compared(t *testing.T, s store, app string) (config.Experiments, experiment.Experiment) {
	create(t, s, app)
	setStrategy(t, s, app, scores(1), 1, true)
	placed := ranked(2, 70)
	placed.Placements = home
	setStrategy(t, s, app, placed, 2, true)
	setStrategy(t, s, app, ranked(2, 30), 3, true)
	return config.ExperimentsOf(config.NewCached(s.Source, 0)), experiment.Experiment{
		Name: "impact", Coverage: 1, Metric: "clicks",
		Arms: []experiment.Arm{{Name: "as-is", Strategy: 3, Weight: 0.5}, {Name: "more", Strategy: 2, Weight: 0.5}},
	}
}

// refused checks that an error is a refusal with these words in it.
func refused(t *testing.T, what string, err error, words string) {
	t.Helper()
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Invalid || !strings.Contains(f.Message, words) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, words)
	}
}

// An experiment begins, changes, ends and stays, and another one takes its place.
func testExperiments(t *testing.T, s store) {
	x, first := compared(t, s, "shop")
	now := time.Now().Truncate(time.Millisecond).UTC()
	want := first
	want.Seed, want.StartAt = "impact", now
	for i, changed := range []bool{true, false} {
		set, got, err := x.Set(t.Context(), "shop", first, now)
		if err != nil || got != changed || !cmp.Equal(set, want) {
			t.Fatalf("set %d: %v, %+v, %v; want %v", i, got, set, err, want)
		}
		first.StartAt, now = time.Time{}, now.Add(time.Minute)
	}
	wider := first
	wider.Coverage, wider.Hypothesis, wider.EndAt = 0.5, "more clicks", now.Add(time.Hour)
	want.Coverage, want.Hypothesis, want.EndAt = wider.Coverage, wider.Hypothesis, wider.EndAt
	if set, changed, err := x.Set(t.Context(), "shop", wider, now); err != nil || !changed || !cmp.Equal(set, want) {
		t.Fatalf("change: %v, %+v, %v; want %+v", changed, set, err, want)
	}
	app, err := s.App(t.Context(), "shop")
	read(t, "app", app.Experiment, err, want)
	read(t, "rankings", app.ArmRankings, nil, []config.ArmRanking{{Impact: 30}, {Impact: 70, Placements: home}})
	app.Experiment.Arms, app.ArmRankings = []experiment.Arm{{Name: "more", Strategy: 2, Weight: 1}}, app.ArmRankings[1:]
	app.Experiment.Coverage = 1
	if in, _ := app.InArm("ann", now); in.StrategyVersion != 2 || !cmp.Equal(in.Strategy.Placements, home) {
		t.Errorf("a user of the arm has %+v", in.Strategy)
	}

	now = now.Add(time.Minute)
	for i, changed := range []bool{true, false} {
		stopped, got, err := x.Stop(t.Context(), "shop", "impact", now.Add(time.Duration(i)))
		want.StoppedAt = now
		if err != nil || got != changed || !cmp.Equal(stopped, want) {
			t.Fatalf("stop %d: %v, %+v, %v; want %+v", i, got, stopped, err, want)
		}
	}
	second := first
	second.Name, second.StartAt = "again", now.Add(time.Hour)
	if _, _, err := x.Set(t.Context(), "shop", second, now); err != nil {
		t.Fatal(err)
	}
	second.Seed = "again"
	all, err := x.All(t.Context(), "shop")
	read(t, "experiments", all, err, []experiment.Experiment{second, want})
	got, err := x.Get(t.Context(), "shop", "impact")
	read(t, "experiment", got, err, want)
	for _, name := range []string{"impact", "again"} {
		if _, _, err := x.Stop(t.Context(), "shop", name, now); err != nil {
			t.Errorf("stop %s: %v", name, err)
		}
	}
	_, err1 := x.Get(t.Context(), "shop", "none")
	_, _, err2 := x.Stop(t.Context(), "shop", "none", now)
	_, _, err3 := x.Promote(t.Context(), "shop", "none", "more", now)
	_, err4 := x.All(t.Context(), "none")
	_, _, err5 := x.Set(t.Context(), "none", first, now)
	for i, err := range []error{err1, err2, err3, err4, err5} {
		if !errors.Is(err, config.ErrNotFound) {
			t.Errorf("missing %d: %v", i, err)
		}
	}
	for i := range 100 {
		next := first
		next.Name = fmt.Sprint("n", i)
		_, _, err1 := x.Set(t.Context(), "shop", next, now.Add(time.Duration(i)*time.Second))
		_, _, err2 := x.Stop(t.Context(), "shop", next.Name, now.Add(time.Duration(i)*time.Second))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
	}
	all, err = x.All(t.Context(), "shop")
	if err != nil || len(all) != 100 || all[0].Name != "again" || all[99].Name != "n1" {
		t.Errorf("%d experiments are kept, from %s to %s, error %v", len(all), all[0].Name, all[len(all)-1].Name, err)
	}
}

func testExperimentsRefused(t *testing.T, s store) {
	x, valid := compared(t, s, "shop")
	now := time.Now()
	set := func(what, words string, change func(*experiment.Experiment)) {
		t.Helper()
		e := valid
		e.Arms = append([]experiment.Arm{}, valid.Arms...)
		change(&e)
		_, _, err := x.Set(t.Context(), "shop", e, now)
		refused(t, what, err, words)
	}
	if _, err := s.SetHoldout(t.Context(), "shop", experiment.Holdout{Share: 0.1, Seed: "held"}); err != nil {
		t.Fatal(err)
	}
	set("no version", `arm "more": strategy 9 does not exist`, func(e *experiment.Experiment) { e.Arms[1].Strategy = 9 })
	set("another scoring", `arm "more": strategy 1 scores otherwise than version 3, which is active: arms must share`,
		func(e *experiment.Experiment) { e.Arms[1].Strategy = 1 })
	set("no weight", "weight 0: must be", func(e *experiment.Experiment) { e.Arms[1].Weight = 0 })
	set("a late start", "is in the past: leave it out", func(e *experiment.Experiment) { e.StartAt = now.Add(-time.Hour) })
	set("an end before the start", "endAt", func(e *experiment.Experiment) { e.EndAt = now.Add(-time.Hour) })
	set("an early end", "is in the past", func(e *experiment.Experiment) {
		e.StartAt, e.EndAt = now.Add(-time.Second), now.Add(-time.Millisecond)
	})
	set("the name of the holdout", "choose another one", func(e *experiment.Experiment) { e.Name = "holdout" })
	set("the seed of the holdout", "would take its users from the first arm",
		func(e *experiment.Experiment) { e.Seed = "held" })
	other := ranked(2, 30)
	other.Ranking = &strategy.Ranking{Popularity: &strategy.PopularityRanking{HalfLife: strategy.Days(3)}}
	setStrategy(t, s, "shop", other, 4, true)
	set("another popularity", "has another ranking.popularity.halfLife", func(*experiment.Experiment) {})
	setStrategy(t, s, "shop", ranked(2, 30), 5, true)

	if _, _, err := x.Set(t.Context(), "shop", valid, now); err != nil {
		t.Fatal(err)
	}
	set("two at once", `"impact" has not ended, and an app has one experiment at a time`,
		func(e *experiment.Experiment) { e.Name = "second" })
	for what, change := range map[string]func(*experiment.Experiment){
		`the name of arms[1] must stay more`:      func(e *experiment.Experiment) { e.Arms[1].Name = "most" },
		`the strategy of arm "more" must stay 2`:  func(e *experiment.Experiment) { e.Arms[1].Strategy = 3 },
		`the seed must stay impact`:               func(e *experiment.Experiment) { e.Seed = "other" },
		`startAt must stay`:                       func(e *experiment.Experiment) { e.StartAt = now.Add(time.Hour) },
		`the metric must stay clicks`:             func(e *experiment.Experiment) { e.Metric = "revenue" },
		`the number of arms must stay 2 while it`: func(e *experiment.Experiment) { e.Arms = moreArms(e.Arms) },
	} {
		set(what, what, change)
	}
	_, _, err := s.SetStrategy(t.Context(), "shop", scores(7))
	refused(t, "another scoring while it runs", err, "stop it before you change events")
	_, err = s.SetHoldout(t.Context(), "shop", experiment.Holdout{Share: 0.1, Seed: "impact"})
	refused(t, "a holdout with its seed", err, `the experiment "impact" has the seed`)
	setStrategy(t, s, "shop", ranked(2, 31), 6, true)
	if _, _, err := x.Stop(t.Context(), "shop", "impact", now); err != nil {
		t.Fatal(err)
	}
	set("one that has ended", "it has ended", func(*experiment.Experiment) {})
	if _, err = s.SetHoldout(t.Context(), "shop", experiment.Holdout{Share: 0.1, Seed: "impact"}); err != nil {
		t.Error(err)
	}
	set("the seed of a new holdout", "choose another seed",
		func(e *experiment.Experiment) { e.Name, e.Seed = "next", "impact" })
}

// moreArms returns arms with one more.
func moreArms(arms []experiment.Arm) []experiment.Arm {
	arms[1].Weight = 0.3
	return append(arms, experiment.Arm{Name: "third", Strategy: 3, Weight: 0.2})
}

// An arm that is promoted becomes the active strategy, under a version of its own, and its profiles stay valid.
func testExperimentStrategies(t *testing.T, s store) {
	x, e := compared(t, s, "shop")
	now := time.Now()
	if _, _, err := x.Set(t.Context(), "shop", e, now); err != nil {
		t.Fatal(err)
	}
	_, _, err := x.Promote(t.Context(), "shop", "impact", "none", now)
	refused(t, "no arm", err, `it has no arm "none"`)
	for i := range 2 {
		promoted, app, err := x.Promote(t.Context(), "shop", "impact", "more", now)
		want := ranked(2, 70)
		want.Placements = home
		if err != nil || promoted.Promoted != "more" || promoted.StoppedAt.IsZero() || app.StrategyVersion != 4 ||
			app.ScoringVersion != 2 || !app.Strategy.Equal(want) || !app.Experiment.Ended(now) {
			t.Fatalf("promotion %d: %+v, strategy %d %+v, %v", i, promoted, app.StrategyVersion, app.Strategy, err)
		}
	}
	versions, err := s.StrategyVersions(t.Context(), "shop")
	if err != nil || len(versions) != 4 || versions[0].Note != "arm more of experiment impact" {
		t.Errorf("versions are %+v, %v", versions, err)
	}
	setStrategy(t, s, "shop", scores(8), 5, true)
	_, _, err = x.Promote(t.Context(), "shop", "impact", "more", now)
	refused(t, "another scoring", err, "which is active: restore it as any other version")
}
