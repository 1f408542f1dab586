package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

// Plan runs a plan task that has failed retries times before. It cuts the app's
// users into shards and enqueues a task for each. For a job with Concurrency it
// enqueues the first tasks once all shards are planned. The stored shards are
// the checkpoint of the planning. After an error the queue must retry the task.
func (r *Runner) Plan(ctx context.Context, t PlanTask, retries int) (Outcome, error) {
	job, app, dropped, err := r.admit(ctx, t.App, t.Job)
	if err != nil || dropped.Dropped != "" {
		return dropped, err
	}
	switch {
	case job.State != Planning:
		// The task that ended the planning may have died before it called
		// finish.
		return r.drop(ctx, t.App, t.Job, "the job is planned"), r.finish(ctx, t.App, t.Job)
	case t.Step == job.PlanStep-1:
		// The task of that step may have died before it enqueued the next one.
		return r.drop(ctx, t.App, t.Job, "step %d is over", t.Step), r.enqueuePlanStep(ctx, job, r.unpropagated(app))
	case t.Step != job.PlanStep:
		return r.drop(ctx, t.App, t.Job, "step %d is not %d, the current one", t.Step, job.PlanStep), nil
	}
	o, err := r.plan(ctx, job, app)
	if at, ok := errors.AsType[regionError](err); ok {
		job.Region = at.region
	}
	switch {
	case errors.Is(err, errOvertaken), errors.Is(err, ErrEnded):
		return r.Plan(ctx, t, retries) // the job has changed: decide again what to do
	case err == nil || retries+1 < r.Attempts:
		return o, err
	}
	r.Log.LogAttrs(ctx, slog.LevelError, r.Name+" cannot be planned", slog.String("app", t.App),
		slog.String(r.Name, t.Job), slog.Any("error", err))
	_, err = r.end(ctx, job, Failed, errorText(err))
	return Outcome{Next: "the job has failed"}, err
}

// admit returns the job of a task and the app as configured now, or drops the
// task.
func (r *Runner) admit(ctx context.Context, appID, id string) (job Job, app config.App, dropped Outcome, err error) {
	job, err = r.Jobs.Job(ctx, appID, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return job, app, r.drop(ctx, appID, id, "the job is unknown"), nil
	case err != nil:
		return job, app, dropped, fmt.Errorf("read the job of a task: %w", err)
	case job.State.Ended():
		// The task that ended the job may have died before it called close.
		return job, app, r.drop(ctx, appID, id, "the job is %s", job.State), r.close(ctx, job)
	}
	app, err = r.Config.App(ctx, appID)
	switch {
	case errors.Is(err, config.ErrNotFound):
		return job, app, r.drop(ctx, appID, id, "the app does not exist"), nil
	case err != nil:
		return job, app, dropped, fmt.Errorf("read the app of a task: %w", err)
	}
	if reason := r.Work.Obsolete(job, app); reason != "" {
		dropped = r.drop(ctx, appID, id, "%s", reason)
		_, err = r.end(ctx, job, Superseded, reason)
	}
	return job, app, dropped, err
}

