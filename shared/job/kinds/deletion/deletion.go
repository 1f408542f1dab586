// Package deletion deletes an app: every row of every table whose key begins with
// the app's id and a comma, and every document below the app's. It starts the jobs
// and defines their work. Package config reserves the id, package job runs the
// tasks.
//
// A config.Deletion exists from the moment at which the app ends. Its jobs lie below
// it, because they delete everything below the app:
//
//	deletions/{app}/{collection}/{id}
//
// A job first deletes the rows, in shards by user. Requests and tasks that had begun
// before the app ended may still write then, so a last shard waits until none of
// them runs, deletes what is left, and looks for the id everywhere. A job that finds
// it fails. A job that does not find it ends the deletion, and deletes itself.
//
// The tables are those of terraform/bigtable.json, and the documents those that
// Firestore lists, so the job knows each new one.
package deletion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

// Collection names the collection of the jobs below a deletion.
var Collection = job.NewCollection[Params, Counts]("deletionJobs").OfDeletion()

// Counts counts the work of a job.
type Counts struct {
	Rows int64 // deleted
}

// Late is how long after an app's end a request or a task may still write: as long as
// the longest may run (ten minutes), and five minutes for which a function may know
// the app while Firestore fails.
const Late = 15 * time.Minute

// concurrency is how many shards have tasks at a time.
const concurrency = 3

// Params are the parameters of a deletion. It has none.
type Params struct{}

// LogAttrs returns nothing.
func (Params) LogAttrs() []slog.Attr { return nil }

// Documents are what a database holds below an app's document.
type Documents interface {
	// Forget deletes them. After an error some are left.
	Forget(ctx context.Context, app string) error
	// Holding names some, at most about limit, and the app's own document if it exists.
	Holding(ctx context.Context, app string, limit int) ([]string, error)
}

// Runner starts deletions and runs their tasks. It is safe for concurrent use.
type Runner struct {
	*job.Runner
	store *config.Store
	late  time.Duration
}

// New returns the runner of deletions. It sets the name, the work and the
// configuration of r. Shards wait until late after the end of their app; a function
// that runs in the cloud gives Late.
func New(r job.Runner, apps *config.Store, rows Rows, documents Documents, late time.Duration) *Runner {
	r.Name, r.Config = "deletion", ended{apps}
	r.StaleText = "rows or documents still hold the app's id"
	r.Work = work{Rows: rows, Documents: documents, Config: apps, Jobs: r.Jobs, Late: late, Now: r.Now, Log: r.Log}
	return &Runner{job.New(r), apps, late}
}

// Status is where a deletion is.
type Status struct {
	config.Deletion
	// State is that of the current job: empty until it has started, and after the
	// deletion has ended.
	State job.State
	// Deleted counts the rows that the job has deleted, Shards and Done its shards.
	Deleted      int64
	Shards, Done int
	// WaitsUntil is when the last shard begins, if only that one is left.
	WaitsUntil time.Time
	// Error is why the job has failed.
	Error string
}

// Delete ends an app and starts the job that deletes it. If the app is being
// deleted, it resumes that; a job that has failed is followed by another one. If the
// app is deleted, it does nothing, or deletes again what may have come back, as from
// a backup, if again is true. It returns config.ErrNotFound if there never was such
// an app, or long ago.
func (r *Runner) Delete(ctx context.Context, app string, again bool) (Status, error) {
	d, err := r.store.DeleteApp(ctx, app)
	if err != nil {
		return Status{}, err
	}
	status, err := r.status(ctx, d)
	if err != nil || d.Ended() && !again {
		return status, err
	}
	if d.Ended() || status.State == job.Failed {
		seen := d.Attempt
		d, err = r.store.UpdateDeletion(ctx, app, func(d *config.Deletion) error {
			if d.Attempt == seen { // else another caller came first
				d.Again()
			}
			return nil
		})
		if err != nil {
			return status, err
		}
	}
	return r.start(ctx, d)
}

// start starts the current job of a deletion, or resumes it.
func (r *Runner) start(ctx context.Context, d config.Deletion) (Status, error) {
	j, err := r.Start(ctx, job.Job{App: d.App, ID: jobID(d), Kind: "deletion", Concurrency: concurrency,
		Params: Params{}}, 0)
	if errors.Is(err, config.ErrNotFound) { // the job has ended the deletion in the meantime
		return r.Status(ctx, d.App)
	}
	return r.statusOf(d, j), err
}

// Resume enqueues the tasks that the deletion of an app waits for, in case the queue has
// lost them. It leaves a deletion whose job has failed to the operator. Of an ended one it
// deletes the jobs that a process left which died just then. Without a deletion it does
// nothing.
func (r *Runner) Resume(ctx context.Context, app string) error {
	d, err := r.store.Deletion(ctx, app)
	switch {
	case errors.Is(err, config.ErrNotFound):
		return nil
	case err == nil && d.Ended():
		err = r.Jobs.Forget(ctx, app)
	case err == nil:
		_, err = r.start(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("resume the deletion of app %s: %w", app, err)
	}
	return nil
}

// jobID names the job of a deletion's attempt.
func jobID(d config.Deletion) string {
	return "deletion-" + d.StartedAt.UTC().Format("20060102T150405Z") + "-" + strconv.Itoa(d.Attempt)
}

// Status returns where the deletion of an app is, or config.ErrNotFound.
func (r *Runner) Status(ctx context.Context, app string) (Status, error) {
	d, err := r.store.Deletion(ctx, app)
	if err != nil {
		return Status{}, err
	}
	return r.status(ctx, d)
}

func (r *Runner) status(ctx context.Context, d config.Deletion) (Status, error) {
	if d.Ended() {
		return Status{Deletion: d}, nil
	}
	j, err := r.Find(ctx, d.App, jobID(d))
	if errors.Is(err, job.ErrNotFound) {
		return Status{Deletion: d}, nil
	}
	return r.statusOf(d, j), err
}

func (r *Runner) statusOf(d config.Deletion, j job.Job) Status {
	s := Status{Deletion: d, State: j.State, Deleted: j.Totals.Counts[job.CountRows], Shards: j.Totals.Shards,
		Done: j.Totals.Done, Error: j.Error}
	if j.State == job.Running && s.Done == s.Shards-1 {
		s.WaitsUntil = d.StartedAt.Add(r.late)
	}
	return s
}

// ended is the configuration of the jobs: the apps that are being deleted.
type ended struct{ store *config.Store }

// App returns an app that is being deleted. It changed when it ended, so the job
// waits until every function knows.
func (e ended) App(ctx context.Context, appID string) (config.App, error) {
	d, err := e.store.Deletion(ctx, appID)
	if err == nil && d.Ended() {
		err = fmt.Errorf("the deletion of app %q has ended: %w", appID, config.ErrNotFound)
	}
	return config.App{ID: d.App, ChangedAt: d.StartedAt}, err
}
