// Package migration migrates the log of a live app from one schema to the
// other.
//
// A migration has these steps. The operator requests each step, in this order:
//
//	start     every writer writes both schemas from now on; readers use the old one
//	backfill  a job copies the older rows in the window to the new schema
//	verify    a job compares the two logs row by row, and the profiles that a
//	          sample of users gets from each
//	cutover   readers use the new schema; writers still write both
//	drop      writers leave the old schema; a job removes the app's rows in it
//
// Until the drop the operator can go back with the step rollback. After the
// cutover, rollback returns readers to the old schema. Before the cutover, or
// after a first rollback, it abandons the migration and removes the rows in the
// new schema.
//
// Clients keep sending events during all steps. A step waits only until the
// configuration of the previous step has propagated. Package profile describes
// what writers and readers do during a migration. A copied row has an older
// cell time than any row that a writer writes, so a backfill never hides newer
// data and may be repeated from any point.
//
// The package is separate from the store, which knows rows, and from package
// job, which knows shards and tasks, because it knows the order of the steps.
// The app's configuration holds the migration's phase (config.Migration); its jobs
// lie beside it:
//
//	apps/{app}/migrations/{job}
package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// concurrency is how many shards of a migration have tasks at a time, which
// leaves capacity for clients.
const concurrency = 4

// OutOfOrder is the error of a step that is not possible now.
type OutOfOrder struct {
	// Message says what prevents the step, and which step comes first.
	Message string
}

// Error returns the message.
func (o *OutOfOrder) Error() string { return o.Message }

func outOfOrder(format string, args ...any) error { return &OutOfOrder{fmt.Sprintf(format, args...)} }

// Config reads and changes the layouts of apps: a *config.Store does. A *config.Cached does
// not, since it is not a config.Source.
type Config interface {
	config.Source
	UpdateLog(ctx context.Context, appID string, change func(*config.App) error) (config.App, error)
}

// Migrator runs the steps of migrations. It is safe for concurrent use.
type Migrator struct {
	*job.Runner
	config Config
	logs   *store.Store
	work   *work
}

// New makes a Migrator. c is the configuration itself, not a cache of it.
// New sets the name and the work of the runner.
func New(r job.Runner, c Config, s *store.Store) *Migrator {
	r.Name, r.StaleText = "migration", "rows differ"
	w := &work{store: s, jobs: r.Jobs, config: r.Config, now: r.Now, pauses: pauses, held: held}
	r.Work = w
	return &Migrator{job.New(r), c, s, w}
}

// SetPauses sets how long a verification waits before each further look at rows
// that differ, for tests that delay writers.
func (m *Migrator) SetPauses(pauses ...time.Duration) { m.work.pauses = pauses }

// Status is the layout of an app's log and the state of its last migration.
type Status struct {
	Log       schema.Layout
	Migration config.Migration // zero: the app was never migrated
	// Job is the job of the migration's phase; nil if the phase has no job, or
	// if the job has expired.
	Job *job.Job
	// Faults lists the first faulty keys that the job found, with the fault of
	// each.
	Faults []string
	// Propagation is the time until every process has read the layout.
	Propagation time.Duration
	// Next lists the steps that are possible now. The step of an unfinished job
	// is one of them: its repetition resumes the job, if the queue has lost the
	// tasks.
	Next []string
	// incomplete says why the new schema may lack events of the window in spite
	// of the backfill; "" if it has all of them.
	incomplete string
	// expired: the migration is over and its last job has expired.
	expired bool
}

// Active reports whether a migration is under way.
func (s Status) Active() bool {
	switch s.Migration.Phase {
	case config.Dual, config.Backfilling, config.Verifying, config.CutOver:
		return true
	case config.Dropping, config.RollingBack:
		return !s.done()
	}
	return false
}

// Working reports whether the migration has an unfinished job.
func (s Status) Working() bool { return s.Job != nil && !s.Job.State.Ended() }

func (s Status) done() bool { return s.expired || s.Job != nil && s.Job.State == job.Done }

// undoing reports whether a rollback has undone the cutover, but some processes
// may still read the new schema.
func (s Status) undoing() bool {
	return s.Migration.Undone && s.Migration.Phase != config.RollingBack && s.Propagation > 0
}

