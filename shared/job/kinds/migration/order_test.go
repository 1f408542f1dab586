package migration_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// failing makes the requests of a kind fail in every task of a step.
func (w *harness) failing(t *testing.T, what, step string) {
	t.Helper()
	w.Gate = func(_ context.Context, called string) jobtest.Fault {
		if called == what {
			return jobtest.FailBefore
		}
		return jobtest.None
	}
	s := w.does(schema.Wide, step)
	w.Gate = nil
	if s.Job == nil || s.Job.State != job.Failed {
		t.Fatalf("%s has not failed: %+v", step, s.Job)
	}
}

// states are all states of a migration from narrow to wide: how to get there,
// the steps that are listed as next, and the other steps that are accepted,
// because they resume what is under way.
var states = []struct {
	name  string
	make  func(*testing.T, *harness)
	next  string
	again string
}{
	{"no migration", func(*testing.T, *harness) {}, "start", ""},
	{"dual", func(_ *testing.T, w *harness) { w.does(schema.Wide, steps[:1]...) }, "backfill rollback", "start"},
	{"backfill in work", func(t *testing.T, w *harness) { w.does(schema.Wide, "start"); w.requests(t, "backfill", schema.Wide) }, "backfill rollback", "backfill"},
	{"backfill failed", func(t *testing.T, w *harness) {
		w.does(schema.Wide, "start")
		w.failing(t, "MutateRow", "backfill")
	}, "backfill rollback", ""},
	{"backfill cancelled", func(t *testing.T, w *harness) {
		w.does(schema.Wide, "start")
		w.requests(t, "backfill", schema.Wide)
		if _, err := w.migrator.Cancel(t.Context(), jobtest.App, w.status().Job.ID); err != nil {
			t.Fatal(err)
		}
	}, "backfill rollback", ""},
	{"backfill done", func(_ *testing.T, w *harness) { w.does(schema.Wide, steps[:2]...) }, "verify backfill rollback", ""},
	{"verification in work", func(t *testing.T, w *harness) {
		w.does(schema.Wide, steps[:2]...)
		w.requests(t, "verify", schema.Wide)
	}, "verify rollback", "verify"},
	{"verification failed", func(t *testing.T, w *harness) {
		w.does(schema.Wide, steps[:2]...)
		w.put(schema.Wide, plain(t, "a", 50, "only here"))
		w.does(schema.Wide, "verify")
	}, "backfill verify rollback", ""},
	{"verification done", func(_ *testing.T, w *harness) { w.does(schema.Wide, steps[:3]...) }, "cutover verify backfill rollback", ""},
	{"cutover on its way", func(_ *testing.T, w *harness) {
		w.does(schema.Wide, steps[:4]...)
		w.Clock = time.Now
	}, "rollback", "cutover"},
	{"cutover", func(_ *testing.T, w *harness) { w.does(schema.Wide, steps[:4]...) }, "drop rollback", "cutover"},
	{"cutover undone", func(_ *testing.T, w *harness) {
		w.does(schema.Wide, "start", "backfill", "verify", "cutover", "rollback")
	},
		"verify backfill rollback", ""},
	{"cutover undone on its way", func(t *testing.T, w *harness) {
		w.does(schema.Wide, steps[:4]...)
		w.Clock = time.Now
		w.requests(t, "rollback", schema.Wide)
	}, "verify backfill", ""},
	{"verification before a cutover is undone everywhere", func(t *testing.T, w *harness) {
		w.does(schema.Wide, steps[:4]...)
		w.Clock = time.Now
		w.requests(t, "rollback", schema.Wide)
		w.requests(t, "verify", schema.Wide)
	}, "verify", "verify"},
	{"drop in work", func(t *testing.T, w *harness) { w.does(schema.Wide, steps[:4]...); w.requests(t, "drop", schema.Wide) }, "drop", "drop"},
	{"drop failed", func(t *testing.T, w *harness) {
		w.does(schema.Wide, steps[:4]...)
		w.failing(t, "MutateRow", "drop")
	}, "drop", ""},
	{"rollback in work", func(t *testing.T, w *harness) {
		w.does(schema.Wide, steps[:2]...)
		w.requests(t, "rollback", schema.Wide)
	}, "rollback", "rollback"},
	{"rollback failed", func(t *testing.T, w *harness) {
		w.does(schema.Wide, steps[:2]...)
		w.failing(t, "MutateRow", "rollback")
	}, "rollback", ""},
	{"rollback done", func(_ *testing.T, w *harness) { w.does(schema.Wide, "start", "backfill", "rollback") }, "start", ""},
}

