package config_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestScoresAs(t *testing.T) {
	app := config.App{StrategyVersion: 6, ScoringVersion: 4}
	for version, want := range map[int64]bool{0: false, 3: false, 4: true, 5: true, 6: true, 7: false} {
		if got := app.ScoresAs(version); got != want {
			t.Errorf("version %d under version 6 of scoring version 4: got %v, want %v", version, got, want)
		}
	}
	if !(config.App{}).ScoresAs(0) || (config.App{}).ScoresAs(1) {
		t.Error("an app without a strategy scores as version 0 alone")
	}
}

// A version is kept while it is among the newest or young.
func TestExpiredVersions(t *testing.T) {
	app := config.App{StrategyVersion: 1_000}
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	const newest = 1_000 - config.KeptVersions
	for _, test := range []struct {
		version int64
		age     time.Duration
		want    bool
	}{
		{newest, config.KeptVersionTime + 1, true},
		{newest, config.KeptVersionTime, false},
		{newest + 1, 10 * config.KeptVersionTime, false},
		{1, config.KeptVersionTime - 1, false},
		{1, 10 * config.KeptVersionTime, true},
		{1_000, 10 * config.KeptVersionTime, false},
	} {
		v := config.Version{Version: test.version, SetAt: now.Add(-test.age)}
		if got := app.Expired(v, now); got != test.want {
			t.Errorf("version %d of 1000, %v old: got %v, want %v", test.version, test.age, got, test.want)
		}
	}
}

// The store in memory deletes what the rule lets it delete.
func TestMemoryDeletesOldVersions(t *testing.T) {
	kept := documents.NewMemory()
	store := config.NewAfter(kept, kept, slog.New(slog.DiscardHandler), 100)
	if err := store.CreateApp(t.Context(), config.App{ID: "shop"}); err != nil {
		t.Fatal(err)
	}
	set := func(n int) {
		t.Helper()
		for i := range n {
			if _, _, err := store.SetStrategy(t.Context(), "shop", strategyOf(i%2)); err != nil {
				t.Fatal(err)
			}
		}
	}
	set(10)
	if err := config.AgeVersions(t.Context(), kept, "shop", 2*config.KeptVersionTime); err != nil {
		t.Fatal(err)
	}
	set(config.KeptVersions - 4)
	versions, err := store.StrategyVersions(t.Context(), "shop")
	if err != nil || len(versions) != config.KeptVersions || versions[len(versions)-1].Version != 107 {
		t.Fatalf("%d versions, error %v; want the last %d, from 107 on", len(versions), err, config.KeptVersions)
	}
	if got, err := store.StrategyVersion(t.Context(), "shop", 107); err != nil || !got.Equal(strategyOf(0)) {
		t.Errorf("version 107: %+v, error %v", got, err)
	}
	if _, err := store.StrategyVersion(t.Context(), "shop", 106); err == nil {
		t.Error("version 106 is still there")
	}
	set(300)
	if versions, err := store.StrategyVersions(t.Context(), "shop"); err != nil || len(versions) != config.KeptVersions-4+300 {
		t.Errorf("%d versions, error %v; want the young ones, all %d", len(versions), err, config.KeptVersions-4+300)
	}
}