// Status returns the status of an app.
func (m *Migrator) Status(ctx context.Context, appID string) (Status, error) {
	_, s, err := m.read(ctx, appID)
	return s, err
}

// read returns the app, past any cache, and its status.
func (m *Migrator) read(ctx context.Context, appID string) (config.App, Status, error) {
	app, err := m.config.App(ctx, appID)
	if err != nil {
		return app, Status{}, fmt.Errorf("read the migration of %s: %w", appID, err)
	}
	s, err := m.status(ctx, app)
	return app, s, err
}

func (m *Migrator) status(ctx context.Context, app config.App) (Status, error) {
	s := Status{
		Log: app.Log, Migration: app.Migration,
		Propagation: max(0, app.ChangedAt.Add(m.Propagation).Sub(m.Clock())),
	}
	if err := m.findJob(ctx, app, &s); err != nil {
		return Status{}, err
	}
	if err := m.compareWindows(ctx, app, &s); err != nil {
		return Status{}, err
	}
	if s.Next = s.next(); s.undoing() {
		s.Next = slices.DeleteFunc(s.Next, func(step string) bool { return step == "rollback" })
	}
	return s, nil
}

// findJob sets the job of the migration's phase, and the faults that it found.
func (m *Migrator) findJob(ctx context.Context, app config.App, s *Status) error {
	if app.Migration.Job == "" {
		return nil
	}
	found, err := m.Find(ctx, app.ID, app.Migration.Job)
	if errors.Is(err, job.ErrNotFound) {
		if s.expired, err = m.isExpired(ctx, *s, app); err != nil || s.expired {
			return err
		}
		// The process of the step died before it created the job, or the job
		// expired unfinished. A repetition of the step creates it.
		found = m.draft(app, app.Migration.Job)
		found.State = job.Planning
	}
	if err != nil {
		return fmt.Errorf("read the job of the migration of %s: %w", app.ID, err)
	}
	s.Job = &found
	if found.Totals.Counts[job.CountFaulty] > 0 {
		if s.Faults, err = m.Jobs.Faults(ctx, app.ID, found.ID, job.MaxFaults); err != nil {
			return fmt.Errorf("read the faults of %s: %w", found.ID, err)
		}
	}
	return nil
}

// isExpired reports whether TTL has deleted the last job of a finished
// migration: the migration is older than job.Kept less a day, and the schema
// that the job removed is empty. The day allows for a difference between two
// clocks: jobs expire by the real clock, migrations start by the engine's.
func (m *Migrator) isExpired(ctx context.Context, s Status, app config.App) (bool, error) {
	removed := app.Migration.From
	switch app.Migration.Phase {
	case config.Dropping:
	case config.RollingBack:
		removed = app.Migration.To
	default:
		return false, nil
	}
	if s.Propagation > 0 || m.Now().Sub(app.Migration.StartedAt) < job.Kept-24*time.Hour {
		return false, nil
	}
	return m.empty(ctx, app, removed)
}

// empty reports whether an app has no rows in a schema, in any region in which its users live.
func (m *Migrator) empty(ctx context.Context, app config.App, n schema.Name) (bool, error) {
	regions := []string{""}
	if app.Residency.On() {
		regions = app.Everywhere()
	}
	for _, region := range regions {
		empty, err := m.logs.In(region).Events.Log(app.ID, app.Log).Empty(ctx, n)
		if err != nil || !empty {
			return false, err
		}
	}
	return true, nil
}

// compareWindows checks whether the window has grown since the backfill, so
// that the new schema lacks events. If the backfill has expired, its window is
// unknown, and the new schema may lack events too.
func (m *Migrator) compareWindows(ctx context.Context, app config.App, s *Status) error {
	if s.Migration.Phase != config.Verifying && s.Migration.Phase != config.CutOver {
		return nil
	}
	backfill, err := m.Jobs.Job(ctx, app.ID, s.Migration.Backfill)
	copied := job.ParamsOf[Params](backfill).RetentionDays
	switch {
	case errors.Is(err, job.ErrNotFound):
		s.incomplete = "The backfill has expired, and the window that it copied is unknown"
	case err != nil:
		return fmt.Errorf("read the backfill of %s: %w", app.ID, err)
	case copied > 0 && (app.RetentionDays == 0 || app.RetentionDays > copied):
		s.incomplete = "The retention was raised since the backfill"
	}
	return nil
}

