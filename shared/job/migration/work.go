package migration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// work is what the jobs of moves do to the rows of a shard.
type work struct {
	store *store.Store
	jobs  job.Jobs
	apps  job.Apps
	now   func() time.Time
	// pauses come before each further look at rows that differ.
	pauses []time.Duration
}

var _ job.Work = (*work)(nil)

// Obsolete ends jobs that the app's move has nothing to do with any more.
func (w *work) Obsolete(j job.Job, app config.App) string {
	if app.Move.Job == j.ID {
		return ""
	}
	return fmt.Sprintf("the move of the log is at its %s, with another job", app.Move.Phase)
}

// Sweep goes through the rows of a shard.
func (w *work) Sweep(ctx context.Context, j job.Job, app config.App, s job.Shard, until time.Time, progress func(job.Progress) error) (job.Progress, error) {
	from, err := schema.Parse(j.From)
	if err != nil {
		return job.Progress{}, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	sw := &sweep{
		work: w, job: j, app: app, log: w.store.Log(app.ID, app.Log), from: from, to: from.Other(), since: j.SinceMillis(),
		part: store.Range{From: s.Next, To: s.To}, until: until, progress: progress, result: job.Progress{Next: s.Next},
	}
	switch j.Kind {
	case kindBackfill:
		err = sw.backfill(ctx)
	case kindVerify:
		err = sw.verify(ctx)
	case kindDrop:
		err = sw.drop(ctx)
	default:
		err = fmt.Errorf("%w: a job of kind %q is unknown to this version", job.ErrFailed, j.Kind)
	}
	return sw.result, err
}

// Verify fails a shard whose logs differ. That something could not be copied does
// not fail a backfill: it is told, and no verification passes.
func (w *work) Verify(_ context.Context, j job.Job, _ config.App, s job.Shard) (int64, error) {
	if j.Kind != kindVerify || s.Faulty == 0 {
		return 0, nil
	}
	return 0, fmt.Errorf("%d rows or profiles are not the same in both schemas, first %s: %w", s.Faulty, strings.Join(s.Faults, "; "), job.ErrFailed)
}

// sweep is one way through a shard, or through what is left of it.
type sweep struct {
	*work
	job      job.Job
	app      config.App
	log      store.Log
	from, to schema.Name
	since    int64
	part     store.Range
	until    time.Time
	progress func(job.Progress) error
	result   job.Progress
}

// fault counts a row that cannot be moved, or is not the same in both schemas.
func (s *sweep) fault(p *job.Progress, format string, args ...any) {
	p.Faulty++
	if len(p.Faults) < job.MaxFaults {
		p.Faults = append(p.Faults, fmt.Sprintf(format, args...))
	}
}

// errTime: the time of the task is over.
var errTime = errors.New("the time of the task is over")

// reached tells how far the sweep is, and whether it may go on: errTime if not.
func (s *sweep) reached(next string) error {
	s.result.Next = next
	if err := s.progress(s.result); err != nil {
		return err
	}
	if !s.now().Before(s.until) {
		return errTime
	}
	return nil
}

// fence ends a sweep whose move has gone on without it: after a long sleep what it
// is about to change may be what is read. It is asked before each request that is
// not right at all times.
func (s *sweep) fence(ctx context.Context) error {
	app, err := s.apps.App(ctx, s.app.ID)
	if err != nil {
		return fmt.Errorf("look at the move of %s: %w", s.app.ID, err)
	}
	if app.Move.Job != s.job.ID || app.Log.Generation != s.app.Log.Generation {
		return fmt.Errorf("%s: the move has gone on to its %s: %w", s.job.ID, app.Move.Phase, job.ErrEnded)
	}
	return nil
}

// ended is what has become of a sweep that came to its end with err.
func (s *sweep) ended(err error) error {
	if errors.Is(err, errTime) {
		return nil // the next task goes on
	}
	s.result.Done = err == nil
	return err
}

// drop removes the rows of the schema that is left.
func (s *sweep) drop(ctx context.Context) error {
	if s.app.Log.Writes(s.from) {
		return fmt.Errorf("%w: %s is written", job.ErrFailed, s.from)
	}
	may := func() error { return s.fence(ctx) }
	_, err := s.log.Drop(ctx, s.from, s.part, may, func(after string, rows int64) error {
		s.result.Events, s.result.Changed = rows, rows
		return s.reached(after)
	})
	return s.ended(err)
}