// The versions of the arms of an experiment stay until it has ended.
func TestVersionsOfAnExperimentStay(t *testing.T) {
	kept := documents.NewMemory()
	store := config.New(kept, kept, slog.New(slog.DiscardHandler))
	if err := store.CreateApp(t.Context(), config.App{ID: "shop"}); err != nil {
		t.Fatal(err)
	}
	set := func(n int) {
		t.Helper()
		for i := range n {
			if _, _, err := store.SetStrategy(t.Context(), "shop", strategyOf(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func(want ...int64) {
		t.Helper()
		var got []int64
		for v := range int64(12) {
			if _, err := store.StrategyVersion(t.Context(), "shop", v+1); err != nil {
				got = append(got, v+1)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("versions %d are deleted, want %d", got, want)
		}
	}
	set(10)
	if err := config.AgeVersions(t.Context(), kept, "shop", 2*config.KeptVersionTime); err != nil {
		t.Fatal(err)
	}
	x := config.ExperimentsOf(config.NewCached(store, 0))
	arms := []experiment.Arm{{Name: "a", Strategy: 2, Weight: 0.5}, {Name: "b", Strategy: 4, Weight: 0.5}}
	if _, _, err := x.Set(t.Context(), "shop", experiment.Experiment{Name: "x", Arms: arms, Metric: "clicks"},
		time.Now()); err != nil {
		t.Fatal(err)
	}
	set(config.KeptVersions - 4)
	gone(1, 3, 5, 6)
	if _, _, err := x.Stop(t.Context(), "shop", "x", time.Now()); err != nil {
		t.Fatal(err)
	}
	set(1)
	gone(1, 2, 3, 4, 5, 6, 7)
}

func strategyOf(impact int) strategy.Strategy {
	return strategy.Strategy{PersonalizationImpact: impact}
}

// An entry means its attribute, whatever stands around it.
func TestPrivateFacetsUnion(t *testing.T) {
	p := config.PrivateFacets{"a": {"gender", "filterOnly(meta.size)"}, "b": {" age ", "gender"}}
	want := map[string]bool{"gender": true, "filterOnly(meta.size)": true, "meta.size": true, " age ": true, "age": true}
	if got := p.Union(); !maps.Equal(got, want) {
		t.Errorf("union %v, want %v", got, want)
	}
	if got := config.PrivateFacets(nil).Union(); len(got) != 0 {
		t.Errorf("union of nothing: %v", got)
	}
}

// An app has so many feeds, each of which may change all the same.
func TestFeedsAreBounded(t *testing.T) {
	var feeds []config.Feed
	for i := range config.MaxFeeds {
		feeds = append(feeds, config.Feed{Name: fmt.Sprint(i), Version: int64(i + 1), Index: "i", Date: "d"})
	}
	app := config.App{FeedVersion: config.MaxFeeds}
	if _, _, _, err := app.WithFeed(feeds, config.Feed{Name: "more"}, time.Now()); !errors.Is(err, config.ErrTooManyFeeds) {
		t.Errorf("error %v, want that there are too many", err)
	}
	if to, f, changed, err := app.WithFeed(feeds, config.Feed{Name: "7", Index: "other", Date: "d"}, time.Now()); err != nil || !changed || f.Version != config.MaxFeeds+1 || len(to.Dates) != 2 {
		t.Errorf("%+v, changed %v, error %v, dates %v", f, changed, err, to.Dates)
	}
}

// A name has the form that the name of an event has, and a change leaves at most 200.
func TestTrackNamesThatAreRefused(t *testing.T) {
	long := strings.Repeat("n", 65)
	for name, kind := range map[string]string{
		"": "view", " ": "view", " A": "view", "A ": "view", "A  B": "view", "A\tB": "view", "Käufe": "view", long: "view",
		"A": "buy", "B": "View", "C": "instantsearch",
	} {
		if got, err := (config.TrackNames{"A": "click"}).With(config.TrackNames{name: kind}); err == nil {
			t.Errorf("%q of type %q: %v", name, kind, got)
		}
	}
	many, more := config.TrackNames{}, config.TrackNames{long[:64]: "view"}
	for i := range 200 {
		many[fmt.Sprint("Name ", i)] = "view"
	}
	all, err := config.TrackNames(nil).With(many)
	if err != nil || len(all) != 200 {
		t.Fatalf("%d names, %v", len(all), err)
	}
	if _, err := all.With(more); err == nil {
		t.Error("201 names are accepted")
	}
	more["Name 7"] = ""
	if all, err = all.With(more); err != nil || len(all) != 200 || all["Name 7"] != "" || len(many) != 200 {
		t.Errorf("a name in the place of another one: %d, %v", len(all), err)
	}
}
