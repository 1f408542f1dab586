package crowdbuild_test

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

// Objects that were stored under earlier settings of the index count with the
// filters of the current ones.
func TestFrequenciesUnderNewSettings(t *testing.T) {
	h := newHarness(t, 1, crowdbuild.Work{})
	set := func(attributes ...string) catalog.Settings {
		t.Helper()
		_, err := h.Config.SetIndexSettings(t.Context(), app, shoes, catalog.Change{AttributesForFaceting: attributes})
		settings, readErr := h.Config.IndexSettings(t.Context(), app, shoes)
		must.Succeed(t, errors.Join(err, readErr))
		return settings
	}
	put := func(from, to int, settings catalog.Settings) {
		t.Helper()
		var objects []store.Object
		for i := from; i < to; i++ {
			record := fmt.Appendf(nil, `{"objectID":%q,"brand":"b%d","color":"c%d"}`, objectID(i), i%2, i%3)
			filters, err := catalog.Filters(record, settings)
			must.Succeed(t, err)
			objects = append(objects, store.Object{ID: objectID(i), Record: record, Filters: store.ObjectFilters{SettingsVersion: settings.Version, Filters: filters}})
		}
		must.Succeed(t, h.store.Catalog.PutObjects(t.Context(), app, shoes, objects))
	}
	const objects = 1_200 // more than are read at a time
	put(0, objects-30, set("brand"))
	put(objects-30, objects, set("brand", "color"))
	h.WantState(h.build().ID, job.Done, "")
	_, x, _ := h.read(shoes)
	for f, want := range map[event.Filter]int{{Facet: "brand", Value: "b0"}: objects / 2, {Facet: "color", Value: "c1"}: objects / 3} {
		if got := x.Frequencies[f]; got != want || x.Objects != objects {
			t.Errorf("%d of %d objects have %v, want %d of %d", got, x.Objects, f, want, objects)
		}
	}
}

// An index with too many different filters keeps the frequencies of those that most
// objects carry.
func TestFrequenciesAreBounded(t *testing.T) {
	h := newHarness(t, 1, crowdbuild.Work{MaxFilters: 10_000})
	const objects = 400
	var puts []store.Object
	for i := range objects {
		filters := []event.Filter{{Facet: "half", Value: fmt.Sprint(i % 2)}, {Facet: "title", Value: fmt.Sprint("of ", i)}}
		puts = append(puts, store.Object{ID: objectID(i), Record: []byte("{}"), Filters: store.ObjectFilters{Filters: filters}})
	}
	must.Succeed(t, h.store.Catalog.PutObjects(t.Context(), app, shoes, puts))
	h.WantState(h.build().ID, job.Done, "")
	_, x, _ := h.read(shoes)
	if n := x.Frequencies[event.Filter{Facet: "half", Value: "1"}]; n != objects/2 || len(x.Frequencies) > 130 || x.Objects != objects {
		t.Errorf("%d frequencies of %d objects, half:1 has %d", len(x.Frequencies), x.Objects, n)
	}
}

// setManifest stores bytes as the manifest of an index.
func (h *harness) setManifest(index, value string) {
	h.t.Helper()
	m := bigtable.NewMutation()
	m.DeleteCellsInColumn("n", "n")
	m.Set("n", "n", bigtable.Now(), []byte(value))
	must.Succeed(h.t, h.client.Open(store.TableCrowd).Apply(h.t.Context(), app+","+url.QueryEscape(index)+",", m))
}

// A build replaces a damaged manifest. It leaves out an index that a newer version
// of the engine has built.
func TestManifestOfAnotherForm(t *testing.T) {
	for _, damaged := range []string{"{", "{}", `{"format":1,"current":{"name":"~"}}`} {
		h := newHarness(t, 3, crowdbuild.Work{})
		h.fill(14)
		h.build()
		h.setManifest(shoes, damaged)
		j := h.build()
		h.WantState(j.ID, job.Done, "")
		h.wantBuilt(j, shoes, nil)
		h.wantBuilt(j, hats, nil)
	}
	const newer = `{"format":9}`
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(15)
	h.build()
	h.setManifest(shoes, newer)
	j := h.build()
	h.WantState(j.ID, job.Done, "")
	h.wantBuilt(j, hats, nil)
	if _, err := h.runner.StartManual(t.Context(), app, shoes); !errors.Is(err, wire.ErrNewer) {
		t.Errorf("a build of the index: %v, want ErrNewer", err)
	}
	// Neither does a job that has begun before.
	during := h.start(t.Context())
	h.setManifest(hats, newer)
	h.Drain()
	h.WantState(during.ID, job.Done, "")
}
