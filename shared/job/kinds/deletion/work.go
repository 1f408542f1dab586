package deletion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/store"
)

// Rows are the rows of apps in all tables.
type Rows interface {
	DeleteRows(ctx context.Context, r store.AppRows, progress func(rows int, last string) error) error
	FindRows(ctx context.Context, r store.AppRows, limit int) ([]string, error)
}

var _ Rows = store.Rows{}

// work deletes what belongs to an app. It deletes rows by plain mutations: these need
// no permission beyond that of writing rows, which the worker has, go at the low priority
// of its app profile beside the other apps' requests, and show how far they are. To
// drop a range of rows is one call of Bigtable's administration, but it holds up
// other changes of a table, and on several clusters it may take hours without a sign.
type work struct {
	job.Plain
	Rows      Rows
	Documents Documents
	Config    *config.Store
	Jobs      job.Jobs
	Late      time.Duration
	Now       func() time.Time
	Log       *slog.Logger
}

var (
	_ job.Continued = work{}
	_ job.Closing   = work{}
)

// all is the part of a job that follows the users: all rows and documents.
const all = "all"

// listed is how many rows and documents of a kind Verify counts.
const listed = 10

// Process deletes the rows of a range of users in all tables; the last shard deletes
// documents first, and then the rows of all users. Its places are those of
// job.Tables. A task that takes over from one that died finds only what is left.
func (w work) Process(ctx context.Context, j job.Job, _ config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	p := job.Progress{Next: shard.Next}
	rows := store.AppRows{App: j.App, From: shard.From, To: shard.To}
	if shard.Part == all && shard.Next == "" {
		within, cancel := context.WithTimeout(ctx, max(time.Second, until.Sub(w.Now())))
		defer cancel()
		err := w.Documents.Forget(within, j.App)
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			return p, nil // the next task goes on
		}
		if err != nil {
			return p, err
		}
	}
	names, err := store.TableNames()
	if err != nil {
		return p, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	over := func() bool { return !w.Now().Before(until) }
	return job.Tables(shard, names, over, progress, func(i int, after string, done func(int, string) error) error {
		rows.Table, rows.After, rows.Except = names[i], after, spared(names[i])
		return w.Rows.DeleteRows(ctx, rows, done)
	})
}

// spared returns the prefix of the rows of a table that a job leaves: the details of the jobs
// of the deletion. Close deletes them with the documents of these jobs.
func spared(table string) string {
	if table == store.TableJobs {
		return Collection.Name + ","
	}
	return ""
}

// Following returns the last shard after those over the users.
func (w work) Following(ctx context.Context, j job.Job, last job.Shard) ([]job.Shard, error) {
	if last.Part == all {
		return nil, nil
	}
	d, err := w.Config.Deletion(ctx, j.App)
	if err != nil {
		return nil, err
	}
	return []job.Shard{{Part: all, NotBefore: d.StartedAt.Add(w.Late)}}, nil
}

// Verify counts, in the last shard, rows and documents that hold the app's id, some of
// each kind.
func (w work) Verify(ctx context.Context, j job.Job, _ config.App, shard job.Shard, _ time.Time) (job.Verified, error) {
	if shard.Part != all {
		return job.Verified{}, nil
	}
	left, err := Left(ctx, w.Rows, w.Documents, j.App)
	for where, n := range left {
		w.Log.LogAttrs(ctx, slog.LevelError, "a deleted app's id is still stored", slog.String("app", j.App),
			slog.String("where", where), slog.Int("atLeast", n))
	}
	return job.Verified{Stale: int64(len(left))}, err
}

// Left counts what holds an app's id, some of each kind, by the name of its table or
// by "documents".
func Left(ctx context.Context, rows Rows, documents Documents, app string) (map[string]int, error) {
	left := map[string]int{}
	names, err := documents.Holding(ctx, app, listed)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		left["documents"] = len(names)
	}
	tables, err := store.TableNames()
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		keys, err := rows.FindRows(ctx, store.AppRows{App: app, Table: table, Except: spared(table)}, listed)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			left[table] = len(keys)
		}
	}
	return left, nil
}

// Close ends the deletion and deletes the jobs, once a job is done. Those of a failed
// one stay for the operator.
func (w work) Close(ctx context.Context, j job.Job) error {
	if j.State != job.Done {
		return nil
	}
	other := errors.New("another job has come after this one")
	_, err := w.Config.UpdateDeletion(ctx, j.App, func(d *config.Deletion) error {
		if jobID(*d) != j.ID {
			return other
		}
		if !d.Ended() {
			d.End(time.Now(), j.Totals.Counts[job.CountRows])
		}
		return nil
	})
	if errors.Is(err, other) || errors.Is(err, config.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.Jobs.Forget(ctx, j.App)
}
