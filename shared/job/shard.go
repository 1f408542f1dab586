package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/config"
)

// maxPasses bounds how often a shard is gone through again for what is stale after
// the first pass. That is rare: processes that have an old configuration in spite
// of the wait before planning.
const maxPasses = 3

// Shard carries out a shard task that has failed so many times. An error means
// that the task must come again.
func (r *Runner) Shard(ctx context.Context, t ShardTask, retries int) (Outcome, error) {
	return r.shard(ctx, t, retries, r.Now().Add(r.Budget))
}

func (r *Runner) shard(ctx context.Context, t ShardTask, retries int, until time.Time) (Outcome, error) {
	job, app, dropped, err := r.admit(ctx, t.App, t.Job)
	if err != nil || dropped.Dropped != "" {
		return dropped, err
	}
	shard, err := r.Jobs.Shard(ctx, t.App, t.Job, t.Shard)
	switch {
	case errors.Is(err, ErrNotFound):
		return r.drop(ctx, t.App, t.Job, "shard %d is unknown", t.Shard), nil
	case err != nil:
		return Outcome{}, fmt.Errorf("read the shard of a task: %w", err)
	case shard.From != t.From || shard.To != t.To:
		return r.drop(ctx, t.App, t.Job, "the range is not that of shard %d", t.Shard), nil
	case shard.State != ShardOpen:
		// Who ended it may have gone before he saw that it was the last.
		return r.drop(ctx, t.App, t.Job, "shard %d is %s", t.Shard, shard.State), r.finish(ctx, t.App, t.Job)
	case t.Step == shard.Step-1:
		// Who went on may have gone before he ordered the task that does.
		return r.drop(ctx, t.App, t.Job, "step %d of shard %d is over", t.Step, t.Shard), r.enqueueShard(ctx, job, shard)
	case t.Step != shard.Step:
		return r.drop(ctx, t.App, t.Job, "step %d of shard %d is not %d, which is in force", t.Step, t.Shard, shard.Step), nil
	}
	w := &worker{Runner: r, job: job, app: app, shard: shard, until: until}
	o, err := w.attempt(ctx, retries)
	switch {
	case errors.Is(err, errOvertaken), errors.Is(err, ErrEnded):
		return r.shard(ctx, t, retries, until) // things have changed, and it is told above what is left to do
	case err == nil || retries+1 < r.Attempts && !errors.Is(err, ErrFailed):
		return o, err
	}
	return w.fail(ctx, err)
}

// worker is one attempt at a task of a shard.
type worker struct {
	*Runner
	job   Job
	app   config.App
	shard Shard // as it was written last
	until time.Time
}

// errLost is why a shard failed whose tasks ended their processes.
var errLost = errors.New("the task ended without an answer, time and again")

// attempt works on the shard, unless attempts beyond the last have ended without
// telling why: then whatever it is must not go on for ever.
func (w *worker) attempt(ctx context.Context, retries int) (Outcome, error) {
	if retries >= w.Attempts {
		if w.shard.LastTry {
			return w.fail(ctx, fmt.Errorf("%s shard %d of %s: %w", w.Name, w.shard.N, w.job.ID, errLost))
		}
		if err := w.write(ctx, func(s *Shard) { s.LastTry = true }); err != nil {
			return Outcome{}, err
		}
	}
	return w.work(ctx)
}

// work goes through the range and verifies it, until it is done or the time is
// over.
func (w *worker) work(ctx context.Context) (Outcome, error) {
	for {
		if !w.shard.Swept {
			if err := w.sweep(ctx); err != nil {
				return Outcome{}, err
			}
		}
		if w.shard.Swept {
			if err := w.verify(ctx); err != nil {
				return Outcome{}, err
			}
		}
		if w.shard.State != ShardOpen {
			return Outcome{Next: "the shard is " + string(w.shard.State)}, w.finish(ctx, w.job.App, w.job.ID)
		}
		if !w.Now().Before(w.until) {
			return w.later(ctx)
		}
	}
}

// sweep does what the pass has not come to. It returns without an error when it is
// through and when the time is over.
func (w *worker) sweep(ctx context.Context) error {
	base, last := w.shard, w.Clock()
	var latest Progress
	p, err := w.Work.Sweep(ctx, w.job, w.app, base, w.until, func(p Progress) error {
		latest = p
		if p.Done || w.Clock().Sub(last) < w.Every {
			return nil // what is left of it is written in the end
		}
		last = w.Clock()
		if err := w.checkpoint(ctx, base, p); err != nil {
			return err
		}
		return w.stillWanted(ctx, w.job)
	})
	if err == nil {
		return w.checkpoint(ctx, base, p)
	}
	err = fmt.Errorf("%s shard %d of %s: %w", w.Name, w.shard.N, w.job.ID, err)
	if errors.Is(err, ErrFailed) && latest.Next != "" {
		// Nobody comes again who could count it.
		return errors.Join(w.checkpoint(ctx, base, latest), err)
	}
	return err
}

