package move

import (
	"context"
	"fmt"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/store"
)

// others is the part of a phase that follows the users: the rows of the app that belong to
// no user.
const others = "others"

// listed is how many rows that are left a verification of MoveErasing counts, and unsure how
// many missing rows another one looks at again at a time, at least.
const (
	listed = 10
	unsure = 5000
)

// rowWork is work on rows of an app that moves between two regions; region is the name of
// the one that it leaves. It may be repeated.
type rowWork func(ctx context.Context, from, to *store.Store, region string, r store.AppRows,
	progress func(int, string) error) error

// ScrubSegments and the removal of stale samples only remove. They run when nobody copies any
// more, and a purge works in both regions until then: what it removed from the first while
// a copy was on its way is removed from the other.
func scrubSegments(ctx context.Context, from, to *store.Store, _ string, r store.AppRows,
	progress func(int, string) error) error {
	return to.Rows.ScrubSegments(ctx, from, r, progress)
}

func dropStaleRefused(ctx context.Context, from, to *store.Store, region string, r store.AppRows,
	progress func(int, string) error) error {
	return to.Rows.DropStaleRefused(ctx, from, region, r, progress)
}

// rowStep is work on one table of an app.
type rowStep struct {
	table string
	do    rowWork
}

// What a move does with tables. Clients change the catalog in both regions from MoveUsers on,
// so that it is copied in this phase. Statistics and segments are what jobs have built: jobs
// wait while these are copied. Purges alone change them then, in both regions.
// Processes write the rest in the region that counts until MoveDropping: it is copied before,
// for those who read it, and again when nobody writes it there any more.
//
// Refused events name users, and a purge removes them. In MoveErasing it works in one region
// alone. So their last copy is in MoveDropping, and MoveErasing begins with the removal of
// what a purge removed during that copy.
//
// Of the details of jobs, too, what changes is written in both: the others are copied before
// anybody reads them in the other region.
//
// Tables that are missing here need no copy: users move one by one, dictionaries belong to
// blocks, which do not travel, and rates and recent events are of the last minutes.
var (
	catalogTables = []string{store.TableObjects, store.TableDated}
	builtTables   = []string{store.TableCrowd, store.TableSegments}
	addedTables   = []string{store.TableChanges, store.TableUsage, store.TableRefused, store.TableAuditLog,
		store.TableJobs}
	lateTables = []string{store.TableCrowd, store.TableUsage, store.TableAuditLog}
)

func copyRows(ctx context.Context, from, to *store.Store, region string, r store.AppRows,
	progress func(int, string) error) error {
	return to.Rows.CopyRows(ctx, from, region, r, progress)
}

func dropStale(ctx context.Context, from, to *store.Store, _ string, r store.AppRows,
	progress func(int, string) error) error {
	return to.Rows.DropStaleCopies(ctx, from, r, progress)
}

func deleteRows(ctx context.Context, from, _ *store.Store, _ string, r store.AppRows,
	progress func(int, string) error) error {
	return from.Rows.DeleteRows(ctx, r, progress)
}

func steps(do rowWork, tables []string) []rowStep {
	all := make([]rowStep, len(tables))
	for i, table := range tables {
		all[i] = rowStep{table, do}
	}
	return all
}

// rowSteps returns what a phase does with the rows of an app, in order. On the way back
// the region to which the app returns has them all.
func rowSteps(m config.Move) ([]rowStep, error) {
	var all []rowStep
	switch {
	case m.Phase == config.MoveUsers && !m.Back:
		all = steps(copyRows, catalogTables)
	case m.Phase == config.MoveSwitched && !m.Back:
		all = append(steps(dropStale, catalogTables), steps(copyRows, builtTables)...)
		all = append(append(all, steps(dropStale, builtTables)...), steps(copyRows, addedTables)...)
	case m.Phase == config.MoveDropping && !m.Back:
		all = []rowStep{{store.TableRefused, copyRows}, {store.TableSegments, scrubSegments}}
	case m.Phase == config.MoveErasing:
		names, err := store.TableNames()
		if err != nil {
			return nil, err
		}
		if !m.Back {
			all = append([]rowStep{{store.TableRefused, dropStaleRefused}}, steps(copyRows, lateTables)...)
		}
		all = append(all, steps(deleteRows, names)...)
	}
	return all, nil
}

