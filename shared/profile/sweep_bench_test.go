package profile_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// benchSet is the log of some users.
type benchSet struct {
	events []store.LogEvent // by user, then time
	users  []string
	now    int64
}

// denseSet is users of 500 events over 90 days, each of one to three of 5,000
// objects.
func denseSet(users int) benchSet {
	r, objects := rand.New(rand.NewPCG(42, 1)), bus.Objects{}
	for i := range 5_000 {
		var filters []bus.Filter
		for facet := range 8 {
			filters = append(filters, bus.Filter{fmt.Sprint("facet", facet), fmt.Sprint("value ", r.IntN(100), " of ", facet)})
		}
		objects.Put("products", fmt.Sprintf("sku-%05d", i), filters)
	}
	var lines []string
	now := int64(1_700_000_000_000)
	for u := range users {
		for range 500 {
			ids := []string{fmt.Sprintf("sku-%05d", r.IntN(5_000)), fmt.Sprintf("sku-%05d", r.IntN(5_000)), fmt.Sprintf("sku-%05d", r.IntN(5_000))}[:1+r.IntN(3)]
			text, _ := json.Marshal(slices.Compact(ids))
			lines = append(lines, fmt.Sprintf(`{"eventType":"click","eventName":"Event number %d","userToken":"user%05d","timestamp":%d,"objectIDs":%s}`,
				r.IntN(10), u, now-1-r.Int64N(90*day), text))
		}
	}
	return newBenchSet(lines, objects, now)
}

// realSet is a data set of ../shared/data, or one user in so many of it.
func realSet(b *testing.B, name string, of uint32) benchSet {
	objects := bus.Objects{}
	for _, o := range realdata.Objects(b, name) {
		pairs := []bus.Filter{}
		for _, f := range o.Filters {
			pairs = append(pairs, bus.Filter{f.Facet, f.Value})
		}
		objects.Put(realdata.Index, o.ID, pairs)
	}
	now := int64(0)
	var lines []string
	for line := range realdata.Lines(b, name, realdata.EventsFile) {
		var e struct {
			UserToken string
			Timestamp int64
		}
		must.Succeed(b, json.Unmarshal(line, &e))
		now = max(now, e.Timestamp+hour)
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(e.UserToken))
		if hash.Sum32()%of == 0 {
			lines = append(lines, string(line))
		}
	}
	return newBenchSet(lines, objects, now)
}

func newBenchSet(lines []string, objects bus.Objects, now int64) benchSet {
	var events []event.Event
	for i, line := range lines {
		e, err := event.Decode([]byte(line), event.Rules{Now: time.UnixMilli(now), Index: "products", Ordinal: i})
		if err != nil {
			panic(err)
		}
		events = append(events, e)
	}
	set := benchSet{events: enrich.LogEvents(events, bus.Resolution{Objects: objects}, now), now: now}
	slices.SortStableFunc(set.events, func(x, y store.LogEvent) int {
		if c := store.UserOrder(x.User, y.User); c != 0 {
			return c
		}
		return history.Pos{Time: x.Time, ID: x.ID}.Compare(history.Pos{Time: y.Time, ID: y.ID})
	})
	set.events = slices.CompactFunc(set.events, func(x, y store.LogEvent) bool { return x.User == y.User && x.Time == y.Time && x.ID == y.ID })
	for _, e := range set.events {
		if n := len(set.users); n == 0 || set.users[n-1] != e.User {
			set.users = append(set.users, e.User)
		}
	}
	return set
}

// load writes the set to a store of its own and folds every user, or none.
func (set benchSet) load(b *testing.B, fold bool) (*store.Store, *profile.Engine, config.App) {
	apps := config.NewMemory()
	must.Succeed(b, apps.CreateApp(ctx, config.App{ID: appID}))
	s, _ := storetest.NewWithClient(b)
	eng := profile.New(s, apps, config.NewCached(apps, 0), func() time.Time { return time.UnixMilli(set.now) }, slog.New(slog.DiscardHandler))
	app, err := apps.App(ctx, appID)
	must.Succeed(b, err)
	if _, err := eng.Import(ctx, app, set.events); err != nil {
		b.Fatal(err)
	}
	for i := 0; fold && i < len(set.users); i++ {
		if _, err := eng.Fold(ctx, app, set.users[i]); err != nil {
			b.Fatal(err)
		}
	}
	return s, eng, app
}