// requests takes a step of a migration and leaves its tasks in the queue.
func (w *harness) requests(t *testing.T, step string, to schema.Name) {
	t.Helper()
	if _, err := w.step(t.Context(), step, to); err != nil {
		t.Fatal(err)
	}
}

// shot returns the state that a rejected step must not change.
func (w *harness) shot(t *testing.T) []any {
	t.Helper()
	jobs, err := w.Jobs.List(t.Context(), jobtest.App, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return []any{w.app(), jobs, len(w.Tasks), w.rowsIn(jobtest.App, schema.Narrow), w.rowsIn(jobtest.App, schema.Wide)}
}

// TestOrder takes every step in every state.
func TestOrder(t *testing.T) {
	t.Parallel()
	g := &gate{}
	s, client := storetest.NewWithClient(t, g.dial()...)
	for _, state := range states {
		t.Run(state.name, func(t *testing.T) {
			next, again := strings.Fields(state.next), strings.Fields(state.again)
			arrive := func() *harness {
				w := newHarnessOn(t, s, client, g, schema.Narrow, usual)
				w.clear(t)
				w.apply(plain(t, "a", 1, "red"))
				state.make(t, w)
				return w
			}
			w := arrive()
			if st := w.status(); !slices.Equal(st.Next, next) {
				t.Errorf("next are %q, want %q", st.Next, next)
			}
			for _, step := range steps {
				if slices.Contains(next, step) {
					continue
				}
				before := w.shot(t)
				_, err := w.step(t.Context(), step, schema.Wide)
				var refused *migration.OutOfOrder
				switch {
				case slices.Contains(again, step):
					if err != nil {
						t.Errorf("%s again: %v", step, err)
					}
				case !errors.As(err, &refused) || refused.Message == "":
					t.Errorf("%s: got %v, want it refused", step, err)
				}
				if after := w.shot(t); !reflect.DeepEqual(before, after) {
					t.Errorf("%s has changed something:\n%+v\n%+v", step, before, after)
				}
			}
			for _, step := range next {
				w := arrive()
				before := w.app()
				if _, err := w.step(t.Context(), step, schema.Wide); err != nil {
					t.Errorf("%s may be taken, and is refused: %v", step, err)
				}
				if after := w.app(); (after.Migration == before.Migration) != slices.Contains(again, step) {
					t.Errorf("%s may be taken: from %+v to %+v", step, before.Migration, after.Migration)
				}
				w.Clock = func() time.Time { return time.Now().Add(time.Hour) }
				w.Drain()
				if st := w.status(); st.Working() {
					t.Errorf("%s does not end: %+v", step, st.Job)
				}
			}
		})
	}
}

// A step ends the job of the previous step at once. If it dies after it changed
// the configuration, that job ends with its next task.
func TestJobOfPreviousStepEnds(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		w := newHarness(t, schema.Narrow, usual)
		w.apply(visits(t, users, 2)...)
		w.does(schema.Wide, "start")
		w.requests(t, "backfill", schema.Wide)
		left := w.app().Migration.Job
		w.Gate = func(_ context.Context, what string) jobtest.Fault {
			if crash && what == "update" {
				return jobtest.FailBefore
			}
			return jobtest.None
		}
		if _, err := w.step(t.Context(), "rollback", schema.Wide); (err != nil) != crash {
			t.Errorf("rollback, crash %v: %v", crash, err)
		}
		w.Gate = nil
		if crash {
			w.does(schema.Wide, "rollback")
		}
		if j, err := w.Jobs.Job(t.Context(), jobtest.App, left); err != nil || j.State != job.Superseded {
			t.Errorf("the backfill is %s, error %v", j.State, err)
		}
		w.Drain()
		w.wantDone(w.status())
		w.wantEmpty(schema.Wide)
	}
}

