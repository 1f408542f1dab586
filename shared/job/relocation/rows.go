package relocation

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/store"
)

// The last shard of a phase is over the rows of the app that belong to no user. No user
// token contains a tilde.
const (
	lastFrom = "~"
	lastTo   = "~~"
)

// listed is how many rows that are wrong a verification counts.
const listed = 10

// rowStep is work on one table of an app. Each may be repeated.
type rowStep struct {
	table string
	do    func(ctx context.Context, from, to *store.Store, region string, r store.AppRows, progress func(int, string) error) error
}

// What a move does with tables. Clients change the catalog in both regions from MoveUsers on,
// so that it is copied in this phase. Jobs alone write statistics and segments, and they wait.
// Processes write the rest in the region that counts until MoveDropping: it is copied before,
// for those who read it, and again when nobody writes it there any more.
//
// Of the details of jobs, too, what changes is written in both: the others are copied before
// anybody reads them in the other region.
//
// Tables that are missing here need no copy: users move one by one, dictionaries belong to
// blocks, which do not travel, and rates are of the last minutes.
var (
	catalogTables = []string{store.TableObjects, store.TableDated}
	builtTables   = []string{store.TableCrowd, store.TableSegments}
	addedTables   = []string{store.TableChanges, store.TableUsage, store.TableRefused, store.TableAuditLog, store.TableJobs}
	lateTables    = []string{store.TableCrowd, store.TableUsage, store.TableRefused, store.TableAuditLog}
)

func copyRows(ctx context.Context, from, to *store.Store, region string, r store.AppRows, progress func(int, string) error) error {
	return to.CopyRows(ctx, from, region, r, progress)
}

func dropStale(ctx context.Context, from, to *store.Store, _ string, r store.AppRows, progress func(int, string) error) error {
	return to.DropStaleCopies(ctx, from, r, progress)
}

func deleteRows(ctx context.Context, from, _ *store.Store, _ string, r store.AppRows, progress func(int, string) error) error {
	return from.DeleteRows(ctx, r, progress)
}

func steps(do func(context.Context, *store.Store, *store.Store, string, store.AppRows, func(int, string) error) error, tables []string) []rowStep {
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
	case m.Phase == config.MoveErasing:
		names, err := tables()
		if err != nil {
			return nil, err
		}
		if !m.Back {
			all = steps(copyRows, lateTables)
		}
		all = append(all, steps(deleteRows, names)...)
	}
	return all, nil
}

// tables returns the names of all tables.
func tables() ([]string, error) {
	all, err := store.Tables()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	return names, nil
}

// Following returns the shard over the rows of the app, behind those over its users.
func (w *work) Following(_ context.Context, _ job.Job, last job.Shard) ([]job.Shard, error) {
	if last.From == lastFrom {
		return nil, nil
	}
	return []job.Shard{{From: lastFrom, To: lastTo}}, nil
}

// moveRows takes the steps of the phase for the rows of the app. Its places are the number
// of a step and the key behind which it goes on.
func (w *work) moveRows(ctx context.Context, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	p := job.Progress{Next: shard.Next}
	all, err := rowSteps(app.Move)
	if err != nil {
		return p, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	from, to := w.regions.Rows[app.Move.From], w.regions.Rows[app.Move.To]
	if len(all) > 0 && app.Move.Phase == config.MoveSwitched {
		// The other region must not make another secret.
		if _, err := from.AuditSalt(ctx, app.ID); err != nil {
			return p, err
		}
	}
	first, after := rowPlace(shard)
	for i := first; i < len(all); i++ {
		rows := store.AppRows{App: app.ID, Table: all[i].table, After: after}
		after = ""
		err := all[i].do(ctx, from, to, app.Move.From, rows, func(n int, last string) error {
			p.Next, p.Changed = fmt.Sprintf("~%02d,%s", i, url.QueryEscape(last)), p.Changed+int64(n)
			if err := progress(p); err != nil {
				return err
			}
			if !w.now().Before(until) {
				return errGroup
			}
			return nil
		})
		if errors.Is(err, errGroup) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
	}
	p.Done = true
	return p, nil
}

// rowPlace returns the step with which a shard goes on, and the key behind which it does:
// zero at the beginning of a pass.
func rowPlace(s job.Shard) (step int, after string) {
	number, key, ok := strings.Cut(strings.TrimPrefix(s.Next, "~"), ",")
	if s.Next == s.From || !ok {
		return 0, ""
	}
	step, err := strconv.Atoi(number)
	if err == nil {
		after, err = url.QueryUnescape(key)
	}
	if err != nil {
		return 0, ""
	}
	return step, after
}

// verifyRows counts rows that the phase should have copied or deleted.
func (w *work) verifyRows(ctx context.Context, app config.App) (int64, error) {
	all, err := rowSteps(app.Move)
	if err != nil {
		return 0, err
	}
	from, to, left := w.regions.Rows[app.Move.From], w.regions.Rows[app.Move.To], 0
	for _, step := range all {
		n, rows := 0, store.AppRows{App: app.ID, Table: step.table}
		switch {
		case app.Move.Phase == config.MoveErasing:
			var keys []string
			keys, err = from.FindRows(ctx, rows, listed)
			n = len(keys)
		case app.Move.Phase == config.MoveUsers, step.table == store.TableCrowd, step.table == store.TableSegments:
			n, err = to.MissingRows(ctx, from, rows, listed)
		}
		if err != nil {
			return 0, err
		}
		left += n
	}
	return int64(left), nil
}
