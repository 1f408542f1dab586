package migration_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// A worker that was suspended during a task changes nothing once the migration
// has left its job's phase.
func TestSuspendedWorkers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		before, after func(w *harness) // before the worker is suspended, and while it is
	}{
		{"verification after the drop",
			func(w *harness) { w.does(schema.Wide, "start", "backfill", "verify") },
			func(w *harness) { w.does(schema.Wide, "cutover", "drop") }},
		{"verification in a migration back",
			func(w *harness) { w.does(schema.Wide, "start", "backfill", "verify") },
			func(w *harness) {
				w.does(schema.Wide, "cutover", "drop")
				w.does(schema.Narrow, "start", "backfill", "verify", "cutover")
			}},
		{"drop after a migration back",
			func(w *harness) { w.does(schema.Wide, "start", "backfill", "verify", "cutover", "drop") },
			func(w *harness) { w.does(schema.Narrow, "start", "backfill", "verify", "cutover", "drop") }},
		{"removal of a migration given up, in the next migration",
			func(w *harness) { w.does(schema.Wide, "start", "backfill", "rollback") },
			func(w *harness) { w.does(schema.Wide, "start", "backfill", "verify", "cutover") }},
		{"backfill of a migration given up, in the next migration",
			func(w *harness) { w.does(schema.Wide, "start", "backfill") },
			func(w *harness) {
				w.does(schema.Wide, "rollback")
				w.does(schema.Wide, "start", "backfill", "verify", "cutover")
			}},
		{"backfill after the drop of what it copied to",
			func(w *harness) { w.does(schema.Wide, "start", "backfill") },
			func(w *harness) { w.does(schema.Wide, "rollback") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newHarness(t, schema.Narrow, usual)
			w.apply(visits(t, users, 4)...)
			test.before(w)
			app := w.app()
			j, err := w.migrator.Jobs.Job(t.Context(), jobtest.App, app.Migration.Job)
			if err != nil {
				t.Fatal(err)
			}
			test.after(w)
			rows := map[schema.Name]map[string]string{}
			for _, n := range schema.Names {
				rows[n] = w.rowsIn(jobtest.App, n)
			}
			_, err = w.migrator.Work.Process(t.Context(), j, app, job.Shard{State: job.ShardOpen}, w.clock.read().Add(time.Hour),
				func(job.Progress) error { return nil })
			if err != nil && !errors.Is(err, job.ErrEnded) {
				t.Error(err)
			}
			for _, n := range schema.Names {
				if got := w.rowsIn(jobtest.App, n); !maps.Equal(got, rows[n]) {
					t.Errorf("%s had %d rows, and has %d, or others", n, len(rows[n]), len(got))
				}
			}
		})
	}
}

// A rollback that is requested twice undoes the cutover and does not abandon
// the migration.
func TestRollbackTwice(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Narrow, usual)
	w.apply(visits(t, users, 1)...)
	w.does(schema.Wide, "start", "backfill", "verify", "cutover")
	w.Clock = time.Now
	if _, err := w.step(t.Context(), "rollback", schema.Wide); err != nil {
		t.Fatal(err)
	}
	var refused *migration.OutOfOrder
	if _, err := w.step(t.Context(), "rollback", schema.Wide); !errors.As(err, &refused) {
		t.Errorf("at once: %v, want it refused", err)
	}
	w.Clock = func() time.Time { return time.Now().Add(time.Hour) }
	w.wantDone(w.does(schema.Wide, "rollback"))
	w.wantEmpty(schema.Wide)
}
