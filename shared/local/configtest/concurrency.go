package configtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
)

// Concurrent changes of the strategy get different versions, and the last version is
// the active one.
func testStrategiesAtOnce(t *testing.T, s store) {
	create(t, s, "shop")
	setAtOnce(t, "shop", s)
}

// setAtOnce sets 20 strategies at once, on the stores in turn.
func setAtOnce(t *testing.T, app string, stores ...store) {
	const n = 20
	versions := make([]int64, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			set, changed, err := stores[i%len(stores)].SetStrategy(t.Context(), app, scores(i))
			if err != nil || !changed {
				t.Errorf("strategy %d: changed %v, error %v", i, changed, err)
			}
			versions[i] = set.StrategyVersion
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	for i, version := range versions {
		got, err := stores[0].StrategyVersion(t.Context(), app, version)
		read(t, fmt.Sprintf("version %d", version), got, err, scores(i))
	}
	last := slices.Index(versions, n)
	slices.Sort(versions)
	for i, version := range versions {
		if version != int64(i+1) {
			t.Fatalf("got versions %v, want 1 to %d", versions, n)
		}
	}
	active, err := stores[0].App(t.Context(), app)
	if err != nil || active.StrategyVersion != n || !active.Strategy.Equal(scores(last)) {
		t.Errorf("got version %d, error %v; want strategy %d as version %d", active.StrategyVersion, err, last, n)
	}
}

// Concurrent changes of one app do not undo each other.
func testChangesAtOnce(t *testing.T, s store) {
	create(t, s, "shop")
	changes := []func() error{
		func() error { _, _, err := s.SetStrategy(t.Context(), "shop", scores(1)); return err },
		func() error { return s.SetRetention(t.Context(), "shop", 30) },
		func() error { return s.PutKey(t.Context(), "shop", config.Key{Hash: hash("a")}) },
		func() error {
			_, err := s.SetIndexSettings(t.Context(), "shop", "products", catalog.Change{AttributesForFaceting: []string{"a"}})
			return err
		},
		func() error {
			_, err := s.SetIndexSettings(t.Context(), "shop", "articles", catalog.Change{AttributesForFaceting: []string{"b"}})
			return err
		},
		func() error { return s.SetPrivateFacets(t.Context(), "shop", "products", []string{"a"}) },
		func() error { return s.SetPrivateFacets(t.Context(), "shop", "articles", []string{"b"}) },
		func() error { return s.CreateApp(t.Context(), config.App{ID: "other"}) },
	}
	var group sync.WaitGroup
	for i, change := range changes {
		group.Go(func() {
			if err := change(); err != nil {
				t.Errorf("change %d: %v", i, err)
			}
		})
	}
	group.Wait()
	app, err := s.App(t.Context(), "shop")
	if err != nil || app.StrategyVersion != 1 || app.RetentionDays != 30 {
		t.Errorf("got %+v, error %v; want both changes", app, err)
	}
	read(t, "private facets", app.PrivateFacets, err, config.PrivateFacets{"products": {"a"}, "articles": {"b"}})
	if _, err := s.Key(t.Context(), "shop", hash("a")); err != nil {
		t.Errorf("key: %v", err)
	}
	for index, attribute := range map[string]string{"products": "a", "articles": "b"} {
		got, err := s.IndexSettings(t.Context(), "shop", index)
		read(t, index, got, err, catalog.Settings{AttributesForFaceting: []string{attribute}, Version: 1})
	}
}

// parentsAtOnce adds more parents at once than an app may have, on the stores in
// turn.
func parentsAtOnce(t *testing.T, stores ...store) {
	const app, more = "parents", 3
	create(t, stores[0], app)
	refused := make([]error, config.MaxParents+more)
	var group sync.WaitGroup
	for i := range refused {
		group.Go(func() {
			key := config.Key{Hash: hash(string(rune('0' + i))), Parent: []byte("sealed")}
			refused[i] = stores[i%len(stores)].PutKey(t.Context(), app, key)
		})
	}
	group.Wait()
	n := 0
	for i, err := range refused {
		if err != nil {
			wantError(t, fmt.Sprintf("parent %d", i), err, config.ErrTooManyParents)
			n++
		}
	}
	parents, err := stores[0].Parents(t.Context(), app)
	if err != nil || n != more || len(parents) != config.MaxParents {
		t.Fatalf("%d parents are refused, the app has %d (%v); want %d and %d", n, len(parents), err, more, config.MaxParents)
	}
	if err := stores[0].PutKey(t.Context(), app, parents[0]); err != nil {
		t.Errorf("change one of them: %v", err)
	}
	if err := stores[0].PutKey(t.Context(), app, config.Key{Hash: hash("f")}); err != nil {
		t.Errorf("add a key that is not a parent: %v", err)
	}
}
