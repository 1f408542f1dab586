package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/config"
)

// Plan carries out a plan task that has failed so many times: it cuts the app's
// users into shards and orders a task for each, where the job has lanes once all
// are planned. The shards that are written are its checkpoint. An error means that
// the task must come again.
func (r *Runner) Plan(ctx context.Context, t PlanTask, retries int) (Outcome, error) {
	job, app, dropped, err := r.admit(ctx, t.App, t.Job)
	if err != nil || dropped.Dropped != "" {
		return dropped, err
	}
	switch {
	case job.State != Planning:
		// Who planned it may have gone before he saw that all of it was done.
		return r.drop(ctx, t.App, t.Job, "the job is planned"), r.finish(ctx, t.App, t.Job)
	case t.Step == job.PlanStep-1:
		// Who went on may have gone before he ordered the task that does.
		return r.drop(ctx, t.App, t.Job, "step %d is over", t.Step), r.enqueuePlan(ctx, job, r.unsettled(app))
	case t.Step != job.PlanStep:
		return r.drop(ctx, t.App, t.Job, "step %d is not %d, which is in force", t.Step, job.PlanStep), nil
	}
	o, err := r.plan(ctx, job, app)
	switch {
	case errors.Is(err, errOvertaken), errors.Is(err, ErrEnded):
		return r.Plan(ctx, t, retries) // things have changed, and it is told above what is left to do
	case err == nil || retries+1 < r.Attempts:
		return o, err
	}
	r.Log.LogAttrs(ctx, slog.LevelError, r.Name+" cannot be planned", slog.String("app", t.App), slog.String(r.Name, t.Job), slog.Any("error", err))
	_, err = r.end(ctx, job, Failed, errorText(err))
	return Outcome{Next: "the job has failed"}, err
}

// admit finds the job of a task and the app as it is now, or drops the task.
func (r *Runner) admit(ctx context.Context, appID, id string) (job Job, app config.App, dropped Outcome, err error) {
	job, err = r.Jobs.Job(ctx, appID, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return job, app, r.drop(ctx, appID, id, "the job is unknown"), nil
	case err != nil:
		return job, app, dropped, fmt.Errorf("read the job of a task: %w", err)
	case job.State.Ended():
		return job, app, r.drop(ctx, appID, id, "the job is %s", job.State), nil
	}
	if app, err = r.Apps.App(ctx, appID); err != nil {
		return job, app, dropped, fmt.Errorf("read the app of a task: %w", err)
	}
	if reason := r.Work.Obsolete(job, app); reason != "" {
		dropped = r.drop(ctx, appID, id, "%s", reason)
		_, err = r.end(ctx, job, Superseded, reason)
	}
	return job, app, dropped, err
}

func (r *Runner) plan(ctx context.Context, job Job, app config.App) (Outcome, error) {
	if early := r.unsettled(app); early > 0 {
		return r.planLater(ctx, job, early)
	}
	switch err := r.cutAll(ctx, job, r.Now().Add(r.Budget)); {
	case errors.Is(err, errBudget):
		return r.planLater(ctx, job, 0)
	case err != nil:
		return Outcome{}, fmt.Errorf("plan %s %s: %w", r.Name, job.ID, err)
	}
	_, err := r.Jobs.Update(ctx, job.App, job.ID, func(j *Job) error {
		j.State = Running
		return nil
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("end the planning of %s: %w", job.ID, err)
	}
	return Outcome{Next: "all shards are planned"}, r.finish(ctx, job.App, job.ID)
}

// planLater has another task go on with the planning. A crash between its two
// steps is mended by the task that comes again.
func (r *Runner) planLater(ctx context.Context, job Job, delay time.Duration) (Outcome, error) {
	later, err := r.Jobs.Update(ctx, job.App, job.ID, func(j *Job) error {
		if j.State != Planning || j.PlanStep != job.PlanStep {
			return errOvertaken
		}
		j.PlanStep++
		return nil
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("go on with the planning of %s: %w", job.ID, err)
	}
	return Outcome{Next: fmt.Sprintf("plan step %d", later.PlanStep)}, r.enqueuePlan(ctx, later, delay)
}

var (
	// errBudget: the time of a task is over.
	errBudget = errors.New("the time of the task is over")
	// errOvertaken: another delivery of the same task was quicker.
	errOvertaken = errors.New("another delivery of the task was quicker")
)

// cutAll cuts all users that are not in a shard yet into shards, in key order
// from where the last one ends. Where another delivery of the task cuts as well,
// the shard of each number that is written first counts.
func (r *Runner) cutAll(ctx context.Context, job Job, until time.Time) error {
	for {
		c := cutter{r: r, job: job}
		switch last, err := r.Jobs.LastShard(ctx, job.App, job.ID); {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return err
		default:
			// Who wrote it may have gone before he ordered its task.
			if err := r.orderShard(ctx, job, last); err != nil || last.To == "" {
				return err
			}
			c.n, c.from = last.N+1, last.To
		}
		err := c.cutUsers(ctx, until)
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

// cutter makes shards of a stream of users.
type cutter struct {
	r     *Runner
	job   Job
	n     int    // number of the shard that is being filled
	from  string // where it begins
	users int    // in it so far
}

func (c *cutter) cutUsers(ctx context.Context, until time.Time) error {
	err := c.r.Users.ScanUserKeys(ctx, c.job.App, c.from, "", func(user string) error {
		if c.users == c.r.ShardUsers {
			// The stream's memory may be used again for the next.
			if err := c.cut(ctx, strings.Clone(user)); err != nil {
				return err
			}
			if err := c.r.stillWanted(ctx, c.job); err != nil {
				return err
			}
			if c.r.Now().After(until) {
				return errBudget
			}
		}
		c.users++
		return nil
	})
	if err != nil {
		return err
	}
	return c.cut(ctx, "")
}

// cut writes the shard that ends before a user and orders its task.
func (c *cutter) cut(ctx context.Context, to string) error {
	shard := Shard{N: c.n, From: c.from, To: to, State: ShardOpen, Next: c.from, PlannedUsers: int64(c.users)}
	if c.users == 0 {
		// Whoever comes from here on finds the new configuration.
		shard.State, shard.ExpiresAt = ShardDone, c.r.expiry()
	}
	err := c.r.Jobs.CreateShard(ctx, c.job.App, c.job.ID, shard)
	if errors.Is(err, ErrExists) {
		written, err := c.r.Jobs.Shard(ctx, c.job.App, c.job.ID, c.n)
		if err != nil {
			return err
		}
		if written.From != shard.From || written.To != shard.To {
			return errOvertaken
		}
		shard = written
	} else if err != nil {
		return err
	}
	c.n, c.from, c.users = c.n+1, to, 0
	return c.r.orderShard(ctx, c.job, shard)
}

// orderShard orders the task of a shard that was planned, unless it has to wait
// for a lane.
func (r *Runner) orderShard(ctx context.Context, job Job, s Shard) error {
	if s.State != ShardOpen || job.Lanes > 0 {
		return nil
	}
	return r.enqueueShard(ctx, job, s)
}
