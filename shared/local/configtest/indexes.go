package configtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
)

func testIndexSettings(t *testing.T, s store) {
	create(t, s, "shop")
	create(t, s, "other")
	_, err := s.IndexSettings(t.Context(), "shop", "products")
	wantError(t, "settings that do not exist yet", err, config.ErrNotFound)
	steps := []struct {
		attributes []string
		want       int64
	}{
		{[]string{}, 1}, // an empty list is a setting too
		{[]string{}, 1},
		{[]string{"brand", "searchable(colour)"}, 2},
		{[]string{"brand", "searchable(colour)"}, 2},
		{[]string{"searchable(colour)", "brand"}, 3},
		{[]string{}, 4},
	}
	for i, step := range steps {
		set, err := s.SetIndexSettings(t.Context(), "shop", "products",
			catalog.Change{AttributesForFaceting: step.attributes})
		if err != nil || set.Version != step.want {
			t.Fatalf("step %d: got %+v, error %v; want version %d", i, set, err, step.want)
		}
		got, err := s.IndexSettings(t.Context(), "shop", "products")
		read(t, fmt.Sprintf("settings after step %d", i), got, err,
			catalog.Settings{AttributesForFaceting: step.attributes, Version: step.want})
	}
	_, err = s.IndexSettings(t.Context(), "other", "products")
	wantError(t, "the same index of another app", err, config.ErrNotFound)
}

