// Package migration moves the log of a live app from one schema to the other.
//
// A move has these steps, each ordered by whoever runs the engine, each taken
// only after the one before:
//
//	start     both schemas are written from now on, the old one is read
//	backfill  what the window holds from before is copied
//	verify    the two logs are compared row by row, and the profiles that a
//	          sample of users gets from each
//	cutover   the new one is read; both are written still
//	drop      the old one is not written any more, and the app's rows in it removed
//
// Until the drop there is a way back: rollback undoes the cutover, and given again
// gives the move up and removes what it wrote.
//
// Events keep coming all the while, and nothing waits for anything but time: each
// step begins when the configuration that the one before has left is in force
// everywhere. What package profile does to that end is told there. A copy stands
// behind whatever is written to the same row at any time, so that a backfill
// never hides anything newer and may be done again from any point.
//
// It is separate from the store, which knows rows, and from package job, which
// knows shards and tasks, because it knows the order of things. How far a move is
// lies in the app's configuration (config.Move), its jobs beside it:
//
//	apps/{app}/moves/{job}
package migration

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection is where the jobs lie under an app.
const Collection = "moves"

// Kinds of jobs.
const (
	kindBackfill = "backfill"
	kindVerify   = "verify"
	kindDrop     = "drop"
)

// DefaultRate is how many rows a second a backfill copies where nobody says
// otherwise: about what one node of Bigtable takes beside its other work.
const DefaultRate = 10_000

// lanes is how many shards of a move are worked on at a time: it is to leave room
// for what serves.
const lanes = 4

// OutOfOrder refuses a step whose turn it is not.
type OutOfOrder struct {
	// Message says what is in the way, and what comes first.
	Message string
}

// Error is the message.
func (o *OutOfOrder) Error() string { return o.Message }

func outOfOrder(format string, args ...any) error { return &OutOfOrder{fmt.Sprintf(format, args...)} }

// Mover takes the steps of moves. Safe for concurrent use.
type Mover struct {
	*job.Runner
	apps config.Store
	logs *store.Store
	work *work
}

// New makes a Mover. apps is the configuration itself, not a cache of it. Of the
// runner the name and the work are set here.
func New(r job.Runner, apps config.Store, s *store.Store) *Mover {
	r.Name, r.Stale = "move", "rows differ"
	w := &work{store: s, jobs: r.Jobs, apps: r.Apps, now: r.Now, pauses: pauses}
	r.Work = w
	return &Mover{job.New(r), apps, s, w}
}

// Patience sets how long a verification waits before each look at what differs,
// for tests that hold up what it waits for.
func (m *Mover) Patience(pauses ...time.Duration) { m.work.pauses = pauses }

// Status is how an app's log lies, and how far its last move is.
type Status struct {
	Log  schema.Layout
	Move config.Move // zero: there was none
	// Job is the job of the move's phase, nil if it has none, or if it ended so long
	// ago that it is not kept any more.
	Job *job.Job
	// Faults are the first keys that the job found faulty, and what is wrong.
	Faults []string
	// Settles is how long the layout is not yet in force everywhere.
	Settles time.Duration
	// Next are the steps that may be taken now. The step whose job is under way is
	// one: taken again it is gone on with, also where its job or tasks were lost.
	Next []string
	// wider says why the new schema may not hold all that counts, of the window that
	// was copied; "" if it does.
	wider string
	// over: what the last phase was to remove is gone, and its job too.
	over bool
}

// Moving tells whether a move is under way.
func (s Status) Moving() bool {
	switch s.Move.Phase {
	case config.Dual, config.Backfilling, config.Verifying, config.CutOver:
		return true
	case config.Dropping, config.RollingBack:
		return !s.done()
	}
	return false
}

// Working tells whether a job is under way.
func (s Status) Working() bool { return s.Job != nil && !s.Job.State.Ended() }

func (s Status) done() bool { return s.over || s.Job != nil && s.Job.State == job.Done }

// undoing tells whether the cutover was undone and some may still read what was
// moved to.
func (s Status) undoing() bool {
	return s.Move.Undone && s.Move.Phase != config.RollingBack && s.Settles > 0
}

// Status looks at an app.
func (m *Mover) Status(ctx context.Context, appID string) (Status, error) {
	app, err := m.apps.App(ctx, appID)
	if err != nil {
		return Status{}, fmt.Errorf("look at the log of %s: %w", appID, err)
	}
	return m.status(ctx, app)
}

