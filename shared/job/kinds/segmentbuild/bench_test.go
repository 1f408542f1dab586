package segmentbuild_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkPacking is a recompute of users with 40 events and some 200 affinities, whose
// histories are packed: alone, with a function that does nothing with each profile, and
// as a build packs it, with the rows of the parts written. The Bigtable is a process of its
// own. Memory has a soft limit of 256 MB. Besides the time, it reports the processor time of
// this process for each user.
func BenchmarkPacking(b *testing.B) {
	f := newPackingFixture(b)
	for _, halfLives := range [][]string{{"30d"}, {"30d", "180d", "360d"}} {
		a := f.score(b, halfLives)
		for _, with := range []string{"alone", "each", "packed"} {
			b.Run(fmt.Sprintf("half-lives=%d/%s", len(halfLives), with), func(b *testing.B) {
				defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
				var affinities int64
				var took time.Duration
				for b.Loop() {
					began := cpu(b)
					affinities = f.recompute(b, a, with)
					took += cpu(b) - began
					f.drop(b)
				}
				b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/packedUsers, "cpu-ns/user")
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
	apps   *config.Store
	runner *segmentbuild.Runner
}

func newPackingFixture(b *testing.B) *packingFixture {
	b.Helper()
	ctx, now := b.Context(), time.Now()
	f := &packingFixture{apps: config.NewMemory()}
	f.store, _ = storetest.OpenAt(b, storetest.StartProcess(b).Addr)
	must.Succeed(b, f.apps.CreateApp(ctx, config.App{ID: app, RetentionDays: 365}))
	clock := func() time.Time { return now }
	f.engine = profile.New(f.store, f.apps, config.NewCached(f.apps, time.Hour), clock, slog.New(slog.DiscardHandler))
	f.runner = segmentbuild.New(job.Runner{Now: clock, Log: slog.New(slog.DiscardHandler)}, segmentbuild.Work{Store: f.store, Profiles: f.engine})
	a := f.score(b, []string{"30d"})
	importCrowd(b, f.engine, a, packedUsers, now)
	if _, err := f.engine.Recompute(ctx, a, store.Range{}, profile.RecomputeOptions{Fold: true}, func(profile.Progress) error { return nil }); err != nil {
		b.Fatal(err)
	}
	return f
}

// importCrowd imports 40 events of 6 facets for each of some users.
func importCrowd(b *testing.B, engine *profile.Engine, a config.App, users int, now time.Time) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 30, 300) // some lists a user, as in a part of many users
	for from := 0; from < users; from += 100 {
		var events []store.LogEvent
		for user := from; user < from+100; user++ {
			for n := range 40 {
				e := store.LogEvent{User: fmt.Sprintf("user-%06d", user), ID: fmt.Sprintf("%011d", user*100+n), Type: event.View, Name: "Seen", Original: []byte("{}"),
					Time: now.Add(-time.Duration(r.IntN(80*24)+2) * time.Hour).UnixMilli()}
				for facet := range 6 {
					e.Counts = append(e.Counts, affinity.Count{Facet: fmt.Sprint("facet", facet), Value: fmt.Sprint("value", zipf.Uint64()), N: 1})
				}
				events = append(events, e)
			}
		}
		if _, err := engine.Import(b.Context(), a, events); err != nil {
			b.Fatal(err)
		}
	}
}

// score sets a strategy with half-lives, and returns the app.
func (f *packingFixture) score(b *testing.B, halfLives []string) config.App {
	b.Helper()
	if _, _, err := f.apps.SetStrategy(b.Context(), app, scoringFacets(b, 10, halfLives...)); err != nil {
		b.Fatal(err)
	}
	a, err := f.apps.App(b.Context(), app)
	must.Succeed(b, err)
	return a
}

// scoringFacets is a strategy that scores the 6 facets.
func scoringFacets(tb testing.TB, points int, halfLives ...string) strategy.Strategy {
	tb.Helper()
	st := strategy.Strategy{EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 10}}}
	for _, text := range halfLives {
		h, err := strategy.ParseHalfLife(text)
		must.Succeed(tb, err)
		st.HalfLives = append(st.HalfLives, h)
	}
	for facet := range 6 {
		st.FacetsScoring = append(st.FacetsScoring, strategy.FacetScore{FacetName: fmt.Sprint("facet", facet), Score: points + facet})
	}
	return st
}

// recompute recomputes all users, and packs them into parts.
func (f *packingFixture) recompute(b *testing.B, a config.App, with string) (affinities int64) {
	b.Helper()
	ctx := b.Context()
	if with == "packed" {
		done, err := segmentbuild.Pack(ctx, f.runner, a, profile.RecomputeOptions{})
		must.Succeed(b, err)
		return job.CountsOf[segmentbuild.Counts](done.Counts).Affinities
	}
	var o profile.RecomputeOptions
	if with == "each" {
		o.Each = func(string, []byte) error { return nil }
	}
	if _, err := f.engine.Recompute(ctx, a, store.Range{}, o, func(profile.Progress) error { return nil }); err != nil {
		b.Fatal(err)
	}
	return 0
}

// drop drops the parts, which is not measured.
func (f *packingFixture) drop(b *testing.B) {
	b.Helper()
	b.StopTimer()
	defer b.StartTimer()
	must.Succeed(b, f.store.Segments.DropSegmentParts(b.Context(), app, func(segment.PartID) bool { return true }))
}

// cpu returns the processor time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must.Succeed(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
