package configtest

import (
	"errors"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// The scoring version changes with the scoring alone.
func testScoringVersion(t *testing.T, s store) {
	create(t, s, "shop")
	set := scores(1)
	ranking := strategy.DefaultRanking()
	allow := func(values ...string) func() {
		return func() { set.AllowedValues = map[string]strategy.ValueSet{"a": strategy.SetOf(values...)} }
	}
	steps := []struct {
		what    string
		change  func()
		version int64
		scoring int64
	}{
		{"the first", func() {}, 1, 1},
		{"impact", func() { set.PersonalizationImpact = 3 }, 2, 1},
		{"ranking", func() { set.Ranking = strategy.PlainRanking() }, 3, 1},
		{"other ranking", func() { ranking.Pairs.Weight = 1; set.Ranking = ranking.Ranking() }, 4, 1},
		{"the same ranking", func() { set.Ranking = ranking.Ranking() }, 4, 1},
		{"event score", func() { set.EventsScoring = scores(2).EventsScoring }, 5, 5},
		{"facet score", func() { set.FacetsScoring = []strategy.FacetScore{{FacetName: "brand", Score: 51}} }, 6, 6},
		{"no ranking", func() { set.Ranking = nil }, 7, 6},
		{"half-lives", func() { set.HalfLives = strategy.InDays(30) }, 8, 8},
		{"order of half-lives", func() { set.HalfLives = strategy.InDays(7, 30) }, 9, 9},
		{"aliases and impact", func() { set.Aliases = map[string]map[string]string{"a": {"b": "c"}}; set.PersonalizationImpact = 4 }, 10, 10},
		{"impact again", func() { set.PersonalizationImpact = 5 }, 11, 10},
		{"no ignored values", func() { set.IgnoredValues = []string{} }, 12, 12},
		{"other ignored values", func() { set.IgnoredValues = []string{"N/A"} }, 13, 13},
		{"allowed values", allow("b", "c"), 14, 14},
		{"the same allowed values", allow("c", "b"), 14, 14},
		{"the default again", func() { set.IgnoredValues, set.AllowedValues = nil, nil }, 15, 15},
		{"a placement", func() { set.Placements = map[string]*strategy.Ranking{"home": {}} }, 16, 15},
	}
	for _, step := range steps {
		step.change()
		got, _, err := s.SetStrategy(t.Context(), "shop", set)
		if err != nil || got.StrategyVersion != step.version || got.ScoringVersion != step.scoring {
			t.Fatalf("%s: set as version %d, scoring version %d, error %v; want %d and %d",
				step.what, got.StrategyVersion, got.ScoringVersion, err, step.version, step.scoring)
		}
		app, err := s.App(t.Context(), "shop")
		if err != nil || app.StrategyVersion != step.version || app.ScoringVersion != step.scoring ||
			!app.Strategy.Equal(set) {
			t.Errorf("%s: read %+v, error %v", step.what, app, err)
		}
	}
	// Other changes of the app keep it.
	if err := s.SetRetention(t.Context(), "shop", 30); err != nil {
		t.Fatal(err)
	}
	if app, err := s.App(t.Context(), "shop"); err != nil || app.ScoringVersion != 15 || app.StrategyVersion != 16 {
		t.Errorf("after a change of the retention: %+v, error %v", app, err)
	}
}

// Versions are listed newest first.
func testStrategyVersions(t *testing.T, s store) {
	_, err := s.StrategyVersions(t.Context(), "shop")
	wantError(t, "versions of an unknown app", err, config.ErrNotFound)
	create(t, s, "shop")
	create(t, s, "other")
	got, err := s.StrategyVersions(t.Context(), "shop")
	read(t, "no versions", got, err, nil)
	const n = 9
	before := time.Now().Truncate(time.Microsecond)
	for i := range n {
		set := scores(1 + i/2%2) // scoring changes with every second version
		set.PersonalizationImpact = i % 2
		if _, _, err := s.SetStrategy(t.Context(), "shop", set); err != nil {
			t.Fatal(err)
		}
	}
	got, err = s.StrategyVersions(t.Context(), "shop")
	if err != nil || len(got) != n {
		t.Fatalf("%d versions, error %v; want %d", len(got), err, n)
	}
	for i, v := range got {
		want := int64(n - i)
		if v.Version != want || v.ScoringVersion != want-(want+1)%2 || v.SetAt.Before(before) || v.SetAt.After(time.Now()) {
			t.Errorf("entry %d is %+v, want version %d of scoring version %d, set since %v", i, v, want, want-(want+1)%2, before)
		}
	}
	for _, v := range []int64{1, 2, n} {
		kept, err := s.StrategyVersion(t.Context(), "shop", v)
		if err != nil || kept.PersonalizationImpact != int(v-1)%2 {
			t.Errorf("version %d: %+v, error %v", v, kept, err)
		}
	}
	if _, _, err := s.PublishStrategy(t.Context(), "shop", scores(99), config.Publication{Note: "why"}); err != nil {
		t.Fatal(err)
	}
	if got, err = s.StrategyVersions(t.Context(), "shop"); err != nil || got[0].Note != "why" || got[1].Note != "" {
		t.Errorf("versions with a note: %+v, error %v", got, err)
	}
	others, err := s.StrategyVersions(t.Context(), "other")
	read(t, "versions of another app", others, err, nil)
	if _, err := s.StrategyVersion(t.Context(), "other", 1); !errors.Is(err, config.ErrNotFound) {
		t.Errorf("version of another app: error %v", err)
	}
}

// A strategy that is set for one version never replaces another.
func testStrategyCondition(t *testing.T, s store) {
	publish := func(score int, version int64) (config.App, bool, error) {
		return s.PublishStrategy(t.Context(), "shop", scores(score), config.Publication{IfVersion: &version})
	}
	_, _, err := publish(1, 0)
	wantError(t, "a strategy of an unknown app", err, config.ErrNotFound)
	create(t, s, "shop")
	for i, step := range []struct {
		score     int
		ifVersion int64
		version   int64 // active afterwards
		changed   bool
		refused   bool
	}{
		{1, 1, 0, false, true},
		{1, 0, 1, true, false},
		{1, 0, 1, false, false}, // sent again
		{1, 1, 1, false, false},
		{2, 0, 1, false, true},
		{2, 2, 1, false, true},
		{2, 1, 2, true, false},
		{2, 1, 2, false, false},
		{1, 1, 2, false, true},
	} {
		set, changed, err := publish(step.score, step.ifVersion)
		var other *config.OtherVersionError
		if errors.As(err, &other) != step.refused ||
			!step.refused && (err != nil || set.StrategyVersion != step.version) || changed != step.changed {
			t.Errorf("step %d: version %d, changed %v, error %v; want %+v", i, set.StrategyVersion, changed, err, step)
		}
		if other != nil && *other != (config.OtherVersionError{Active: step.version, Expected: step.ifVersion}) {
			t.Errorf("step %d: refused with %+v, want version %d active", i, *other, step.version)
		}
		app, err := s.App(t.Context(), "shop")
		if err != nil || app.StrategyVersion != step.version {
			t.Errorf("step %d: version %d is active, error %v; want %d", i, app.StrategyVersion, err, step.version)
		}
	}
	// Of callers that saw the same version, one sets its strategy.
	const callers = 6
	errs := make(chan error, callers)
	for i := range callers {
		go func() {
			_, _, err := publish(10+i, 2)
			errs <- err
		}()
	}
	set := 0
	for range callers {
		var other *config.OtherVersionError
		switch err := <-errs; {
		case err == nil:
			set++
		case !errors.As(err, &other):
			t.Errorf("set at once: %v", err)
		}
	}
	app, err := s.App(t.Context(), "shop")
	if err != nil || set != 1 || app.StrategyVersion != 3 {
		t.Errorf("%d of %d callers set a strategy, version %d is active, error %v; want 1 and version 3", set,
			callers, app.StrategyVersion, err)
	}
}