// Following returns the shard over the rows of the app, behind those over its users.
func (w *work) Following(_ context.Context, _ job.Job, last job.Shard) ([]job.Shard, error) {
	if last.Part == others {
		return nil, nil
	}
	return []job.Shard{{Part: others}}, nil
}

// moveRows takes the steps of the phase for the rows of the app.
func (w *work) moveRows(ctx context.Context, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	all, err := rowSteps(app.Move)
	if err != nil {
		return job.Progress{Next: shard.Next}, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	from, to := w.regions.Rows[app.Move.From], w.regions.Rows[app.Move.To]
	if len(all) > 0 && app.Move.Phase == config.MoveSwitched {
		// The other region must not make another secret.
		if _, err := from.AuditLog.AuditSalt(ctx, app.ID); err != nil {
			return job.Progress{Next: shard.Next}, err
		}
	}
	names := make([]string, len(all))
	for i, step := range all {
		names[i] = step.table
	}
	over := func() bool { return !w.now().Before(until) }
	return job.Tables(shard, names, over, progress, func(i int, after string, done func(int, string) error) error {
		return all[i].do(ctx, from, to, app.Move.From, store.AppRows{App: app.ID, Table: names[i], After: after}, done)
	})
}

// verifyRows counts rows that the phase should have copied or deleted.
func (w *work) verifyRows(ctx context.Context, app config.App, shard job.Shard,
	until time.Time) (v job.Verified, err error) {
	all, err := rowSteps(app.Move)
	if err != nil {
		return v, err
	}
	names := make([]string, len(all))
	for i, step := range all {
		names[i] = step.table
	}
	from, to := w.regions.Rows[app.Move.From], w.regions.Rows[app.Move.To]
	over := func() bool { return !w.now().Before(until) }
	goOn := func(job.Progress) error { return nil }
	p, err := job.Tables(shard, names, over, goOn, func(i int, after string, done func(int, string) error) error {
		rows := store.AppRows{App: app.ID, Table: names[i], After: after}
		switch {
		case app.Move.Phase == config.MoveErasing:
			keys, err := from.Rows.FindRows(ctx, rows, listed)
			v.Stale += int64(len(keys))
			return err
		case app.Move.Phase == config.MoveUsers, rows.Table == store.TableCrowd, rows.Table == store.TableSegments:
			return missing(ctx, from, to, rows, over, func(n int, last string) error {
				v.Stale += int64(n)
				return done(n, last)
			})
		}
		return nil
	})
	if !p.Done {
		v.Next = p.Next
	}
	return v, err
}

// missing counts the rows of a table that the region to lacks. Clients write a row there a
// moment after they have written it in the other region, so that only a row counts that is
// missing at two looks. It calls done with the rows up to a key once it has looked twice,
// and returns the error that done returns.
func missing(ctx context.Context, from, to *store.Store, rows store.AppRows, over func() bool,
	done func(rows int, last string) error) error {
	var keys []string // missing at the first look
	for {
		some, last, err := to.Rows.MissingRows(ctx, from, rows)
		if err != nil || last == "" && len(keys) == 0 {
			return err
		}
		keys = append(keys, some...)
		if last != "" {
			if rows.After = last; len(keys) < unsure && !over() {
				continue
			}
		}
		n := 0
		if len(keys) > 0 {
			if err := gax.Sleep(ctx, lookAgain); err != nil {
				return err
			}
			if n, err = to.Rows.StillMissing(ctx, from, rows.App, rows.Table, keys); err != nil {
				return err
			}
		}
		if err := done(n, rows.After); err != nil {
			return err
		}
		keys = nil
	}
}
