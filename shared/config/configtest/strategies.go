package configtest

import (
	"errors"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/strategy"
)

// The scoring version changes with the scoring alone.
func testScoringVersion(t *testing.T, s config.Store) {
	create(t, s, "shop")
	set := scores(1)
	ranking := strategy.DefaultRanking()
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
	}
	for _, step := range steps {
		step.change()
		got, _, err := s.SetStrategy(t.Context(), "shop", set)
		if err != nil || got.StrategyVersion != step.version || got.ScoringVersion != step.scoring {
			t.Fatalf("%s: set as version %d, scoring version %d, error %v; want %d and %d",
				step.what, got.StrategyVersion, got.ScoringVersion, err, step.version, step.scoring)
		}
		app, err := s.App(t.Context(), "shop")
		if err != nil || app.StrategyVersion != step.version || app.ScoringVersion != step.scoring || !app.Strategy.Equal(set) {
			t.Errorf("%s: read %+v, error %v", step.what, app, err)
		}
	}
	// Other changes of the app keep it.
	if err := s.SetRetention(t.Context(), "shop", 30); err != nil {
		t.Fatal(err)
	}
	if app, err := s.App(t.Context(), "shop"); err != nil || app.ScoringVersion != 10 || app.StrategyVersion != 11 {
		t.Errorf("after a change of the retention: %+v, error %v", app, err)
	}
}

// Versions are listed newest first.
func testStrategyVersions(t *testing.T, s config.Store) {
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
	if _, _, err := s.SetNotedStrategy(t.Context(), "shop", scores(99), "why"); err != nil {
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
