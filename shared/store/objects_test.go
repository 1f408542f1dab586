package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/store"
)

func testScanObjects(t *testing.T, s fixture) {
	ctx := t.Context()
	want := map[store.ObjectRef]store.Object{}
	for _, index := range []string{"shoes", "shoes, red"} {
		for _, id := range []string{"a", "b,\x00"} {
			o := store.Object{ID: id, Record: []byte(`{"objectID":"` + index + `"}`), Filters: store.ObjectFilters{
				SettingsVersion: 2, Filters: []event.Filter{{Facet: "f", Value: index}}}}
			if err := s.Catalog.PutObjects(ctx, app, index, []store.Object{o, {ID: "other"}}); err != nil {
				t.Fatal(err)
			}
			want[store.ObjectRef{Index: index, ID: id}] = o
		}
	}
	refs := []store.ObjectRef{{Index: "shoes", ID: "none"}, {Index: "none", ID: "a"}}
	for ref := range want {
		refs = append(refs, ref)
	}
	got := map[store.ObjectRef]store.Object{}
	err := s.Catalog.ScanObjects(ctx, app, refs, func(ref store.ObjectRef, o store.Object) error {
		got[ref] = o
		return nil
	})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	stop := errors.New("stop")
	if err := s.Catalog.ScanObjects(ctx, app, refs, func(store.ObjectRef, store.Object) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v, want that of the callback", err)
	}
}
