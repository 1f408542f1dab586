package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

// maxPasses bounds the passes over a shard after the first one. They are rare:
// a shard needs one if a process with an old configuration undid some of the
// work, in spite of the wait before the planning.
const maxPasses = 3

// Shard runs a shard task that has failed retries times before. After an error
// the queue must retry the task.
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
		return Outcome{Next: "the job has failed"}, r.endLost(ctx, job, fmt.Errorf("read the shard of a task: %w", err))
	case shard.Part != t.Part || shard.From != t.From || shard.To != t.To:
		return r.drop(ctx, t.App, t.Job, "the range is not that of shard %d", t.Shard), nil
	case shard.State != ShardOpen:
		// The task that ended the shard may have died before it called finish.
		return r.drop(ctx, t.App, t.Job, "shard %d is %s", t.Shard, shard.State), r.finish(ctx, t.App, t.Job)
	case t.Step == shard.Step-1:
		// The task of that step may have died before it enqueued the next one.
		return r.drop(ctx, t.App, t.Job, "step %d of shard %d is over", t.Step, t.Shard), r.enqueueShard(ctx, job, shard)
	case t.Step != shard.Step:
		return r.drop(ctx, t.App, t.Job, "step %d of shard %d is not %d, the current one", t.Step, t.Shard, shard.Step), nil
	}
	if shard.Region != "" {
		app = app.In(shard.Region)
	}
	w := &worker{Runner: r, job: job, app: app, shard: shard, until: until}
	work := w.attempt
	if r.waits(app) {
		work = w.pause
	}
	o, err := work(ctx, retries)
	switch {
	case errors.Is(err, errOvertaken), errors.Is(err, ErrEnded):
		return r.shard(ctx, t, retries, until) // the shard has changed: decide again what to do
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
	shard Shard // as this attempt last read or wrote it
	until time.Time
}

// errLost is the error of a shard whose task crashed its process at every
// attempt.
var errLost = errors.New("the task ended without an answer at every attempt")

// movingPause is how long a task waits before it looks again whether its app has arrived.
const movingPause = time.Minute

// waits reports whether a job waits because its app moves to another region. A task that
// has begun before the move ends before anybody moves: a move waits for it.
func (r *Runner) waits(app config.App) bool { return app.Moving() && !r.DuringMoves }

// pause ends the current step, and enqueues the task of the next one for later.
func (w *worker) pause(ctx context.Context, _ int) (Outcome, error) {
	o, err := w.nextStep(ctx, movingPause)
	if err == nil {
		o.Next += ", once the app has arrived in its new region"
	}
	return o, err
}

// attempt works on the shard. A shard that is still open after all attempts has
// crashed their processes, because none of them stored an error. attempt allows
// one more try and then fails the shard, so that the queue does not retry it
// forever.
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

// work processes the range and verifies it, until the shard has ended or the
// time is over.
func (w *worker) work(ctx context.Context) (Outcome, error) {
	for {
		if !w.shard.Processed {
			if err := w.process(ctx); err != nil {
				return Outcome{}, err
			}
		}
		var pause time.Duration
		if w.shard.Processed {
			var err error
			if pause, err = w.verify(ctx); err != nil {
				return Outcome{}, err
			}
		}
		if w.shard.State != ShardOpen {
			return Outcome{Next: "the shard is " + string(w.shard.State)}, w.finish(ctx, w.job.App, w.job.ID)
		}
		if pause > 0 || !w.Now().Before(w.until) {
			return w.nextStep(ctx, pause)
		}
	}
}

// process continues the pass from its last checkpoint. It returns without an
// error when the pass or the time is over.
func (w *worker) process(ctx context.Context) error {
	base, last := w.shard, w.Clock()
	var latest Progress
	p, err := w.Work.Process(ctx, w.job, w.app, base, w.until, func(p Progress) error {
		latest = p
		if p.Done || w.Clock().Sub(last) < w.CheckpointEvery {
			return nil // process itself stores the last progress
		}
		last = w.Clock()
		if err := w.checkpoint(ctx, base, p); err != nil {
			return err
		}
		return w.checkUnfinished(ctx, w.job)
	})
	if err == nil {
		return w.checkpoint(ctx, base, p)
	}
	err = fmt.Errorf("%s shard %d of %s: %w", w.Name, w.shard.N, w.job.ID, err)
	if errors.Is(err, ErrFailed) && latest.Next != "" {
		// The shard fails without another attempt: store the counts of this
		// one.
		return errors.Join(w.checkpoint(ctx, base, latest), err)
	}
	return err
}