func (m *Mover) status(ctx context.Context, app config.App) (Status, error) {
	s := Status{Log: app.Log, Move: app.Move, Settles: max(0, app.ChangedAt.Add(m.Settle).Sub(m.Clock()))}
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

// findJob looks for the job of the move's phase, and for what it found.
func (m *Mover) findJob(ctx context.Context, app config.App, s *Status) error {
	if app.Move.Job == "" {
		return nil
	}
	found, err := m.Find(ctx, app.ID, app.Move.Job)
	if errors.Is(err, job.ErrNotFound) {
		if s.over, err = m.outlived(ctx, *s, app); err != nil || s.over {
			return err
		}
		// Who took the step has gone before he made the job, or the job has expired with
		// something still left to do: the step again makes it.
		found = m.job(app, app.Move.Job)
		found.State = job.Planning
	}
	if err != nil {
		return fmt.Errorf("look at the job of the move of %s: %w", app.ID, err)
	}
	s.Job = &found
	if found.Totals.Faulty > 0 {
		if s.Faults, err = m.Jobs.Faults(ctx, app.ID, found.ID, job.MaxFaults); err != nil {
			return fmt.Errorf("look at the faults of %s: %w", found.ID, err)
		}
	}
	return nil
}

// outlived tells whether a move is over whose last job is not there: it may have
// expired since, for which the move must be old enough, and then what it was to
// remove is gone. Jobs expire by the real clock and moves begin by the engine's: a
// day is for what the two differ.
func (m *Mover) outlived(ctx context.Context, s Status, app config.App) (bool, error) {
	left := app.Move.From
	switch app.Move.Phase {
	case config.Dropping:
	case config.RollingBack:
		left = app.Move.To
	default:
		return false, nil
	}
	if s.Settles > 0 || m.Now().Sub(app.Move.StartedAt) < job.Kept-24*time.Hour {
		return false, nil
	}
	return m.logs.Log(app.ID, app.Log).Empty(ctx, left)
}

// compareWindows looks whether the window has grown since it was copied: then the
// new schema does not hold all that counts. Where nobody knows any more what was
// copied it may not either.
func (m *Mover) compareWindows(ctx context.Context, app config.App, s *Status) error {
	if s.Move.Phase != config.Verifying && s.Move.Phase != config.CutOver {
		return nil
	}
	copied, err := m.Jobs.Job(ctx, app.ID, s.Move.Backfill)
	switch {
	case errors.Is(err, job.ErrNotFound):
		s.wider = "The backfill ended so long ago that what it copied is not known any more"
	case err != nil:
		return fmt.Errorf("look at the backfill of %s: %w", app.ID, err)
	case copied.RetentionDays > 0 && (app.RetentionDays == 0 || app.RetentionDays > copied.RetentionDays):
		s.wider = "The retention was raised since the backfill"
	}
	return nil
}

// next are the steps that may be taken.
func (s Status) next() []string {
	working := s.Working()
	switch s.Move.Phase {
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
		case s.done() && s.wider == "":
			return []string{"cutover", "verify", "backfill", "rollback"}
		}
		return []string{"backfill", "verify", "rollback"}
	case config.CutOver:
		if s.Settles > 0 || s.wider != "" {
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

// step changes the app's log and move, unless somebody else changed them since
// they were read, and then starts the job of the new phase, if it has one.
func (m *Mover) step(ctx context.Context, was config.App, to func(*config.App)) (Status, error) {
	want := was
	to(&want)
	app, err := m.apps.UpdateLog(ctx, was.ID, func(a *config.App) error {
		if a.Move == want.Move && a.Log.Equal(want.Log) {
			return nil // done before, and the answer was lost
		}
		if a.Move != was.Move || !a.Log.Equal(was.Log) {
			return outOfOrder("Somebody else has changed the app's log meanwhile: look at `affinity schema status`")
		}
		a.Move, a.Log = want.Move, want.Log
		return nil
	})
	if err != nil {
		return Status{}, err
	}
	if err := m.leave(ctx, was, app); err != nil {
		return Status{}, err
	}
	return m.resume(ctx, app)
}

// leave ends the job of the phase that was left, so that what is in work of it
// ends at its next checkpoint.
func (m *Mover) leave(ctx context.Context, was, is config.App) error {
	if was.Move.Job == "" || was.Move.Job == is.Move.Job {
		return nil
	}
	left, err := m.Jobs.Job(ctx, was.ID, was.Move.Job)
	if errors.Is(err, job.ErrNotFound) || err == nil && left.State.Ended() {
		return nil
	}
	if err == nil {
		_, err = m.Supersede(ctx, left, "the move has gone on to its "+string(is.Move.Phase))
	}
	if err != nil {
		return fmt.Errorf("end job %s: %w", was.Move.Job, err)
	}
	return nil
}

// resume makes sure that the job of the app's phase is there and goes on.
func (m *Mover) resume(ctx context.Context, app config.App) (Status, error) {
	if app.Move.Job != "" {
		if _, err := m.Start(ctx, m.job(app, app.Move.Job), 0); err != nil {
			return Status{}, err
		}
	}
	return m.status(ctx, app)
}

// job is the job of the app's phase.
func (m *Mover) job(app config.App, id string) job.Job {
	kind, _, _ := strings.Cut(id, "-")
	j := job.Job{
		App: app.ID, ID: id, Kind: kind, Lanes: lanes, From: string(app.Move.From), To: string(app.Move.To),
		RetentionDays: app.RetentionDays, Rate: app.Move.Rate,
	}
	switch {
	case kind == kindDrop && app.Move.Phase == config.RollingBack:
		j.From, j.To = j.To, j.From // the one that is left goes
	case kind != kindDrop && app.RetentionDays > 0:
		window := affinity.Window{Now: m.Now().UnixMilli(), RetentionDays: app.RetentionDays}
		j.Since = time.UnixMilli(max(window.From(), 0))
	}
	return j
}

// newID makes an id that no other has, and that tells when and what it was.
func (m *Mover) newID(kind string) string {
	return fmt.Sprintf("%s-%s-%s", kind, m.Now().UTC().Format("20060102T150405Z"), strings.ToLower(rand.Text()[:6]))
}

// stamp is the time as the configuration keeps it, so that who has lost an answer
// knows his own work again.
func (m *Mover) stamp() time.Time { return m.Now().UTC().Truncate(time.Microsecond) }
