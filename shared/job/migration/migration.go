// Package migration migrates the log of a live app from one schema to the
// other.
//
// A migration has these steps. The operator requests each of them, in this
// order:
//
//	start     every writer writes both schemas from now on; reads use the old one
//	backfill  a job copies the older rows in the window to the new schema
//	verify    a job compares the two logs row by row, and the profiles that a
//	          sample of users gets from each
//	cutover   reads use the new schema; both are still written
//	drop      the old schema is no longer written; a job removes the app's rows in it
//
// Until the drop the operator can go back. After the cutover, rollback returns
// reads to the old schema. Before the cutover, or run a second time, it
// abandons the migration and removes what it wrote.
//
// Events keep coming all the while, and no step waits for anything but time: a
// step begins when the configuration that the previous one wrote has
// propagated. Package profile describes what writers and readers do during a
// migration. A copied row has an older cell time than any row that a writer
// writes, so a backfill never hides newer data and may be repeated from any
// point.
//
// The package is separate from the store, which knows rows, and from package
// job, which knows shards and tasks, because it knows the order of the steps.
// The app's configuration holds the migration's phase (config.Migration); its jobs
// lie beside it:
//
//	apps/{app}/moves/{job}
package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// maxInFlight is how many shards of a migration are processed at a time: it
// leaves capacity for clients.
const maxInFlight = 4

// OutOfOrder rejects a step that may not be taken now.
type OutOfOrder struct {
	// Message is what prevents the step, and which step comes first.
	Message string
}

// Error is the message.
func (o *OutOfOrder) Error() string { return o.Message }

func outOfOrder(format string, args ...any) error { return &OutOfOrder{fmt.Sprintf(format, args...)} }

// Migrator takes the steps of migrations. It is safe for concurrent use.
type Migrator struct {
	*job.Runner
	config config.Store
	logs   *store.Store
	work   *work
}

// New makes a Migrator. c is the configuration itself, not a cache of it.
// New sets the name and the work of the runner.
func New(r job.Runner, c config.Store, s *store.Store) *Migrator {
	r.Name, r.StaleText = "move", "rows differ"
	w := &work{store: s, jobs: r.Jobs, config: r.Config, now: r.Now, pauses: pauses}
	r.Work = w
	return &Migrator{job.New(r), c, s, w}
}

// SetPauses sets how long a verification waits before each further look at rows
// that differ, for tests that delay the writers it waits for.
func (m *Migrator) SetPauses(pauses ...time.Duration) { m.work.pauses = pauses }

// Status is the layout of an app's log and the state of its last migration.
type Status struct {
	Log       schema.Layout
	Migration config.Migration // zero: the app was never migrated
	// Job is the job of the migration's phase; nil if the phase has no job, or
	// if the job has expired.
	Job *job.Job
	// Faults are the first keys that the job found faulty, and what is wrong
	// with them.
	Faults []string
	// Propagation is how long it takes until every process has the layout.
	Propagation time.Duration
	// Next are the steps that may be taken now. The step whose job is under way
	// is one of them: taken again it resumes the job, whose tasks may have been
	// lost.
	Next []string
	// incomplete is why the new schema may not hold all events of the window
	// since it was copied; "" if it holds them.
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

// Working reports whether a job is under way.
func (s Status) Working() bool { return s.Job != nil && !s.Job.State.Ended() }

func (s Status) done() bool { return s.expired || s.Job != nil && s.Job.State == job.Done }

// undoing reports whether the cutover was undone and some processes may still
// read the new schema.
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
	s := Status{Log: app.Log, Migration: app.Migration, Propagation: max(0, app.ChangedAt.Add(m.Propagation).Sub(m.Clock()))}
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
		// The step's process died before it created the job, or the job has
		// expired with something left to do: the step taken again creates it.
		found = m.draft(app, app.Migration.Job)
		found.State = job.Planning
	}
	if err != nil {
		return fmt.Errorf("read the job of the migration of %s: %w", app.ID, err)
	}
	s.Job = &found
	if found.Totals.Faulty > 0 {
		if s.Faults, err = m.Jobs.Faults(ctx, app.ID, found.ID, job.MaxFaults); err != nil {
			return fmt.Errorf("read the faults of %s: %w", found.ID, err)
		}
	}
	return nil
}