// Without a migration, an operator may always drop the schema that is not read,
// to remove leftover rows, and never the schema that is read.
func TestDropOfLeftoverRows(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Narrow, usual)
	w.apply(visits(t, users[:3], 2)...)
	late := plain(t, "a", 7, "late")
	w.put(schema.Wide, late)
	var refused *migration.OutOfOrder
	if _, err := w.migrator.Start(t.Context(), jobtest.App, schema.Wide); !errors.As(err, &refused) || !strings.Contains(refused.Message, "drop --schema wide") {
		t.Errorf("start where rows are left: %v", err)
	}
	if _, err := w.migrator.Drop(t.Context(), jobtest.App, schema.Narrow); !errors.As(err, &refused) {
		t.Errorf("drop of the schema that is read: %v", err)
	}
	w.wantRows(schema.Narrow, 0)
	for range 2 {
		w.wantDone(w.does(schema.Narrow, "drop"))
		w.wantEmpty(schema.Wide)
		w.wantRows(schema.Narrow, 0)
	}
	w.moves(schema.Wide)
	w.wantRows(schema.Wide, 0)
}

// Of two concurrent requests for a step, one succeeds and the other is
// rejected.
func TestConcurrentSteps(t *testing.T) {
	t.Parallel()
	for i, step := range steps {
		t.Run(step, func(t *testing.T) {
			w := newHarness(t, schema.Narrow, usual)
			w.apply(visits(t, users[:2], 2)...)
			w.does(schema.Wide, steps[:min(i, 3)]...)
			if step == "drop" {
				w.does(schema.Wide, "cutover")
			}
			// Both have looked before either writes.
			var looked sync.WaitGroup
			looked.Add(2)
			w.Gate = func(_ context.Context, what string) jobtest.Fault {
				if what == "update log" {
					looked.Done()
					looked.Wait()
				}
				return jobtest.None
			}
			var errs [2]error
			var both sync.WaitGroup
			for i := range errs {
				both.Go(func() { _, errs[i] = w.step(t.Context(), step, schema.Wide) })
			}
			both.Wait()
			w.Gate = nil
			var refused *migration.OutOfOrder
			switch {
			case step == "cutover" && errors.Join(errs[:]...) == nil: // both give the same result
			case errs[0] == nil && errors.As(errs[1], &refused), errs[1] == nil && errors.As(errs[0], &refused):
			default:
				t.Errorf("got %v and %v, want one of them refused", errs[0], errs[1])
			}
			w.Drain()
			w.wantDone(w.status())
		})
	}
}

// forgetful is a configuration that loses the responses of its writes: the
// caller finds its own write when it tries again.
type forgetful struct{ *config.Store }

func (f forgetful) UpdateLog(ctx context.Context, id string, change func(*config.App) error) (config.App, error) {
	if _, err := f.Store.UpdateLog(ctx, id, change); err != nil {
		return config.App{}, err
	}
	return f.Store.UpdateLog(ctx, id, change)
}

func TestLostConfigurationResponses(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Narrow, usual)
	w.apply(visits(t, users[:2], 2)...)
	parts := w.Parts(usual)
	parts.Users, parts.Now = w.store.Users, func() time.Time { return w.clock.read().Add(7).In(time.FixedZone("CET", 3600)) }
	w.migrator = migration.New(parts, forgetful{w.Config}, w.store)
	w.Runner = w.migrator.Runner
	w.moves(schema.Wide)
	w.wantRows(schema.Wide, 0)
	w.does(schema.Wide, "drop")
	w.does(schema.Narrow, "start", "backfill", "rollback")
	w.wantRows(schema.Wide, 0)
}
