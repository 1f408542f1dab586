package store_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

func testCrowdSwaps(t *testing.T, s fixture) {
	ctx := t.Context()
	none, stored, err := crowd.ReadManifest(ctx, s.Crowd, slog.New(slog.DiscardHandler), app, "shoes")
	if err != nil || none.Current.Name != "" || stored != nil {
		t.Fatalf("manifest of a new index %+v, %q, %v", none, stored, err)
	}
	first := crowd.Manifest{Format: 1, Current: crowd.Generation{Name: "g1", AsOf: 5, HalfLife: 7, Objects: 2, Events: 3, Users: 4, Share: 1}}
	second := crowd.Manifest{Format: 1, Current: crowd.Generation{Name: "g2", Share: 0.5}, Previous: "g1"}
	swap := func(stored []byte, m crowd.Manifest, want bool) {
		t.Helper()
		if ok, err := crowd.SwapManifest(ctx, s.Crowd, app, "shoes", stored, m); ok != want || err != nil {
			t.Errorf("swap to %s = %v, %v; want %v", m.Current.Name, ok, err, want)
		}
	}
	swap([]byte("{}"), first, false)
	swap(nil, first, true)
	swap(nil, second, false)
	got, stored, err := crowd.ReadManifest(ctx, s.Crowd, slog.New(slog.DiscardHandler), app, "shoes")
	if diff := cmp.Diff(first, got); diff != "" || err != nil {
		t.Errorf("manifest %v (-written +read):\n%s", err, diff)
	}
	swap(stored[:len(stored)-1], second, false)
	swap(append(slices.Clone(stored), ' '), second, false)
	swap(stored, second, true)
	swap(stored, first, false)
	if got, _, err = crowd.ReadManifest(ctx, s.Crowd, slog.New(slog.DiscardHandler), app, "shoes"); err != nil || got.Current.Name != "g2" || got.Previous != "g1" || !got.Current.Sampled() {
		t.Errorf("manifest %+v, %v; want the second", got, err)
	}
	for value, want := range map[string]error{"{": nil, `{"format":250}`: wire.ErrNewer} {
		if ok, err := s.Crowd.SwapCrowdManifest(ctx, app, value, nil, []byte(value)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		got, stored, err := crowd.ReadManifest(ctx, s.Crowd, slog.New(slog.DiscardHandler), app, value)
		if got != (crowd.Manifest{}) || string(stored) != value || !errors.Is(err, want) {
			t.Errorf("manifest %s: %+v, %q, %v; want an empty one, and %v", value, got, stored, err, want)
		}
	}
	if got, _, err = crowd.ReadManifest(ctx, s.Crowd, slog.New(slog.DiscardHandler), app, "sho"); err != nil || got.Current.Name != "" {
		t.Errorf("manifest of another index %+v, %v", got, err)
	}
}

func testCrowdGenerations(t *testing.T, s fixture) {
	ctx := t.Context()
	ref := store.CrowdRef{App: app, Index: "shoes, red", Generation: "g2"}
	want := crowd.Index{
		Counts: map[string]float64{}, Frequencies: map[event.Filter]int{{Facet: "brand", Value: "Acme"}: 3},
		HalfLife: 9, Objects: 3, Events: 2, Users: 1,
	}
	liked := map[event.Filter]string{{Facet: "a", Value: "b,c"}: "one", {Facet: "a,b", Value: "c"}: "two"}
	objects := map[string]crowd.Object{}
	write := func(ref store.CrowdRef) {
		w := s.Crowd.NewCrowdWriter(ctx, ref)
		for bucket := range 3 {
			var counts []crowd.Counted
			for i := range 5 {
				id := fmt.Sprintf("sku,%d-%d", bucket, i)
				n := float64(10*bucket + i)
				counts = append(counts, crowd.Counted{ObjectID: id, Count: n})
				want.Counts[id], want.Highest = n, max(want.Highest, n)
				objects[id] = crowd.Object{Events: int64(i), Links: [crowd.Kinds][]crowd.Pair{{{ObjectID: "x", Count: int64(bucket)}}, {}, {}, {}}}
				must.Succeed(t, w.Object(id, objects[id].AppendBinary(nil)))
			}
			must.Succeed(t, w.Counts(bucket, slices.Collect(crowd.PackCounts(counts))))
			must.Succeed(t, w.RunParts(bucket, "run1", [][]byte{[]byte(fmt.Sprint(bucket)), []byte("more")}))
		}
		for cell := range crowd.PackFrequencies(want.Frequencies) {
			must.Succeed(t, w.Frequencies(0, cell))
		}
		for f, objects := range liked {
			must.Succeed(t, w.Liked(f, []byte(objects+ref.Generation)))
		}
		must.Succeed(t, w.RunHeader("run1", []byte("header")))
	}
	older, other := ref, ref
	older.Generation, other.Index = "g1", "shoes"
	write(older)
	write(other)
	write(ref)
	write(ref) // a task that runs twice leaves the same rows

	scan := func(counts, frequencies func([]byte) error) error {
		return s.Crowd.ReadCrowdIndex(ctx, ref, counts, frequencies)
	}
	got, err := crowd.Generation{Name: "g2", HalfLife: 9, Objects: 3, Events: 2, Users: 1, Share: 1}.ReadIndex(10<<10, scan)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("statistics %v (-written +read):\n%s", err, diff)
	}
	_, err = crowd.Generation{Name: "g2"}.ReadIndex(want.Size()-1, scan)
	if !errors.Is(err, crowd.ErrTooLarge) {
		t.Errorf("a read within less memory: %v", err)
	}
	stored, err := s.Crowd.ReadCrowdObjects(ctx, ref, []string{"sku,2-4", "missing", "sku,0-0"})
	must.Succeed(t, err)
	pairs, err := crowd.ParseObjects(stored)
	wantPairs := map[string]crowd.Object{"sku,2-4": objects["sku,2-4"], "sku,0-0": objects["sku,0-0"]}
	if diff := cmp.Diff(wantPairs, pairs); diff != "" || err != nil {
		t.Errorf("pairs %v (-written +read):\n%s", err, diff)
	}
	lists, err := s.Crowd.ReadCrowdLiked(ctx, ref, []event.Filter{{Facet: "a,b", Value: "c"}, {Facet: "a", Value: "b"}, {Facet: "a", Value: "b,c"}})
	wantLists := map[event.Filter][]byte{{Facet: "a", Value: "b,c"}: []byte("oneg2"), {Facet: "a,b", Value: "c"}: []byte("twog2")}
	if diff := cmp.Diff(wantLists, lists); diff != "" || err != nil {
		t.Errorf("objects of filters %v (-written +read):\n%s", err, diff)
	}
	var runs []string
	err = s.Crowd.ScanCrowdRuns(ctx, ref, 1, 3, func(bucket int, run string, cells [][]byte) error {
		runs = append(runs, fmt.Sprintf("%d %s %q", bucket, run, cells))
		return nil
	})
	if diff := cmp.Diff([]string{`1 run1 ["1" "more"]`, `2 run1 ["2" "more"]`}, runs); diff != "" || err != nil {
		t.Errorf("runs %v:\n%s", err, diff)
	}
	if headers, err := s.Crowd.CrowdRunHeaders(ctx, ref); err != nil || len(headers) != 1 || string(headers["run1"]) != "header" {
		t.Errorf("headers %q, %v", headers, err)
	}
	if first, err := s.Crowd.FirstCrowdIndexes(ctx, app, 1); err != nil || len(first) != 1 {
		t.Errorf("the first index: %q, %v", first, err)
	}
	if indexes, err := s.Crowd.CrowdIndexes(ctx, app); err != nil || !slices.Equal(indexes, []string{"shoes", "shoes, red"}) && !slices.Equal(indexes, []string{"shoes, red", "shoes"}) {
		t.Errorf("indexes %q, %v", indexes, err)
	}
	testCrowdDrops(t, s, ref)
}

