package recompute

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/profile"
)

// maxPasses bounds how often users who are stale after the first pass are gone
// through again. They are rare: processes that have an old configuration in spite
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
	case err == nil || retries+1 < r.Attempts:
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
			return w.fail(ctx, fmt.Errorf("recompute shard %d of %s: %w", w.shard.N, w.job.ID, errLost))
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

// sweep computes the users that the pass has not come to. It returns without an
// error when it is through and when the time is over.
func (w *worker) sweep(ctx context.Context) error {
	base, last := w.shard, w.clock()
	part := profile.Part{From: base.Next, To: base.To}
	o := profile.RecomputeOptions{
		OnlyStale: w.job.OnlyStale || base.Pass > 0, Maintain: w.job.Maintain && base.Pass == 0, Until: w.until,
	}
	p, err := w.Engine.Recompute(ctx, w.app, part, o, func(p profile.Progress) error {
		if p.Done || w.clock().Sub(last) < w.every {
			return nil // what is left of it is written in the end
		}
		last = w.clock()
		if err := w.checkpoint(ctx, base, p); err != nil {
			return err
		}
		return w.stillWanted(ctx, w.job)
	})
	if err != nil {
		return fmt.Errorf("recompute shard %d of %s: %w", w.shard.N, w.job.ID, err)
	}
	return w.checkpoint(ctx, base, p)
}

// checkpoint writes how far a pass has come that began at base.
func (w *worker) checkpoint(ctx context.Context, base Shard, p profile.Progress) error {
	if !p.Done && p.Next == w.shard.Next {
		return nil
	}
	return w.write(ctx, func(s *Shard) {
		s.Next, s.Swept = p.Next, p.Done
		if s.Pass == 0 { // who is gone through again counts once
			s.Visited, s.Users, s.Events = base.Visited+p.Users, base.Users+p.Known, base.Events+p.Events
		}
	})
}

// stillWanted returns ErrEnded once the job has ended.
func (r *Runner) stillWanted(ctx context.Context, job Job) error {
	job, err := r.Jobs.Job(ctx, job.App, job.ID)
	if err == nil && job.State.Ended() {
		err = fmt.Errorf("recompute %s is %s: %w", job.ID, job.State, ErrEnded)
	}
	return err
}

// verify looks whether all users of the range carry the version: then the shard
// is done; otherwise those who do not are gone through again. Where that does not
// help something writes profiles of an old configuration, and the shard fails:
// done is said of what was verified only.
func (w *worker) verify(ctx context.Context) error {
	stale, err := w.Engine.Verify(ctx, w.app, profile.Part{From: w.shard.From, To: w.shard.To})
	if err != nil {
		return fmt.Errorf("verify shard %d of %s: %w", w.shard.N, w.job.ID, err)
	}
	if stale > 0 {
		w.Log.LogAttrs(ctx, slog.LevelWarn, "users carry another strategy version or retention after a recompute", slog.String("app", w.job.App),
			slog.String("recompute", w.job.ID), slog.Int("shard", w.shard.N), slog.Int("pass", w.shard.Pass), slog.Int64("users", stale))
	}
	return w.write(ctx, func(s *Shard) {
		s.Stale = stale
		switch {
		case stale == 0:
			s.State = ShardDone
		case s.Pass == maxPasses:
			s.State, s.Error = ShardFailed, fmt.Sprintf("%d users still carry another strategy version or retention after %d passes more", stale, maxPasses)
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
	w.Log.LogAttrs(ctx, slog.LevelError, "recompute of a shard failed", slog.String("app", w.job.App),
		slog.String("recompute", w.job.ID), slog.Int("shard", w.shard.N), slog.Any("error", cause))
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
		change(s)
		return nil
	})
	if err != nil {
		return fmt.Errorf("write shard %d of %s: %w", w.shard.N, w.job.ID, err)
	}
	w.shard = shard
	return nil
}
