package profile_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// migrations is the state of the migrations of a simulation's log.
type migrations struct {
	migrator *migration.Migrator
	tasks    []queue.Task // in the queue, in order
	names    map[string]bool
	// configs are all configurations that the app has had. A cached read may
	// return the one at floor or any later one.
	configs []config.App
	floor   int
	mu      sync.Mutex // of both: a process may make two requests at a time
	// settled reports that the last change of the configuration has propagated.
	settled   bool
	processes int
}

func (w *simulation) newMigrations() {
	w.names = map[string]bool{}
	w.migrator = migration.New(job.Runner{
		Settings: job.Settings{ShardUsers: 1, Budget: time.Minute, Attempts: 1 << 30}, Jobs: job.In(documents.NewMemory(), migration.Collection), Config: w.apps, Queue: w, Users: w.store.Users,
		CheckpointEvery: -1, Now: func() time.Time { return time.UnixMilli(w.clock.Load()) }, Log: slog.New(slog.DiscardHandler),
	}, w.apps, w.store)
	w.migrator.SetPauses(0, 0)
}

// Create adds a task to the queue of the migration.
func (w *simulation) Create(_ context.Context, t queue.Task) error {
	if !w.names[t.Name] {
		w.names[t.Name] = true
		w.tasks = append(w.tasks, t)
	}
	return nil
}

// ahead starts a history in the middle of a migration, with some events in the
// log.
func (w *simulation) ahead() {
	steps := rapid.IntRange(0, 6).Draw(w.t, "steps ahead")
	for n := range min(steps, 3) {
		w.deliver(message{events: []int{2 * n, 2*n + 1}}, n == 0)
		w.drain()
	}
	for range steps {
		w.settleConfig()
		st, err := w.migrator.Status(ctx, w.appID)
		must.Succeed(w.t, err)
		w.take(st, st.Next[0])
		w.work()
	}
}

// changed records the app's new configuration.
func (w *simulation) changed() {
	if app := w.app(); len(w.configs) == 0 || !app.Log.Equal(w.configs[len(w.configs)-1].Log) ||
		app.Region != w.configs[len(w.configs)-1].Region || app.Move != w.configs[len(w.configs)-1].Move || app.StrategyVersion != w.configs[len(w.configs)-1].StrategyVersion ||
		!reflect.DeepEqual(app.Experiment, w.configs[len(w.configs)-1].Experiment) {
		w.mu.Lock()
		w.configs, w.settled = append(w.configs, app), false
		w.mu.Unlock()
	}
}

// stale is the cache of a process. It keeps the configuration of the process's
// start for as long as a cache may.
type stale struct {
	*config.Store
	w    *simulation
	born int
}

func (s stale) App(context.Context, string) (config.App, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.configs[max(s.born, s.w.floor)], nil
}

// cache returns the cache of a new process. Every second one is out of date.
func (w *simulation) cache() config.Source {
	if w.processes++; w.processes%2 == 0 {
		return w.apps
	}
	return stale{w.apps, w, len(w.configs) - 1}
}

// expire lets caches forget every configuration but the newest.
func (w *simulation) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.floor = len(w.configs) - 1
}

// settleConfig lets the time pass after which the configuration has propagated:
// caches have expired, and every process that read one has made its next
// request.
func (w *simulation) settleConfig() {
	w.expire()
	for _, a := range slices.Clone(w.working) {
		if i := slices.Index(w.working, a); i >= 0 {
			w.advance(i, rapid.SampledFrom([]verdict{proceed, proceed, crash}).Draw(w.t, "verdict"))
		}
	}
	w.settled = true
}

// migrate takes a permitted step of a migration, once the last one has propagated.
func (w *simulation) migrate(giveUp bool) {
	if !w.settled {
		w.settleConfig()
		return
	}
	st, err := w.migrator.Status(ctx, w.appID)
	must.Succeed(w.t, err)
	steps := st.Next
	if !giveUp {
		steps = slices.DeleteFunc(slices.Clone(steps), func(s string) bool { return s == "rollback" })
	}
	if len(steps) == 0 {
		return
	}
	w.take(st, rapid.SampledFrom(steps).Draw(w.t, "step of the migration"))
}