// testCrowdDrops drops what testCrowdGenerations wrote.
func testCrowdDrops(t *testing.T, s fixture, ref store.CrowdRef) {
	ctx := t.Context()
	rows := func() (left []string) {
		err := s.client.Open(store.TableCrowd).ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			parts := strings.SplitN(r.Key(), ",", 5)
			if kind := strings.Join(parts[1:4], ","); !slices.Contains(left, kind) {
				left = append(left, kind)
			}
			return true
		})
		must.Succeed(t, err)
		slices.Sort(left)
		return left
	}
	if err := s.Crowd.DropCrowdRuns(ctx, ref); err != nil {
		t.Error(err)
	}
	if left := rows(); slices.Contains(left, "shoes%2C+red,g2,r") || slices.Contains(left, "shoes%2C+red,g2,h") || !slices.Contains(left, "shoes%2C+red,g1,r") {
		t.Errorf("rows after the drop of runs: %q", left)
	}
	if err := s.Crowd.DropCrowd(ctx, app, ref.Index, func(generation string) bool { return generation < "g2" }); err != nil {
		t.Error(err)
	}
	want := []string{
		"shoes%2C+red,g2,c", "shoes%2C+red,g2,f", "shoes%2C+red,g2,l", "shoes%2C+red,g2,o",
		"shoes,g2,c", "shoes,g2,f", "shoes,g2,h", "shoes,g2,l", "shoes,g2,o", "shoes,g2,r",
	}
	if diff := cmp.Diff(want, rows()); diff != "" {
		t.Errorf("rows after the drop of g1 (-want +got):\n%s", diff)
	}
}