// next returns the steps that are possible.
func (s Status) next() []string {
	working := s.Working()
	switch s.Migration.Phase {
	case config.Dual:
		return []string{"backfill", "rollback"}
	case config.Backfilling:
		if s.done() {
			return []string{"verify", "backfill", "rollback"}
		}
		return []string{"backfill", "rollback"}
	case config.Verifying:
		switch {
		case working:
			return []string{"verify", "rollback"}
		case s.done() && s.incomplete == "":
			return []string{"cutover", "verify", "backfill", "rollback"}
		}
		return []string{"backfill", "verify", "rollback"}
	case config.CutOver:
		if s.Propagation > 0 || s.incomplete != "" {
			return []string{"rollback"}
		}
		return []string{"drop", "rollback"}
	case config.Dropping:
		if !s.done() {
			return []string{"drop"}
		}
	case config.RollingBack:
		if !s.done() {
			return []string{"rollback"}
		}
	}
	return []string{"start"}
}

// step changes the app's log and migration, on condition that they are still as
// in old. Then it starts the job of the new phase, if the phase has one.
func (m *Migrator) step(ctx context.Context, old config.App, change func(*config.App)) (Status, error) {
	want := old
	change(&want)
	app, err := m.config.UpdateLog(ctx, old.ID, func(a *config.App) error {
		if a.Migration == want.Migration && a.Log.Equal(want.Log) {
			return nil // an earlier request did it, and its response was lost
		}
		if a.Migration != old.Migration || !a.Log.Equal(old.Log) {
			return outOfOrder("Another request has changed the app's log: run `affinity schema status`")
		}
		a.Migration, a.Log = want.Migration, want.Log
		return nil
	})
	if err != nil {
		return Status{}, err
	}
	if err := m.endJob(ctx, old, app); err != nil {
		return Status{}, err
	}
	return m.resume(ctx, app)
}

// endJob ends the job of the previous phase, so that its tasks stop at their
// next checkpoint.
func (m *Migrator) endJob(ctx context.Context, old, app config.App) error {
	if old.Migration.Job == "" || old.Migration.Job == app.Migration.Job {
		return nil
	}
	j, err := m.Jobs.Job(ctx, old.ID, old.Migration.Job)
	if errors.Is(err, job.ErrNotFound) || err == nil && j.State.Ended() {
		return nil
	}
	if err == nil {
		_, err = m.Supersede(ctx, j, "the migration has reached phase "+string(app.Migration.Phase))
	}
	if err != nil {
		return fmt.Errorf("end job %s: %w", old.Migration.Job, err)
	}
	return nil
}

// resume starts or resumes the job of the app's phase.
func (m *Migrator) resume(ctx context.Context, app config.App) (Status, error) {
	if app.Migration.Job != "" {
		if _, err := m.Runner.Start(ctx, m.draft(app, app.Migration.Job), 0); err != nil {
			return Status{}, err
		}
	}
	return m.status(ctx, app)
}

// draft returns a new job for the app's phase.
func (m *Migrator) draft(app config.App, id string) job.Job {
	kind, _, _ := strings.Cut(id, "-")
	p := Params{
		From: app.Migration.From, To: app.Migration.To, Rate: app.Migration.Rate,
		LogWindow: job.WindowOf(m.Now(), app.RetentionDays),
	}
	if kind == kindDrop {
		p.Since = time.Time{} // a drop removes every row
		if app.Migration.Phase == config.RollingBack {
			p.From, p.To = p.To, p.From
		}
	}
	return job.Job{App: app.ID, ID: id, Kind: kind, Concurrency: concurrency, Params: p}
}

// newID makes an id that no other job and no other migration has.
func (m *Migrator) newID(kind string) string { return job.NewID(kind, m.Now()) }

// stamp returns the time in the form that the configuration stores, so that a
// repeated step recognizes its own write.
func (m *Migrator) stamp() time.Time { return job.Stamp(m.Now()) }
