package migration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// during runs all tasks, and runs do before one of their requests of a kind to
// Bigtable. It reports whether there was such a request.
func (w *harness) during(kind string, request int64, do func()) bool {
	w.t.Helper()
	var n atomic.Int64
	arrived, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.Gate = func(ctx context.Context, what string) jobtest.Fault {
		if ctx.Value(processKey{}) != nil && strings.Contains(what, "Row") && strings.Contains(what, kind) && n.Add(1) == request {
			close(arrived)
			<-goOn
		}
		return jobtest.None
	}
	go func() {
		defer close(ended)
		for left := w.Waiting(); len(left) > 0; left = w.Waiting() {
			_, _ = w.Deliver(begin(w.t.Context()), left[0])
		}
	}()
	came := false
	select {
	case <-arrived:
		came = true
		do()
		close(goOn)
		<-ended
	case <-ended:
	}
	w.Gate = nil
	return came
}

// with returns a rewrite of an event, with other filters.
func with(e store.LogEvent, counts ...affinity.Count) store.LogEvent {
	e.Counts = counts
	e.Original = append([]byte(nil), strings.Replace(string(e.Original), `,"event"`, fmt.Sprintf(`,"unknownObjects":%d,"event"`, 1+len(counts)), 1)...)
	return e
}

// rewrites of an event have other values, other facets, fewer of them, and
// none.
var rewrites = [][]affinity.Count{
	{{Facet: "color", Value: "other", N: 2}},
	{{Facet: "brand", Value: "new", N: 1}, {Facet: "size", Value: "L", N: 1}},
	{},
	{{Facet: "color", Value: "c0", N: 1}, {Facet: "z", Value: "z", N: 3}},
}

// A rewritten row has its last value in both schemas, with copies before and
// after the rewrite.
func TestRewritesWin(t *testing.T) {
	t.Parallel()
	for _, lies := range schema.Names {
		t.Run("from "+string(lies), func(t *testing.T) {
			w := newHarness(t, lies, usual)
			events := visits(t, users[:3], 2)
			w.apply(events...)
			w.does(lies.Other(), "start")
			for _, counts := range rewrites {
				for range 2 {
					w.apply(with(events[0], counts...))
					w.wantDone(w.does(lies.Other(), "backfill"))
					w.wantBoth()
				}
			}
			w.wantDone(w.does(lies.Other(), "verify", "cutover"))
			w.wantExact(t, "rewrites")
		})
	}
}

// happenings are what may happen during a step.
var happenings = map[string]func(*testing.T, *harness, store.LogEvent){
	"rewrite":  func(_ *testing.T, w *harness, e store.LogEvent) { w.apply(with(e, rewrites[1]...)) },
	"deletion": func(_ *testing.T, w *harness, e store.LogEvent) { w.forget(e.User) },
	"another user": func(t *testing.T, w *harness, _ store.LogEvent) {
		w.apply(plain(t, "a+new", 5, "new"), plain(t, "zzz", 5, "new"))
	},
	"event of a deleted user": func(t *testing.T, w *harness, e store.LogEvent) {
		w.forget(e.User)
		if o, err := w.engine.Apply(t.Context(), w.app(), []store.LogEvent{with(e, rewrites[0]...)}); err != nil || o.Deleted != 1 {
			t.Errorf("%+v, error %v: want the event gone", o, err)
		}
	},
}