func testImportNotes(t *testing.T, s fixture) {
	ctx := t.Context()
	if at, err := s.Crowd.LastImport(ctx, app, ""); err != nil || !at.IsZero() {
		t.Errorf("last import %s, %v; want none", at, err)
	}
	for _, ms := range []int64{2000, 5000, 3000} { // the latest counts, whatever the order
		must.Succeed(t, s.Crowd.NoteImport(ctx, app, "", time.UnixMilli(ms)))
	}
	must.Succeed(t, s.Crowd.NoteImport(ctx, app, "a,b", time.UnixMilli(7000)))
	if at, err := s.Crowd.LastImport(ctx, app, "a,b"); err != nil || at.UnixMilli() != 7000 {
		t.Errorf("last load of objects %s, %v", at, err)
	}
	if at, err := s.Crowd.LastImport(ctx, app, ""); err != nil || at.UnixMilli() != 5000 {
		t.Errorf("last import %s, %v; want 5 s", at, err)
	}
	if indexes, err := s.Crowd.CrowdIndexes(ctx, app); err != nil || len(indexes) != 0 {
		t.Errorf("the note counts as indexes %q, %v", indexes, err)
	}
}

func testCatalogIndexes(t *testing.T, s fixture) {
	ctx := t.Context()
	if indexes, err := s.Catalog.CatalogIndexes(ctx, app); err != nil || len(indexes) != 0 {
		t.Errorf("indexes of an empty catalog %q, %v", indexes, err)
	}
	for _, index := range []string{"shoes", "shoes, red", "hats"} {
		objects := []store.Object{{ID: "b"}, {ID: "a", Filters: store.ObjectFilters{SettingsVersion: 2, Filters: []event.Filter{{Facet: "f", Value: index}}}}}
		must.Succeed(t, s.Catalog.PutObjects(ctx, app, index, objects))
	}
	indexes, err := s.Catalog.CatalogIndexes(ctx, app)
	if slices.Sort(indexes); err != nil || !slices.Equal(indexes, []string{"hats", "shoes", "shoes, red"}) {
		t.Errorf("indexes %q, %v", indexes, err)
	}
	var ids []string
	err = s.Catalog.ScanObjectIDs(ctx, app, "shoes", func(id string) error {
		ids = append(ids, id)
		return nil
	})
	if err != nil || !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("objects %q, %v", ids, err)
	}
	filters := map[string][]event.Filter{}
	err = s.Catalog.ScanObjectFilters(ctx, app, "shoes, red", func(id string, f store.ObjectFilters) error {
		filters[id] = f.Filters
		return nil
	})
	want := map[string][]event.Filter{"a": {{Facet: "f", Value: "shoes, red"}}, "b": nil}
	if diff := cmp.Diff(want, filters, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("filters %v (-put +read):\n%s", err, diff)
	}
}