func (w *simulation) take(st migration.Status, step string) {
	var err error
	switch step {
	case "start":
		_, err = w.migrator.Start(ctx, w.appID, st.Log.Read.Other())
		// Status permits a start, so only rows from an earlier move can refuse it.
		var refused *migration.OutOfOrder
		if errors.As(err, &refused) {
			_, err = w.migrator.Drop(ctx, w.appID, st.Log.Read.Other())
		}
	case "backfill":
		_, err = w.migrator.Backfill(ctx, w.appID, 0)
	case "verify":
		_, err = w.migrator.Verify(ctx, w.appID)
	case "cutover":
		_, err = w.migrator.Cutover(ctx, w.appID)
	case "rollback":
		_, err = w.migrator.Rollback(ctx, w.appID)
	case "drop":
		_, err = w.migrator.Drop(ctx, w.appID, st.Migration.From)
	}
	if err != nil {
		w.t.Fatalf("%s: %v", step, err)
	}
	w.changed()
}

// task starts a process on a task of the migration's queue. A task that fails
// stays in the queue.
func (w *simulation) task(i int) {
	t := w.tasks[i]
	w.start("task "+t.Path+string(t.Body), func(ctx context.Context) error {
		var err error
		if strings.HasSuffix(t.Path, "/plan") {
			var task job.PlanTask
			if err = json.Unmarshal(t.Body, &task); err == nil {
				_, err = w.migrator.Plan(ctx, task, 0)
			}
		} else {
			var task job.ShardTask
			if err = json.Unmarshal(t.Body, &task); err == nil {
				_, err = w.migrator.Shard(ctx, task, 0)
			}
		}
		if err == nil {
			w.tasks = slices.DeleteFunc(w.tasks, func(o queue.Task) bool { return o.Name == t.Name })
		}
		return err
	})
}

// work runs all tasks, one after the other.
func (w *simulation) work() {
	for len(w.tasks) > 0 {
		w.task(0)
		w.drain()
	}
}

// finishMove completes the running migration and checks every state on the way.
func (w *simulation) finishMove() {
	w.work()
	for range 12 {
		w.settleConfig()
		st, err := w.migrator.Status(ctx, w.appID)
		must.Succeed(w.t, err)
		if !st.Active() {
			return
		}
		w.take(st, st.Next[0])
		w.work()
		w.exact("after " + st.Next[0])
		if now, err := w.migrator.Status(ctx, w.appID); err != nil || now.Job != nil && now.Job.State == job.Done && now.Migration.Phase == config.Verifying {
			w.bothAlike(now)
		}
	}
	w.t.Fatalf("the migration does not end: %+v", w.app().Migration)
}

// bothAlike checks that both schemas of a verified migration hold the same
// rows.
func (w *simulation) bothAlike(st migration.Status) {
	from, to := w.rows(st.Migration.From), w.rows(st.Migration.To)
	if !slices.Equal(from, to) {
		w.t.Fatalf("the logs are verified and differ:\n%q\n%q", from, to)
	}
}

// rows returns the events of one schema that are in the window and not deleted.
func (w *simulation) rows(n schema.Name) []string {
	row, err := w.store.Users.ReadUser(ctx, w.appID, "u")
	must.Succeed(w.t, err)
	from := int64(0)
	if days := w.app().RetentionDays; days > 0 {
		from = w.clock.Load() - int64(days)*24*hour + 1
	}
	l := schema.Layout{Write: schema.Names, Read: n, Encoding: schema.JSON}
	var rows []string
	err = w.store.Events.Log(w.appID, l).Read(ctx, []store.UserRange{{User: "u", From: history.Pos{Time: max(from, row.DeletedUntil+1)}, To: history.End}},
		func(_ string, r store.LogRow) error {
			e, err := r.Event()
			if row.Tombstone().Covers(r.Time, r.Receipt()) || row.OptedOut.Has(e.Type) ||
				!law(w.app(), row, consent.Kept, e.Type, r.Time, r.Receipt()) {
				return nil
			}
			text, encodeErr := json.Marshal(e)
			rows = append(rows, r.ID+string(text))
			return errors.Join(err, encodeErr)
		})
	must.Succeed(w.t, err)
	return rows
}
