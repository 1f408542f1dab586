package profile_test

import (
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

func newSimulation(t *rapid.T, s *store.Store, client *bigtable.Client, appID string) *simulation {
	return simulate(t, s, client, appID, true)
}

// simulate is newSimulation of an app that may have purposes, or may not.
func simulate(t *rapid.T, s *store.Store, client *bigtable.Client, appID string, purposes bool) *simulation {
	w := &simulation{t: t, store: s, client: client, apps: config.NewMemory(), appID: appID, acked: map[int]bool{}, resolved: map[int]map[string]bool{}, receipts: map[int][]receipt{}}
	w.clock.Store(1_700_000_000_000)
	w.slack = rapid.SampledFrom([]time.Duration{time.Millisecond, 2 * time.Second, time.Minute}).Draw(t, "slack")
	w.settle = rapid.SampledFrom([]time.Duration{0, 0, time.Hour}).Draw(t, "settle")
	for i, most := range []int{4, 4, 3, 6} { // fold, most, block, keep
		w.small[i] = rapid.IntRange(1, most).Draw(t, "limit")
	}
	w.session = rapid.SampledFrom([]int{1, 2, 3, affinity.MaxSessionEvents}).Draw(t, "session")
	w.bounds = affinity.StandardBounds()
	if rapid.Bool().Draw(t, "bounded") {
		w.bounds.FacetValues = rapid.IntRange(1, 2).Draw(t, "facet values")
		w.bounds.Values = rapid.SampledFrom([]int{1, 2, 10_000}).Draw(t, "values")
	}
	w.windows = rapid.Bool().Draw(t, "windows")
	w.additions = rapid.SampledFrom([]int{0, 2, 1000, 1000}).Draw(t, "additions")
	w.calm = rapid.Bool().Draw(t, "calm")
	w.terms = rapid.Bool().Draw(t, "dictionaries")
	w.inline = rapid.SampledFrom([]int{0, 1, 3, 64}).Draw(t, "inline")
	w.held = rapid.SampledFrom([]int{1, 2, 3, 1000, 1000}).Draw(t, "held")
	retention := rapid.SampledFrom([]int{0, 1, 90}).Draw(t, "retention")
	layout := schema.Of(rapid.SampledFrom(schema.Names).Draw(t, "schema"))
	must.Succeed(t, w.apps.CreateApp(ctx, config.App{ID: appID, RetentionDays: retention, Log: layout}))
	must.Succeed(t, w.apps.SetSegments(ctx, appID, rapid.IntRange(0, 3).Draw(t, "segments") > 0))
	w.newMigrations()
	if purposes {
		w.setPurposes()
	}
	w.setStrategy()
	w.engine = w.processAt(0)
	for i := range 8 {
		// Equal times, too: two events of a millisecond differ in their id.
		e := logEvent("u", w.clock.Load()-int64(rapid.IntRange(0, 30).Draw(t, "hours ago"))*hour, "Bought", event.Conversion)
		if i%4 == 3 { // which one of two strategies scores
			e.Type, e.Name = event.View, "Viewed"
		}
		if i < 3 { // of a clock that is ahead, or will be
			e.Time = w.clock.Load() + rapid.Int64Range(-2, 10).Draw(t, "minutes ahead")*minute
		}
		e.ID, e.Index, e.ObjectIDs = fmt.Sprintf("id%09d", i), "products", []string{fmt.Sprint("object", i)}
		w.events = append(w.events, e)
	}
	return w
}