// TestHappenings makes something happen before each write and before some other
// requests of a backfill or a verification, on equal and on different logs.
// Afterwards both logs hold the events that exist, and the next verification
// passes. Under the race detector each thing happens from one of the two schemas.
func TestHappenings(t *testing.T) {
	t.Parallel()
	g := &gate{}
	s, client := storetest.NewDeployed(t, g.dial()...)
	stride := max(1, *every/3)
	for name, happens := range happenings {
		first := rand.IntN(len(schema.Names))
		for _, lies := range schema.Names[race.Or(0, first):race.Or(len(schema.Names), first+1)] {
			for _, step := range []string{"backfill", "verify", "verify of logs that differ"} {
				t.Run(fmt.Sprintf("%s/%s from %s", name, step, lies), func(t *testing.T) {
					each := func(kind string, first, stride int64) {
						for at, came := first, true; came; at += stride {
							w := newHarnessOn(t, s, client, g, lies, usual)
							w.clear(t)
							if came = w.happen(t, happens, lies.Other(), step, kind, at); t.Failed() {
								t.Fatalf("before request %d, %s", at, kind)
							}
						}
					}
					each("Mutate", 1, 1)
					each("", 1+rand.Int64N(stride), stride)
				})
			}
		}
	}
}

func (w *harness) happen(t *testing.T, happens func(*testing.T, *harness, store.LogEvent), to schema.Name, step, kind string, at int64) bool {
	t.Helper()
	events := visits(t, users[:3], 2)
	w.apply(events...)
	w.does(to, "start")
	order, _, differ := strings.Cut(step, " ")
	if order == "verify" {
		w.does(to, "backfill")
	}
	if differ {
		w.put(to, with(events[0], rewrites[0]...))
	}
	w.requests(t, order, to)
	came := w.during(kind, at, func() { happens(t, w, events[0]) })
	if !differ {
		w.wantDone(w.status())
	}
	w.wantBoth()
	w.wantDone(w.does(to, "verify"))
	w.wantBoth()
	return came
}

// An event whose writer has written one schema so far is not a fault if the
// other schema has it at the last look.
func TestEventBeingWritten(t *testing.T) {
	t.Parallel()
	g := &gate{}
	s, client := storetest.NewWithClient(t, g.dial()...)
	for _, first := range schema.Names {
		t.Run("in "+string(first), func(t *testing.T) {
			passed := int64(0)
			for at, came := int64(1), true; came; at++ {
				w := newHarnessOn(t, s, client, g, schema.Narrow, job.Settings{ShardUsers: 100, Budget: usual.Budget, Attempts: 3})
				w.clear(t)
				w.migrator.SetPauses(0, 0, 0)
				w.apply(visits(t, users[:3], 2)...)
				w.does(schema.Wide, "start", "backfill")
				e := plain(t, "a", 30, "on its way")
				w.put(first, e)
				w.events[place(e)] = e
				w.requests(t, "verify", schema.Wide)
				came = w.during("", at, func() { w.put(first.Other(), e) })
				if s := w.status(); s.Job.State != job.Done || s.Job.Totals.Counts["faulty"] > 0 {
					continue
				}
				if passed++; passed != at {
					t.Fatalf("the verification passes with the event before request %d, but not before an earlier request", at)
				}
				w.wantBoth()
			}
			// The users, the two logs, and three requests for each look but the
			// last.
			if passed < 3+2*3 {
				t.Errorf("it passes only where the event is there before request %d", passed)
			}
		})
	}
}

// A writer that read the configuration before a step writes the schemas that
// must be written after it.
func TestWriterWithOldConfiguration(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Narrow, usual)
	w.apply(visits(t, users[:3], 2)...)
	before := w.app()
	w.does(schema.Wide, "start", "backfill")
	late := plain(t, "a", 40, "late")
	if _, err := w.engine.Apply(t.Context(), before, []store.LogEvent{late}); err != nil {
		t.Fatal(err)
	}
	w.events[place(late)] = late
	w.wantBoth()
	w.wantDone(w.does(schema.Wide, "verify", "cutover", "drop"))
	later := plain(t, "a", 41, "later")
	if _, err := w.engine.Apply(t.Context(), before, []store.LogEvent{later}); err != nil {
		t.Fatal(err)
	}
	w.events[place(later)] = later
	w.wantRows(schema.Wide, 0)
	w.wantExact(t, "late writers")
}
