package migration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// expire advances the clock and removes all jobs, as TTL removes ended ones.
func (w *harness) expire(after time.Duration) {
	w.t.Helper()
	w.clock.mu.Lock()
	w.clock.now = w.clock.now.Add(after)
	w.clock.mu.Unlock()
	w.LoseTasks() // the queue does not know their names any more
	w.Harness.Jobs = job.In(documents.NewMemory(), migration.Collection)
	parts := w.Parts(usual)
	parts.Users, parts.Now = w.store.Users, w.clock.read
	w.migrator = migration.New(parts, gatedConfig{w.Config, w}, w.store)
	w.migrator.SetPauses(0, 0)
	w.Runner = w.migrator.Runner
}

// aged returns a harness whose log was in narrow, without a retention, after
// some steps.
func aged(t *testing.T, steps ...string) *harness {
	t.Helper()
	w := newHarness(t, schema.Narrow, usual)
	if err := w.Config.SetRetention(t.Context(), jobtest.App, 0); err != nil {
		t.Fatal(err)
	}
	w.apply(visits(t, users[:4], 2)...)
	w.does(schema.Wide, steps...)
	return w
}

func (w *harness) wantNext(moving bool, want ...string) {
	w.t.Helper()
	if s := w.status(); s.Active() != moving || !slices.Equal(s.Next, want) {
		w.t.Errorf("moving: %v, next are %q, want %q; job %+v", s.Active(), s.Next, want, s.Job)
	}
}

// A completed migration stays complete when its last job has expired, and
// another may start.
func TestExpiredAfterTheEnd(t *testing.T) {
	t.Parallel()
	for end, way := range map[string][]string{
		"drop":     {"start", "backfill", "verify", "cutover", "drop"},
		"rollback": {"start", "backfill", "rollback"},
	} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			w := aged(t, way...)
			w.expire(job.Kept)
			w.wantNext(false, "start")
			if s := w.status(); s.Job != nil || s.Working() {
				t.Errorf("its job is %+v", s.Job)
			}
			lies := w.app().Log.Read
			w.moves(lies.Other())
			w.wantRows(lies.Other(), 0)
			w.wantEmpty(lies)
		})
	}
}

// A missing last job was never created if the migration is too young for it to
// have expired, if the step has not propagated, or if rows remain. Then a
// repetition of the step creates the job.
func TestNotExpiredAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		way  []string
		last string
		age  time.Duration
		make func(*testing.T, *harness)
	}{
		"a young migration": {[]string{"start", "rollback"}, "rollback", job.Kept - 25*time.Hour, func(*testing.T, *harness) {}},
		"just now":          {[]string{"start", "rollback"}, "rollback", job.Kept, func(_ *testing.T, w *harness) { w.Clock = time.Now }},
		"a drop that failed": {steps[:4], "drop", job.Kept, func(t *testing.T, w *harness) {
			w.failing(t, "MutateRows", "drop")
		}},
		"a rollback that failed": {steps[:2], "rollback", job.Kept, func(t *testing.T, w *harness) {
			w.failing(t, "MutateRows", "rollback")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := aged(t, c.way...)
			c.make(t, w)
			w.expire(c.age)
			w.wantNext(true, c.last)
			w.Clock = func() time.Time { return time.Now().Add(time.Hour) }
			if name == "just now" {
				w.wantNext(false, "start")
				return
			}
			w.wantDone(w.does(schema.Wide, c.last))
			w.wantNext(false, "start")
			lies := w.app().Log.Read
			w.wantRows(lies, 0)
			w.wantEmpty(lies.Other())
		})
	}
}

// A migration whose backfill has expired needs another backfill before the
// cutover or the drop.
func TestExpiredBackfill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		way     []string
		next    []string
		refused string
		again   []string
		then    []string // next after the first step of again
	}{
		"copied":     {steps[:2], []string{"backfill", "rollback"}, "verify", steps[1:5], []string{"verify", "backfill", "rollback"}},
		"verified":   {steps[:3], []string{"verify", "rollback"}, "cutover", append([]string{"verify"}, steps[1:5]...), []string{"backfill", "verify", "rollback"}},
		"cut over":   {steps[:4], []string{"rollback"}, "drop", append([]string{"rollback"}, steps[2:5]...), []string{"verify", "backfill", "rollback"}},
		"both again": {steps[:4], []string{"rollback"}, "drop", append([]string{"rollback"}, steps[1:5]...), []string{"verify", "backfill", "rollback"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := aged(t, c.way...)
			w.expire(job.Kept)
			w.wantNext(true, c.next...)
			w.refuses(t, c.refused, schema.Wide)
			if c.refused == "drop" {
				if _, err := w.step(t.Context(), "drop", schema.Wide); err == nil || !strings.Contains(err.Error(), "has expired") {
					t.Errorf("drop: %v", err)
				}
			}
			w.wantDone(w.does(schema.Wide, c.again[0]))
			w.wantNext(true, c.then...)
			for _, step := range c.again[1:] {
				w.wantDone(w.does(schema.Wide, step))
			}
			w.wantNext(false, "start")
			w.wantRows(schema.Wide, 0)
			w.wantEmpty(schema.Narrow)
		})
	}
}