// isExpired reports whether a finished migration's last job was collected by
// TTL: the migration is older than job.Kept less a day, and the schema it was
// to remove is empty. The day is for the difference of two clocks: jobs expire
// by the real clock, and migrations start by the engine's.
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
	return m.logs.Log(app.ID, app.Log).Empty(ctx, removed)
}

// compareWindows checks whether the window has grown since the backfill: then
// the new schema lacks events. If the backfill has expired its window is
// unknown, and the new schema may lack events too.
func (m *Migrator) compareWindows(ctx context.Context, app config.App, s *Status) error {
	if s.Migration.Phase != config.Verifying && s.Migration.Phase != config.CutOver {
		return nil
	}
	backfill, err := m.Jobs.Job(ctx, app.ID, s.Migration.Backfill)
	copied := job.ParamsOf[Params](backfill).RetentionDays
	switch {
	case errors.Is(err, job.ErrNotFound):
		s.incomplete = "The backfill has expired, and its window with it"
	case err != nil:
		return fmt.Errorf("read the backfill of %s: %w", app.ID, err)
	case copied > 0 && (app.RetentionDays == 0 || app.RetentionDays > copied):
		s.incomplete = "The retention was raised since the backfill"
	}
	return nil
}

// next returns the steps that may be taken.
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

// step changes the app's log and migration as a compare-and-set on the app that
// was read, and then starts the job of the new phase, if the phase has one.
func (m *Migrator) step(ctx context.Context, was config.App, to func(*config.App)) (Status, error) {
	want := was
	to(&want)
	app, err := m.config.UpdateLog(ctx, was.ID, func(a *config.App) error {
		if a.Migration == want.Migration && a.Log.Equal(want.Log) {
			return nil // done before, and the response was lost
		}
		if a.Migration != was.Migration || !a.Log.Equal(was.Log) {
			return outOfOrder("Another request has changed the app's log: look at `affinity schema status`")
		}
		a.Migration, a.Log = want.Migration, want.Log
		return nil
	})
	if err != nil {
		return Status{}, err
	}
	if err := m.endJob(ctx, was, app); err != nil {
		return Status{}, err
	}
	return m.resume(ctx, app)
}

// endJob ends the job of the previous phase, so that its tasks stop at their
// next checkpoint.
func (m *Migrator) endJob(ctx context.Context, was, is config.App) error {
	if was.Migration.Job == "" || was.Migration.Job == is.Migration.Job {
		return nil
	}
	j, err := m.Jobs.Job(ctx, was.ID, was.Migration.Job)
	if errors.Is(err, job.ErrNotFound) || err == nil && j.State.Ended() {
		return nil
	}
	if err == nil {
		_, err = m.Supersede(ctx, j, "the move has gone on to its "+string(is.Migration.Phase))
	}
	if err != nil {
		return fmt.Errorf("end job %s: %w", was.Migration.Job, err)
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

// draft is the job of the app's phase as it is created.
func (m *Migrator) draft(app config.App, id string) job.Job {
	kind, _, _ := strings.Cut(id, "-")
	p := Params{
		From: app.Migration.From, To: app.Migration.To, Rate: app.Migration.Rate, LogWindow: job.WindowOf(m.Now(), app.RetentionDays),
	}
	if kind == kindDrop {
		p.Since = time.Time{} // a drop removes every row
		if app.Migration.Phase == config.RollingBack {
			p.From, p.To = p.To, p.From
		}
	}
	return job.Job{App: app.ID, ID: id, Kind: kind, MaxInFlight: maxInFlight, Params: p}
}

// newID makes an id that no other job or migration has.
func (m *Migrator) newID(kind string) string { return job.NewID(kind, m.Now()) }

// stamp is the time as the configuration stores it, so that a repeated step
// finds its own write equal.
func (m *Migrator) stamp() time.Time { return job.Stamp(m.Now()) }