// benchSets makes the sets of benchmarks: of real data, one user in so many.
var benchSets = map[string]func(b *testing.B, of uint32) benchSet{
	"dense":        func(*testing.B, uint32) benchSet { return denseSet(60) },
	"clickstream":  func(b *testing.B, of uint32) benchSet { return realSet(b, "clickstream", of) },
	"onlineretail": func(b *testing.B, of uint32) benchSet { return realSet(b, "onlineretail", of) },
}

// BenchmarkObjects sweeps the objects of folded users, then the same objects of
// users of whom nothing is folded, and then decodes the originals in the log, as
// before there were cells and sections of objects. It reports the events that a
// second of the processor is enough for, Bigtable included, and by how much blocks
// surpass the log. A measured sweep collects no garbage: most of that time goes to the
// rows in the memory of the Bigtable, and one sweep would pay for another.
func BenchmarkObjects(b *testing.B) {
	for name, makeSet := range benchSets {
		b.Run(name, func(b *testing.B) {
			set := makeSet(b, 4)
			_, folded, app := set.load(b, true)
			log, unfolded, _ := set.load(b, false)
			n := float64(len(set.events))
			sweep := func(e *profile.Engine, logged int64) {
				p, err := e.SweepObjects(ctx, app, store.Range{}, profile.SweepOptions{}, func(string, affinity.Event) error { return nil },
					func(profile.SweepProgress) error { return nil })
				if err != nil || p.Events != int64(n) || p.Logged != logged {
					b.Fatalf("%+v of %v events, %v", p, n, err)
				}
			}
			sums := map[string]time.Duration{}
			timed := func(name string, do func()) {
				runtime.GC()
				defer debug.SetGCPercent(debug.SetGCPercent(-1))
				before := cpu.Time()
				do()
				sums[name] += cpu.Time() - before
			}
			for b.Loop() {
				timed("blocks", func() { sweep(folded, 0) })
				timed("log", func() { sweep(unfolded, int64(n)) })
				timed("originals", func() { readOriginals(b, log, app) })
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(n/float64(len(set.users)), "events/user")
			for name, sum := range sums {
				b.ReportMetric(float64(b.N)*n/sum.Seconds(), name+"/s")
			}
			b.ReportMetric(float64(sums["log"])/float64(sums["blocks"]), "x-log")
		})
	}
}

// readOriginals decodes the objects of all originals in the log.
func readOriginals(b *testing.B, s *store.Store, app config.App) {
	err := s.Events.Log(appID, app.Log).ScanOriginals(ctx, store.Range{}, 0, func(e store.Entry) error {
		original, err := schema.ParseOriginal(e.Original)
		if err == nil {
			_, err = original.Objects()
		}
		return err
	})
	must.Succeed(b, err)
}

// BenchmarkObjectBytes reports what objects add to an event: bytes of its cell m:o
// beside those of m:event, and bytes of an event in blocks with and without objects.
func BenchmarkObjectBytes(b *testing.B) {
	for name, makeSet := range benchSets {
		b.Run(name, func(b *testing.B) {
			set := makeSet(b, 1)
			for b.Loop() {
			}
			objects, cells, originals := 0, 0, 0
			for _, e := range set.events {
				objects += len(e.ObjectIDs)
				originals += len(e.Original)
				cells += len(schema.Objects{Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs}.Append(nil))
			}
			n := float64(len(set.events))
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(objects)/n, "objects/event")
			b.ReportMetric(float64(originals)/n, "m:event-B")
			b.ReportMetric(float64(cells)/n, "m:o-B")
			b.ReportMetric(float64(set.blockBytes(false))/n, "scores-B")
			b.ReportMetric(float64(set.blockBytes(true))/n, "block-B")
		})
	}
}

// blockBytes returns the size of the blocks of the set, with objects or without.
func (set benchSet) blockBytes(objects bool) int {
	builder, size, user := history.NewBuilder(), 0, ""
	for _, e := range set.events {
		ev := affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: e.Counts}
		if objects {
			ev.Index, ev.ObjectIDs = e.Index, e.ObjectIDs
		}
		if e.User != user || !builder.Add(ev) {
			if builder.Len() > 0 {
				size += len(builder.AppendBlock(nil))
			}
			builder.Add(ev)
			user = e.User
		}
	}
	return size + len(builder.AppendBlock(nil))
}