func (r *Runner) plan(ctx context.Context, job Job, app config.App) (Outcome, error) {
	if early := r.unpropagated(app); early > 0 {
		return r.nextPlanStep(ctx, job, early)
	}
	if r.waits(app) {
		return r.nextPlanStep(ctx, job, movingPause)
	}
	switch err := r.cutAll(ctx, job, app, r.Now().Add(r.Budget)); {
	case errors.Is(err, errBudget):
		return r.nextPlanStep(ctx, job, 0)
	case err != nil:
		return Outcome{}, fmt.Errorf("plan %s %s: %w", r.Name, job.ID, err)
	}
	if preparing, ok := r.Work.(Preparing); ok {
		if err := r.prepare(ctx, preparing, job, app); err != nil {
			return Outcome{}, fmt.Errorf("prepare %s %s: %w", r.Name, job.ID, err)
		}
	}
	_, err := r.Jobs.Update(ctx, job.App, job.ID, func(j *Job) error {
		j.State, j.RunningAt = Running, r.Now()
		return nil
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("end the planning of %s: %w", job.ID, err)
	}
	return Outcome{Next: "all shards are planned"}, r.finish(ctx, job.App, job.ID)
}

// maxStarts is of how many shards Prepare learns the first users.
const maxStarts = 32

// prepare prepares the work in each region in which users of the app live.
func (r *Runner) prepare(ctx context.Context, work Preparing, job Job, app config.App) error {
	regions := r.regionsOf(app)
	for i, region := range regions {
		at := app
		if region != "" {
			at = app.In(region)
		}
		starts := func(ctx context.Context) ([]string, error) { return r.starts(ctx, job, regions, i) }
		if err := work.Prepare(ctx, job, at, starts); err != nil {
			return regionError{region, err}
		}
	}
	return nil
}

// starts returns the first users of some of the job's shards of the region at an index.
func (r *Runner) starts(ctx context.Context, job Job, regions []string, at int) ([]string, error) {
	last, err := r.Jobs.LastShard(ctx, job.App, job.ID)
	if err != nil {
		return nil, err
	}
	// The shards of a region follow those of the one before it.
	behind := func(at int) int {
		return sort.Search(last.N+1, func(n int) bool {
			shard, failed := r.Jobs.Shard(ctx, job.App, job.ID, n)
			if failed != nil {
				err = failed
			}
			return slices.Index(regions, shard.Region) > at
		})
	}
	first, end := 0, last.N+1
	if at > 0 {
		first = behind(at - 1)
	}
	if at < len(regions)-1 {
		end = behind(at)
	}
	n := min(end-first, maxStarts)
	starts := make([]string, n)
	for i := range starts {
		shard, failed := r.Jobs.Shard(ctx, job.App, job.ID, first+i*(end-first)/n)
		if failed != nil {
			err = failed
		}
		starts[i] = shard.From
	}
	return starts, err
}

// nextPlanStep ends the current plan step and enqueues the task of the next
// one. If the process dies between the two writes, the retried task repeats the
// second.
func (r *Runner) nextPlanStep(ctx context.Context, job Job, delay time.Duration) (Outcome, error) {
	planned, err := r.Jobs.Update(ctx, job.App, job.ID, func(j *Job) error {
		if j.State != Planning || j.PlanStep != job.PlanStep {
			return errOvertaken
		}
		j.PlanStep++
		return nil
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("continue the planning of %s: %w", job.ID, err)
	}
	return Outcome{Next: fmt.Sprintf("plan step %d", planned.PlanStep)}, r.enqueuePlanStep(ctx, planned, delay)
}

var (
	errBudget    = errors.New("the time of the task is over")
	errOvertaken = errors.New("another delivery of the task wrote first")
)

// regionError is the error of work over the users of a region, whom it may name.
type regionError struct {
	region string
	error
}

func (e regionError) Unwrap() error { return e.error }

// Abroad marks an error of work over the users of a region, whom it may name. A shard that is not of that region says
// no more than which one it is.
func Abroad(region string, err error) error { return regionError{region, err} }

// regionsOf returns the regions over which a job goes; one without a name unless each user of the app has a region of
// their own.
func (r *Runner) regionsOf(app config.App) []string {
	if !app.Residency.On() || r.Whole {
		return []string{""}
	}
	return app.Everywhere()
}

// cutAll cuts the users after the last stored shard into shards, in key order, region after region.
// If another delivery of the task plans at the same time, the first shard that
// is stored under a number counts.
func (r *Runner) cutAll(ctx context.Context, job Job, app config.App, until time.Time) error {
	for r.Users != nil {
		c := cutter{r: r, job: job, app: app, regions: r.regionsOf(app)}
		switch last, err := r.Jobs.LastShard(ctx, job.App, job.ID); {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return err
		default:
			// The plan task that stored this shard may have died before it
			// enqueued the shard's task.
			if err := r.enqueuePlanned(ctx, job, last); err != nil {
				return err
			}
			c.n, c.from = last.N+1, last.To
			// A shard of no region was cut before users lived in regions of their own: they lived in that of the app.
			c.regions = c.regions[max(0, slices.Index(c.regions, last.Region)):]
			if last.To == "" {
				c.regions = c.regions[1:]
			}
		}
		err := c.cutRegions(ctx, until)
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return nil
}

// cutter cuts a stream of users into shards.
type cutter struct {
	r       *Runner
	job     Job
	app     config.App
	regions []string // that of the current shard, and those after it
	n       int      // number of the current shard
	from    string   // its first token
	users   int      // in it so far
}

func (c *cutter) cutRegions(ctx context.Context, until time.Time) error {
	for ; len(c.regions) > 0; c.regions = c.regions[1:] {
		users := c.r.Users
		if c.regions[0] != "" {
			users = c.r.UsersIn(c.regions[0])
		} else if c.app.Residency.On() {
			users = usersOf{c.r, c.app.Everywhere()}
		}
		if err := c.cutUsers(ctx, users, until); err != nil {
			return regionError{c.regions[0], err}
		}
	}
	return nil
}

// usersOf are the users of several regions, one after the other.
type usersOf struct {
	r       *Runner
	regions []string
}

func (u usersOf) ScanUserKeys(ctx context.Context, app, from, to string, fn func(user string) error) error {
	for _, region := range u.regions {
		if err := u.r.UsersIn(region).ScanUserKeys(ctx, app, from, to, fn); err != nil {
			return Abroad(region, err)
		}
	}
	return nil
}

func (c *cutter) cutUsers(ctx context.Context, users Users, until time.Time) error {
	err := users.ScanUserKeys(ctx, c.job.App, c.from, "", func(user string) error {
		if c.users == c.r.ShardUsers {
			// The stream may reuse the memory of the token.
			if err := c.cut(ctx, strings.Clone(user)); err != nil {
				return err
			}
			if err := c.r.checkUnfinished(ctx, c.job); err != nil {
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

// cut stores the shard that ends before the user to, and enqueues its task.
func (c *cutter) cut(ctx context.Context, to string) error {
	shard := Shard{N: c.n, Region: c.regions[0], From: c.from, To: to, State: ShardOpen, Next: c.from,
		PlannedUsers: int64(c.users)}
	if c.users == 0 {
		// Without users the shard is done: users who arrive later get the new
		// configuration.
		shard.State, shard.ExpiresAt = ShardDone, c.r.expiry()
	}
	err := c.r.Jobs.CreateShard(ctx, c.job.App, c.job.ID, shard)
	if errors.Is(err, ErrExists) {
		written, err := c.r.Jobs.Shard(ctx, c.job.App, c.job.ID, c.n)
		if err != nil {
			return err
		}
		if written.Region != shard.Region || written.From != shard.From || written.To != shard.To {
			return errOvertaken
		}
		shard = written
	} else if err != nil {
		return err
	}
	c.n, c.from, c.users = c.n+1, to, 0
	return c.r.enqueuePlanned(ctx, c.job, shard)
}

// enqueuePlanned enqueues the first task of a shard. For a job with
// Concurrency, finish enqueues it.
func (r *Runner) enqueuePlanned(ctx context.Context, job Job, s Shard) error {
	if s.State != ShardOpen || job.Concurrency > 0 {
		return nil
	}
	return r.enqueueShard(ctx, job, s)
}
