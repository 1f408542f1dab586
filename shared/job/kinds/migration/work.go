package migration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// work copies, compares or removes the rows of a shard.
type work struct {
	store  *store.Store
	jobs   job.Jobs
	config job.Config
	now    func() time.Time
	// pauses come before each further look at rows that differ.
	pauses []time.Duration
	held   affinity.Hold // of each of the profiles that a verification compares
}

var _ job.Work = (*work)(nil)

// Obsolete ends the job of a phase that the app's migration has left.
func (w *work) Obsolete(j job.Job, app config.App) string {
	if app.Migration.Job == j.ID {
		return ""
	}
	return fmt.Sprintf("the migration is in phase %s, with another job", app.Migration.Phase)
}

// Process works on the rows of a shard.
func (w *work) Process(ctx context.Context, j job.Job, app config.App, s job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	params := job.ParamsOf[Params](j)
	from, err := schema.Parse(string(params.From))
	if err != nil {
		return job.Progress{}, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	here := *w
	here.store = w.store.In(app.Region)
	p := &pass{
		work: &here, job: j, params: params, app: app, log: here.store.Events.Log(app.ID, app.Log), from: from,
		to: from.Other(), rows: store.Range{From: s.Next, To: s.To}, until: until, progress: progress, result: job.Progress{Next: s.Next},
	}
	switch j.Kind {
	case kindBackfill:
		err = p.backfill(ctx)
	case kindVerify:
		err = p.verify(ctx)
	case kindDrop:
		err = p.drop(ctx)
	default:
		err = fmt.Errorf("%w: this version does not know jobs of kind %q", job.ErrFailed, j.Kind)
	}
	return p.result, err
}

// Verify fails a shard in which the schemas differ. A backfill does not fail on
// rows that it cannot copy: it lists them as faults, and the verification finds
// them.
func (w *work) Verify(_ context.Context, j job.Job, _ config.App, s job.Shard, _ time.Time) (job.Verified, error) {
	different := s.Counts[job.CountFaulty]
	if j.Kind != kindVerify || different == 0 {
		return job.Verified{}, nil
	}
	return job.Verified{}, fmt.Errorf("%d rows or profiles are not the same in both schemas, first %s: %w",
		different, strings.Join(s.Faults, "; "), job.ErrFailed)
}

// pass is one call of Process.
type pass struct {
	*work
	job      job.Job
	params   Params
	app      config.App
	log      store.Log
	from, to schema.Name
	rows     store.Range
	until    time.Time
	progress func(job.Progress) error
	result   job.Progress
}

// addFault adds a fault, unless the list has job.MaxFaults.
func addFault(faults []string, format string, args ...any) []string {
	if len(faults) >= job.MaxFaults {
		return faults
	}
	return append(faults, fmt.Sprintf(format, args...))
}

var errTime = errors.New("the time of the task is over")

// reached makes a checkpoint. It returns errTime if the pass must stop there.
func (p *pass) reached(next string, counts job.Counts) error {
	p.result.Next, p.result.Counts = next, counts
	if err := p.progress(p.result); err != nil {
		return err
	}
	if !p.now().Before(p.until) {
		return errTime
	}
	return nil
}

// checkCurrent returns job.ErrEnded if the migration has left the job's phase.
// The process may have been suspended, and readers may now use the rows that it
// is about to change. A pass calls checkCurrent before each write that is wrong
// in other phases.
func (p *pass) checkCurrent(ctx context.Context) error {
	app, err := p.config.App(ctx, p.app.ID)
	if err != nil {
		return fmt.Errorf("read the migration of %s: %w", p.app.ID, err)
	}
	if app.Migration.Job != p.job.ID || app.Log.Generation != p.app.Log.Generation {
		return fmt.Errorf("%s: the migration has reached phase %s: %w", p.job.ID, app.Migration.Phase, job.ErrEnded)
	}
	return nil
}

// ended completes the result of a pass that ended with err, and returns the
// error of Process.
func (p *pass) ended(err error) error {
	if errors.Is(err, errTime) {
		return nil // the next task continues
	}
	p.result.Done = err == nil
	return err
}

// drop removes the rows in a schema that nobody writes any more.
func (p *pass) drop(ctx context.Context) error {
	if p.app.Log.Writes(p.from) {
		return fmt.Errorf("%w: %s is still written", job.ErrFailed, p.from)
	}
	mayContinue := func() error { return p.checkCurrent(ctx) }
	_, err := p.log.Drop(ctx, p.from, p.rows, mayContinue, func(after string, rows int64) error {
		return p.reached(after, job.Count(Counts{Rows: rows, Changed: rows}))
	})
	return p.ended(err)
}