// Private facets belong to the app, and change neither a version nor ChangedAt.
func testPrivateFacets(t *testing.T, s store) {
	create(t, s, "shop")
	create(t, s, "other")
	if _, err := s.SetIndexSettings(t.Context(), "shop", "products",
		catalog.Change{AttributesForFaceting: []string{"brand"}}); err != nil {
		t.Fatal(err)
	}
	before, err := s.App(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	const odd = "__x__/~\x00\n\"é"
	steps := []struct {
		index  string
		facets []string
		want   config.PrivateFacets
	}{
		{"products", nil, nil},
		{"products", []string{"gender", "filterOnly(meta.size)"},
			config.PrivateFacets{"products": {"gender", "filterOnly(meta.size)"}}},
		{odd, []string{odd}, config.PrivateFacets{"products": {"gender", "filterOnly(meta.size)"}, odd: {odd}}},
		{"products", []string{"age"}, config.PrivateFacets{"products": {"age"}, odd: {odd}}},
		{"products", []string{}, config.PrivateFacets{odd: {odd}}},
		{odd, nil, nil},
	}
	for i, step := range steps {
		if err := s.SetPrivateFacets(t.Context(), "shop", step.index, step.facets); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		want := before
		want.PrivateFacets = step.want
		got, err := s.App(t.Context(), "shop")
		read(t, fmt.Sprintf("app after step %d", i), got, err, want)
	}
	if err := s.SetPrivateFacets(t.Context(), "shop", "products", []string{"gender"}); err != nil {
		t.Fatal(err)
	}
	// Other changes keep them.
	if _, _, err := s.SetStrategy(t.Context(), "shop", scores(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.SetRetention(t.Context(), "shop", 7); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetIndexSettings(t.Context(), "shop", "products",
		catalog.Change{AttributesForFaceting: []string{"color"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateLog(t.Context(), "shop",
		func(a *config.App) error { a.PrivateFacets, a.Log = nil, both; return nil }); err != nil {
		t.Fatal(err)
	}
	app, err := s.App(t.Context(), "shop")
	read(t, "private facets after other changes", app.PrivateFacets, err, config.PrivateFacets{"products": {"gender"}})
	app, err = s.App(t.Context(), "other")
	read(t, "private facets of another app", app.PrivateFacets, err, nil)
	settings, err := s.IndexSettings(t.Context(), "shop", "products")
	read(t, "settings", settings, err, catalog.Settings{AttributesForFaceting: []string{"color"}, Version: 2})
}

// An app has so many private facets that it can be read with each request.
func testPrivateFacetsBounded(t *testing.T, s store) {
	create(t, s, "shop")
	large := make([]string, 60)
	for i := range large {
		large[i] = strings.Repeat("x", 500)
	}
	for _, index := range []string{"a", "b"} {
		if err := s.SetPrivateFacets(t.Context(), "shop", index, large); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, "a third large list", s.SetPrivateFacets(t.Context(), "shop", "c", large), config.ErrTooManyPrivate)
	app, err := s.App(t.Context(), "shop")
	read(t, "after the refusal", app.PrivateFacets, err, config.PrivateFacets{"a": large, "b": large})
	// Characters that JSON escapes count as the bytes that they take.
	escaped := []string{strings.Repeat("\x00", 500), strings.Repeat("\x00", 400), strings.Repeat("\x00", 300)}
	wantError(t, "a third list that escapes make large", s.SetPrivateFacets(t.Context(), "shop", "c", escaped),
		config.ErrTooManyPrivate)
	if err := s.SetPrivateFacets(t.Context(), "shop", "a", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.SetPrivateFacets(t.Context(), "shop", "c", large); err != nil {
		t.Errorf("in place of another: %v", err)
	}
}

// Different valid names are different indexes.
func testIndexNames(t *testing.T, s store) {
	create(t, s, "shop")
	names := []string{"a/b", "a~sb", "a~b", "a~~b", ".", "..", "~p.", "__x__", "~p__x__", "é ü/%2F", "\x00\n",
		strings.Repeat("/", 512), strings.Repeat("~", 512), strings.Repeat("x", 512)}
	for i, name := range names {
		set, err := s.SetIndexSettings(t.Context(), "shop", name,
			catalog.Change{AttributesForFaceting: []string{fmt.Sprint(i)}})
		if err != nil || set.Version != 1 {
			t.Fatalf("set %.20q: got %+v, error %v; want version 1", name, set, err)
		}
	}
	for i, name := range names {
		got, err := s.IndexSettings(t.Context(), "shop", name)
		read(t, name, got, err, catalog.Settings{AttributesForFaceting: []string{fmt.Sprint(i)}, Version: 1})
	}
	slices.Sort(names)
	create(t, s, "other")
	for app, want := range map[string][]string{"shop": names, "other": {}} {
		if got, err := s.SettingsIndexes(t.Context(), app); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has settings of the indexes %q, %v; want %q", app, got, err, want)
		}
	}
}

// Bands need no list of attributes: until there is one, all are facets.
func testBandsWithoutFacets(t *testing.T, s store) {
	create(t, s, "shop")
	sizes := catalog.Bands{"size": {40.5}}
	for i, step := range []struct {
		change catalog.Change
		want   catalog.Settings
	}{
		{catalog.Change{NumericBands: sizes}, catalog.Settings{NumericBands: sizes, BandsVersion: 1, Version: 1}},
		{catalog.Change{AttributesForFaceting: []string{}},
			catalog.Settings{AttributesForFaceting: []string{}, NumericBands: sizes, BandsVersion: 1, Version: 2}},
	} {
		set, err := s.SetIndexSettings(t.Context(), "shop", "hats", step.change)
		read(t, fmt.Sprintf("answer of step %d", i), set, err, step.want)
		stored, err := s.IndexSettings(t.Context(), "shop", "hats")
		read(t, fmt.Sprintf("settings after step %d", i), stored, err, step.want)
	}
}

// Numeric bands change the settings of their index and the app at once, and what is
// applied stays with the app.
func testNumericBands(t *testing.T, s store) {
	create(t, s, "shop")
	prices, sizes := catalog.Bands{"price": {0, 50, 100}}, catalog.Bands{"size": {40.5}}
	steps := []struct {
		index     string
		change    catalog.Change
		want      catalog.Settings
		wantBands config.NumericBands
		changes   bool // the app
	}{
		{"products", catalog.Change{AttributesForFaceting: []string{"filterOnly(price)"}, NumericBands: prices},
			catalog.Settings{AttributesForFaceting: []string{"filterOnly(price)"}, NumericBands: prices, BandsVersion: 1,
				Version: 1},
			config.NumericBands{"products": {Version: 1, Bands: prices}}, true},
		{"products", catalog.Change{NumericBands: prices},
			catalog.Settings{AttributesForFaceting: []string{"filterOnly(price)"}, NumericBands: prices, BandsVersion: 1,
				Version: 1},
			config.NumericBands{"products": {Version: 1, Bands: prices}}, false},
		{"products", catalog.Change{AttributesForFaceting: []string{"size"}},
			catalog.Settings{AttributesForFaceting: []string{"size"}, NumericBands: prices, BandsVersion: 1, Version: 2},
			config.NumericBands{"products": {Version: 1, Bands: prices}}, false},
		{"products", catalog.Change{NumericBands: sizes},
			catalog.Settings{AttributesForFaceting: []string{"size"}, NumericBands: sizes, BandsVersion: 3, Version: 3},
			config.NumericBands{"products": {Version: 3, Bands: sizes}}, true},
		{"shoes", catalog.Change{AttributesForFaceting: []string{"size"}, NumericBands: sizes},
			catalog.Settings{AttributesForFaceting: []string{"size"}, NumericBands: sizes, BandsVersion: 1, Version: 1},
			config.NumericBands{"products": {Version: 3, Bands: sizes}, "shoes": {Version: 1, Bands: sizes}}, true},
		{"products", catalog.Change{NumericBands: catalog.Bands{}},
			catalog.Settings{AttributesForFaceting: []string{"size"}, BandsVersion: 4, Version: 4},
			config.NumericBands{"products": {Version: 4}, "shoes": {Version: 1, Bands: sizes}}, true},
	}
	for i, step := range steps {
		before, err := s.App(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		pass(before.ChangedAt)
		set, err := s.SetIndexSettings(t.Context(), "shop", step.index, step.change)
		read(t, fmt.Sprintf("answer of step %d", i), set, err, step.want)
		stored, err := s.IndexSettings(t.Context(), "shop", step.index)
		read(t, fmt.Sprintf("settings after step %d", i), stored, err, step.want)
		app, err := s.App(t.Context(), "shop")
		read(t, fmt.Sprintf("bands of the app after step %d", i), app.NumericBands, err, step.wantBands)
		if app.ChangedAt.After(before.ChangedAt) != step.changes {
			t.Errorf("step %d: the app changed at %v, and before at %v", i, app.ChangedAt, before.ChangedAt)
		}
	}
	// A version that is no longer current is not applied.
	if err := s.ApplyBands(t.Context(), "shop", map[string]int64{"products": 3, "shoes": 1, "gone": 7}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.SetStrategy(t.Context(), "shop", scores(1)); err != nil {
		t.Fatal(err)
	}
	app, err := s.App(t.Context(), "shop")
	read(t, "bands after ApplyBands", app.NumericBands, err,
		config.NumericBands{"products": {Version: 4}, "shoes": {Version: 1, Bands: sizes, Applied: 1}})
	read(t, "what is left to apply", app.NumericBands.Unapplied(), nil, map[string]int64{"products": 4})
	wantError(t, "bands of an unknown app", s.ApplyBands(t.Context(), "gone", nil), config.ErrNotFound)
}

// Bands that are refused change nothing.
func testNumericBandsRefused(t *testing.T, s store) {
	create(t, s, "shop")
	_, err := s.SetIndexSettings(t.Context(), "shop", "products", catalog.Change{
		AttributesForFaceting: []string{"brand"}, NumericBands: catalog.Bands{"price": {1}},
	})
	var refusal *fault.Error
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, `"price"`) {
		t.Errorf("bands of an attribute that is no facet: %v", err)
	}
	_, err = s.IndexSettings(t.Context(), "shop", "products")
	wantError(t, "settings after a refused change", err, config.ErrNotFound)

	large := catalog.Change{NumericBands: catalog.Bands{}}
	for f := range catalog.MaxBandedFacets {
		name, limits := fmt.Sprintf("facet%d", f), make([]float64, catalog.MaxBandLimits)
		for i := range limits {
			limits[i] = float64(i) + 1e8 + 0.1234567
		}
		large.AttributesForFaceting = append(large.AttributesForFaceting, name)
		large.NumericBands[name] = limits
	}
	_, err = s.SetIndexSettings(t.Context(), "shop", "products", large)
	wantError(t, "too many bands", err, config.ErrTooManyBands)
	_, err = s.IndexSettings(t.Context(), "shop", "products")
	wantError(t, "settings after too many bands", err, config.ErrNotFound)
}

// Callers that change several indexes and the strategy at once lose nothing.
func testNumericBandsAtOnce(t *testing.T, s store) {
	create(t, s, "shop")
	want, group := config.NumericBands{}, sync.WaitGroup{}
	for i := range 6 {
		index, bands := fmt.Sprint("index", i), catalog.Bands{"price": {float64(i)}}
		want[index] = config.IndexBands{Version: 1, Bands: bands}
		group.Go(func() {
			change := catalog.Change{AttributesForFaceting: []string{"price"}, NumericBands: bands}
			if _, err := s.SetIndexSettings(t.Context(), "shop", index, change); err != nil {
				t.Error(err)
			}
		})
	}
	group.Go(func() {
		if _, _, err := s.SetStrategy(t.Context(), "shop", scores(1)); err != nil {
			t.Error(err)
		}
	})
	group.Wait()
	app, err := s.App(t.Context(), "shop")
	read(t, "bands set at once", app.NumericBands, err, want)
}