// checkpoint writes how far a pass has come that began at base.
func (w *worker) checkpoint(ctx context.Context, base Shard, p Progress) error {
	if !p.Done && p.Next == w.shard.Next {
		return nil
	}
	return w.write(ctx, func(s *Shard) {
		s.Next, s.Swept = p.Next, p.Done
		if s.Pass > 0 {
			return // who is gone through again counts once
		}
		s.Visited, s.Users, s.Events = base.Visited+p.Visited, base.Users+p.Users, base.Events+p.Events
		s.Changed, s.Left = base.Changed+p.Changed, base.Left+p.Left
		s.Faulty, s.Faults = base.Faulty+p.Faulty, moreFaults(base.Faults, p.Faults)
	})
}

// moreFaults are the first of two lists together, each of them as a store takes it.
// What others hold of the lists stays as it is.
func moreFaults(were, more []string) []string {
	more = more[:min(len(more), MaxFaults-min(len(were), MaxFaults))]
	all := slices.Clone(were)
	for _, fault := range more {
		all = append(all, shortened(fault))
	}
	return all
}

// stillWanted returns ErrEnded once the job has ended.
func (r *Runner) stillWanted(ctx context.Context, job Job) error {
	job, err := r.Jobs.Job(ctx, job.App, job.ID)
	if err == nil && job.State.Ended() {
		err = fmt.Errorf("%s %s is %s: %w", r.Name, job.ID, job.State, ErrEnded)
	}
	return err
}

// verify looks whether all of the range is as it should be: then the shard is
// done; otherwise it is gone through again. Where that does not help something
// goes on undoing it, such as a process with an old configuration, and the shard
// fails: done is said of what was verified only.
func (w *worker) verify(ctx context.Context) error {
	stale, err := w.Work.Verify(ctx, w.job, w.app, w.shard)
	if err != nil {
		return fmt.Errorf("verify shard %d of %s: %w", w.shard.N, w.job.ID, err)
	}
	if stale > 0 {
		w.Log.LogAttrs(ctx, slog.LevelWarn, w.Stale+" after a "+w.Name, slog.String("app", w.job.App),
			slog.String(w.Name, w.job.ID), slog.Int("shard", w.shard.N), slog.Int("pass", w.shard.Pass), slog.Int64("stale", stale))
	}
	return w.write(ctx, func(s *Shard) {
		s.Stale = stale
		switch {
		case stale == 0:
			s.State = ShardDone
		case s.Pass == maxPasses:
			s.State, s.Error = ShardFailed, fmt.Sprintf("%d %s after %d passes more", stale, w.Stale, maxPasses)
		default:
			s.Pass, s.Next, s.Swept = s.Pass+1, s.From, false
		}
	})
}

// later has another task go on with the shard. A crash between its two steps is
// mended by the task that comes again.
func (w *worker) later(ctx context.Context) (Outcome, error) {
	err := w.write(ctx, func(s *Shard) { s.Step, s.LastTry = s.Step+1, false })
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Next: fmt.Sprintf("step %d", w.shard.Step)}, w.enqueueShard(ctx, w.job, w.shard)
}

// fail ends the shard with an error.
func (w *worker) fail(ctx context.Context, cause error) (Outcome, error) {
	w.Log.LogAttrs(ctx, slog.LevelError, w.Name+" of a shard failed", slog.String("app", w.job.App),
		slog.String(w.Name, w.job.ID), slog.Int("shard", w.shard.N), slog.Any("error", cause))
	err := w.write(ctx, func(s *Shard) { s.State, s.Error = ShardFailed, errorText(cause) })
	if err != nil && !errors.Is(err, ErrEnded) {
		return Outcome{}, errors.Join(cause, err)
	}
	return Outcome{Next: "the shard has failed"}, w.finish(ctx, w.job.App, w.job.ID)
}

// write changes the shard, unless another delivery of the task has changed it
// since it was written last.
func (w *worker) write(ctx context.Context, change func(*Shard)) error {
	shard, err := w.Jobs.UpdateShard(ctx, w.job.App, w.job.ID, w.shard.N, func(s *Shard) error {
		if s.Step != w.shard.Step || s.Pass != w.shard.Pass || s.Swept != w.shard.Swept || s.Next != w.shard.Next {
			return errOvertaken
		}
		if change(s); s.State != ShardOpen {
			s.ExpiresAt = w.expiry()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write shard %d of %s: %w", w.shard.N, w.job.ID, err)
	}
	w.shard = shard
	return nil
}