// checkpoint stores how far the pass has come. base is the shard at the start
// of this call of Process.
func (w *worker) checkpoint(ctx context.Context, base Shard, p Progress) error {
	if !p.Done && p.Next == w.shard.Next && len(p.Counts) == 0 {
		return nil
	}
	return w.write(ctx, func(s *Shard) {
		s.Next, s.Processed = p.Next, p.Done
		if p.Done {
			s.Next, s.Stale, s.Result = s.From, 0, p.Result
		}
		if s.Pass > 0 {
			return // the first pass has counted every user
		}
		s.Counts, s.Faults = base.Counts.Plus(p.Counts), joinFaults(base.Faults, p.Faults)
	})
}

// joinFaults appends found faults to a copy of the listed ones, up to
// MaxFaults. It truncates each to the length that a store takes.
func joinFaults(listed, found []string) []string {
	found = found[:min(len(found), MaxFaults-min(len(listed), MaxFaults))]
	all := slices.Clone(listed)
	for _, fault := range found {
		all = append(all, truncate(fault))
	}
	return all
}

// checkUnfinished returns ErrEnded once the job has ended.
func (r *Runner) checkUnfinished(ctx context.Context, job Job) error {
	job, err := r.Jobs.Job(ctx, job.App, job.ID)
	if err == nil && job.State.Ended() {
		err = fmt.Errorf("%s %s is %s: %w", r.Name, job.ID, job.State, ErrEnded)
	}
	return err
}

// verify continues the verification of the range, and returns how long it must
// pause. If nothing is stale at the end, the shard is done; otherwise another
// pass begins. If the range is still stale after maxPasses more passes, something
// keeps undoing the work, such as a process with an old configuration, and the
// shard fails. Only a verified shard is done.
func (w *worker) verify(ctx context.Context) (time.Duration, error) {
	found, err := w.Work.Verify(ctx, w.job, w.app, w.shard, w.until)
	if err != nil {
		return 0, fmt.Errorf("verify shard %d of %s: %w", w.shard.N, w.job.ID, err)
	}
	stale := w.shard.Stale + found.Stale
	if found.Next != "" {
		return found.Pause, w.write(ctx, func(s *Shard) { s.Next, s.Stale = found.Next, stale })
	}
	if stale > 0 {
		w.Log.LogAttrs(ctx, slog.LevelWarn, w.StaleText+" after a "+w.Name, slog.String("app", w.job.App),
			slog.String(w.Name, w.job.ID), slog.Int("shard", w.shard.N), slog.Int("pass", w.shard.Pass),
			slog.Int64("stale", stale))
	}
	return 0, w.write(ctx, func(s *Shard) {
		s.Stale = stale
		switch {
		case stale == 0:
			s.State = ShardDone
		case s.Pass == maxPasses:
			s.State, s.Error = ShardFailed, fmt.Sprintf("%d %s after %d more passes", stale, w.StaleText, maxPasses)
		default:
			s.Pass, s.Next, s.Processed = s.Pass+1, s.From, false
		}
	})
}

// nextStep ends the current step and enqueues the task of the next one, for after a
// pause. If the process dies between the two writes, the retried task repeats the
// second.
func (w *worker) nextStep(ctx context.Context, pause time.Duration) (Outcome, error) {
	err := w.write(ctx, func(s *Shard) {
		s.Step, s.LastTry = s.Step+1, false
		if pause > 0 {
			s.NotBefore = Stamp(w.Clock().Add(pause))
		}
	})
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Next: fmt.Sprintf("step %d", w.shard.Step)}, w.enqueueShard(ctx, w.job, w.shard)
}

// fail ends the shard with an error.
func (w *worker) fail(ctx context.Context, cause error) (Outcome, error) {
	w.Log.LogAttrs(ctx, slog.LevelError, w.Name+" of a shard failed", slog.String("app", w.job.App),
		slog.String(w.Name, w.job.ID), slog.Int("shard", w.shard.N), slog.Any("error", cause))
	text := errorText(cause)
	if at, ok := errors.AsType[regionError](cause); ok && at.region != w.app.Region {
		text = fmt.Sprintf("the work on users of region %s failed, as a line of the log says", at.region)
	}
	err := w.write(ctx, func(s *Shard) { s.State, s.Error = ShardFailed, text })
	if err != nil && !errors.Is(err, ErrEnded) {
		return Outcome{}, errors.Join(cause, err)
	}
	return Outcome{Next: "the shard has failed"}, w.finish(ctx, w.job.App, w.job.ID)
}

// write changes the shard. It returns errOvertaken if another delivery of the
// task has changed the shard since this attempt last read or wrote it.
func (w *worker) write(ctx context.Context, change func(*Shard)) error {
	shard, err := w.Jobs.UpdateShard(ctx, w.job.App, w.job.ID, w.shard.N, func(s *Shard) error {
		if s.Step != w.shard.Step || s.Pass != w.shard.Pass || s.Processed != w.shard.Processed || s.Next != w.shard.Next {
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
