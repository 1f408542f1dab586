package segmentbuild_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/segment"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/store/storetest"
	"github.com/affinityengine/affinity/shared/strategy"
)

// BenchmarkPacking is a recompute of users with 40 events and some 200 affinities, whose
// histories are packed: alone, with a function that does nothing with each profile, and
// with the packing and writing of a part. It runs within a soft limit of 256 MB.
func BenchmarkPacking(b *testing.B) {
	for _, halfLives := range [][]string{{"30d"}, {"30d", "180d", "360d"}} {
		f := newPackingFixture(b, halfLives)
		for _, with := range []string{"alone", "each", "packed"} {
			b.Run(fmt.Sprintf("half-lives=%d/%s", len(halfLives), with), func(b *testing.B) {
				defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
				var affinities int
				for b.Loop() {
					affinities = f.recompute(b, with)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/packedUsers, "ns/user")
				if with == "packed" {
					b.ReportMetric(float64(affinities)/packedUsers, "affinities/user")
				}
			})
		}
	}
}

const packedUsers = 4000

type packingFixture struct {
	store  *store.Store
	engine *profile.Engine
	apps   config.Store
}

func newPackingFixture(b *testing.B, halfLives []string) *packingFixture {
	b.Helper()
	ctx, now := b.Context(), time.Now()
	f := &packingFixture{store: storetest.New(b), apps: config.NewMemory()}
	st := strategy.Strategy{EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 10}}}
	for _, text := range halfLives {
		h, err := strategy.ParseHalfLife(text)
		if err != nil {
			b.Fatal(err)
		}
		st.HalfLives = append(st.HalfLives, h)
	}
	for facet := range 6 {
		st.FacetsScoring = append(st.FacetsScoring, strategy.FacetScore{FacetName: fmt.Sprint("facet", facet), Score: 10 + facet})
	}
	if err := f.apps.CreateApp(ctx, config.App{ID: app, RetentionDays: 365}); err != nil {
		b.Fatal(err)
	}
	if _, _, err := f.apps.SetStrategy(ctx, app, st); err != nil {
		b.Fatal(err)
	}
	f.engine = profile.New(f.store, f.apps, config.NewCached(f.apps, time.Hour), func() time.Time { return now }, slog.New(slog.DiscardHandler))
	a, err := f.apps.App(ctx, app)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 30, 300) // some lists a user, as in a part of many users
	for from := 0; from < packedUsers; from += 100 {
		var events []store.LogEvent
		for user := from; user < from+100; user++ {
			for n := range 40 {
				e := store.LogEvent{User: fmt.Sprintf("user-%06d", user), ID: fmt.Sprintf("%011d", user*100+n), Type: event.View, Name: "Seen", Original: []byte("{}"),
					Time: now.Add(-time.Duration(r.IntN(300*24)+2) * time.Hour).UnixMilli()}
				for facet := range 6 {
					e.Counts = append(e.Counts, affinity.Count{Facet: fmt.Sprint("facet", facet), Value: fmt.Sprint("value", zipf.Uint64()), N: 1})
				}
				events = append(events, e)
			}
		}
		if _, err := f.engine.Import(ctx, a, events); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := f.engine.Recompute(ctx, a, store.Range{}, profile.RecomputeOptions{Fold: true}, func(profile.Progress) error { return nil }); err != nil {
		b.Fatal(err)
	}
	return f
}

// recompute recomputes all users, and packs them into parts.
func (f *packingFixture) recompute(b *testing.B, with string) (affinities int) {
	b.Helper()
	ctx := b.Context()
	a, err := f.apps.App(ctx, app)
	if err != nil {
		b.Fatal(err)
	}
	packer := segment.NewPacker(segment.Scoring{Version: a.ScoringVersion, RetentionDays: a.RetentionDays, HalfLives: a.Strategy.HalfLives}, 0)
	var o profile.RecomputeOptions
	switch with {
	case "each":
		o.Each = func(string, []byte) error { return nil }
	case "packed":
		o.Each = packer.Add
	}
	id := segment.NewPartID(time.Now(), 1)
	packer.Begin(id, false, time.Now().UnixMilli())
	if _, err := f.engine.Recompute(ctx, a, store.Range{}, o, func(profile.Progress) error { return nil }); err != nil {
		b.Fatal(err)
	}
	if with != "packed" {
		return 0
	}
	w := f.store.NewSegmentWriter(ctx, app, id)
	part, err := packer.Finish(time.Now().UnixMilli(), w.Write)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	defer b.StartTimer()
	if err := f.store.DropSegmentParts(ctx, app, func(segment.PartID) bool { return true }); err != nil {
		b.Fatal(err)
	}
	return part.Affinities
}
