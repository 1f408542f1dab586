// Package residents keeps users in the regions in which they live. A job moves the users of a region that users leave
// by the setting of their app, and removes what regions still hold of users who have moved away. Once nothing is left
// in a region that users leave, the app no longer names it.
//
// A job starts every night, for apps whose users have regions of their own, and when the setting names a region that
// users leave. A shard is a range of the rows of one
// region. Its first pass moves users, and forgets where users live who were deleted long ago. What they have left may
// be used for some time, so the verification waits, and then removes it. Package job runs the jobs, which lie in a
// collection of this package:
//
//	apps/{app}/residents/{id}
package residents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("residents")

// Params are the parameters of a job: it has none.
type Params struct{}

var _ job.Params = Params{}

// LogAttrs returns nothing.
func (Params) LogAttrs() []slog.Attr { return nil }

// Counts counts the work of a job.
type Counts struct {
	Users   int64 // rows of users looked at
	Moved   int64 // who have left the region
	Cleaned int64 // of whom the region holds nothing any more
}

// Config reads and changes the setting of an app.
type Config interface {
	App(ctx context.Context, appID string) (config.App, error)
	LeaveRegion(ctx context.Context, appID, region string) (config.App, error)
}

// Work moves and cleans.
type Work struct {
	job.Plain
	Store    *store.Store
	Profiles *profile.Engine
	Config   Config
	Now      func() time.Time // the engine's clock
	// Settle is how long a process may act on what it has read.
	Settle time.Duration
}

var (
	_ job.Work    = &Work{}
	_ job.Closing = &Work{}
)

// Runner starts jobs and runs their tasks. It is safe for concurrent use.
type Runner struct {
	*job.Runner
	work *Work
}

// New returns the runner. It sets the name and the work of r.
func New(r job.Runner, work Work) *Runner {
	r.Name, r.Work, r.StaleText = "residents", &work, "users not where they live"
	return &Runner{job.New(r), &work}
}

// SetSettle changes how long a process may act on what it has read. Call it before a job runs.
func (r *Runner) SetSettle(settle time.Duration) { r.work.Settle = settle }

// errBusy means that a job of the app is under way.
var errBusy = errors.New("users are being moved")

// Nightly starts the job of an app whose users have regions of their own, unless one is under way. It is idempotent.
func (r *Runner) Nightly(ctx context.Context, appID string, night job.Night) error {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return fmt.Errorf("start residents: %w", err)
	}
	if app.Residency.Mode != config.ResidencyOn {
		return nil
	}
	return r.start(ctx, app, "nightly", night.Date)
}

// Leave starts the job of an app whose setting has just named regions that users leave, unless one is under way. What
// that one has passed waits for the next night.
func (r *Runner) Leave(ctx context.Context, app config.App) error {
	if len(app.Residency.Leave) == 0 || app.Residency.Mode != config.ResidencyOn {
		return nil
	}
	return r.start(ctx, app, "leave", strconv.FormatInt(r.Clock().UnixMilli(), 10))
}

func (r *Runner) start(ctx context.Context, app config.App, kind, at string) error {
	_, err := r.StartAlone(ctx, app, kind, errBusy, func() (job.Job, error) {
		return job.Job{App: app.ID, ID: kind + "-" + at, Kind: kind, Concurrency: 2, Params: Params{}}, nil
	})
	if errors.Is(err, errBusy) {
		return nil
	}
	return err
}

// Process moves the users of a range who leave the region, and removes what can be removed.
func (w *Work) Process(ctx context.Context, _ job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	var c Counts
	next, err := w.each(ctx, app, shard.Next, shard.To, until, func(user string) error {
		left, err := w.visit(ctx, app, user, until, false, &c)
		if err != nil || left {
			return err
		}
		return progress(job.Progress{Next: user + "\x00", Counts: job.Count(c)})
	})
	return job.Progress{Next: next, Done: next == "", Counts: job.Count(c)}, err
}

// waited begins the place of a verification that has waited. No token begins with it.
const waited = ","

// Verify counts the users of a range who are not where they live, or of whom the region holds something. If there are
// some, it waits first until that can be removed.
func (w *Work) Verify(ctx context.Context, _ job.Job, app config.App, shard job.Shard,
	until time.Time) (job.Verified, error) {
	from, again := strings.CutPrefix(shard.Next, waited)
	if !again || from == "" {
		from = shard.From
	}
	var v job.Verified
	var c Counts
	next, err := w.each(ctx, app, from, shard.To, until, func(user string) error {
		left, err := w.visit(ctx, app, user, until, again, &c)
		if left {
			v.Stale++
		}
		return err
	})
	switch {
	case err != nil:
		return job.Verified{}, err
	case next != "":
		v.Next = waited + next
	case v.Stale > 0 && !again:
		return job.Verified{Next: waited, Pause: 2*w.Settle + time.Millisecond}, nil
	}
	return v, nil
}

// each calls do with the users of a range, until the time is over. It returns where to go on; empty at the end.
func (w *Work) each(ctx context.Context, app config.App, from, to string, until time.Time,
	do func(user string) error) (next string, err error) {
	err = w.Store.In(app.Region).Users.ScanUserKeys(ctx, app.ID, from, to, func(user string) error {
		user = strings.Clone(user) // the stream may reuse its memory
		if err := do(user); err != nil {
			return err
		}
		if !w.Now().Before(until) {
			next = user + "\x00"
			return errOver
		}
		return nil
	})
	if errors.Is(err, errOver) {
		err = nil
	}
	return next, err
}

var errOver = errors.New("the time of the task is over")

// visit moves a user who leaves the region of app, and removes what the region holds of one who lives elsewhere. left
// says that something is still to do. waited says that the job has waited since an earlier visit.
func (w *Work) visit(ctx context.Context, app config.App, user string, until time.Time, waited bool,
	c *Counts) (left bool, err error) {
	c.Users++
	residents := profile.ResidentsOf(w.Profiles)
	lives, since, err := residents.Lives(ctx, app, user)
	if err != nil {
		return false, err
	}
	if since.IsZero() && waited {
		return residents.Forget(ctx, app, user, app.Region)
	}
	if lives == app.Region {
		to := app.Residency.Leave[app.Region]
		if to == "" { // Clean completes a move that died, and forgets a user who was deleted long ago
			gone, err := residents.Clean(ctx, app, user, app.Region, w.Settle)
			return !gone, err
		}
		err = residents.Move(ctx, app, user, to, until)
		_, refused := errors.AsType[profile.ResidenceRefused](err) // a token that moves with the user to whom it is linked
		if refused || errors.Is(err, profile.ErrLeft) || errors.Is(err, profile.ErrUnfinished) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		c.Moved++
	}
	gone, err := residents.Clean(ctx, app, user, app.Region, w.Settle)
	if gone {
		c.Cleaned++
	}
	return !gone, err
}

// Close takes regions out of the setting of the app that users have left. Before that it removes all that is there of
// the app: lists and copies of locations. What jobs say of users there goes with age.
func (w *Work) Close(ctx context.Context, j job.Job) error {
	if j.State != job.Done {
		return nil
	}
	app, err := w.Config.App(ctx, j.App)
	if errors.Is(err, config.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for region := range app.Residency.Leave {
		there := w.Store.In(region)
		users, err := there.Rows.FindRows(ctx, store.AppRows{App: app.ID, Table: store.TableUsers}, 1)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			continue // someone began there lately: the next night
		}
		if none, err := profile.ResidentsOf(w.Profiles).ForgetUnused(ctx, app, region); err != nil {
			return err
		} else if !none {
			continue // someone may begin there yet
		}
		if err := w.erase(ctx, app.ID, there); err != nil {
			return err
		}
		if _, err := w.Config.LeaveRegion(ctx, app.ID, region); err != nil {
			return err
		}
	}
	return nil
}

// erase removes what a region holds of an app but the details of jobs.
func (w *Work) erase(ctx context.Context, appID string, there *store.Store) error {
	tables, err := store.TableNames()
	if err != nil {
		return err
	}
	for _, table := range tables {
		if table == store.TableJobs {
			continue
		}
		rows := store.AppRows{App: appID, Table: table}
		if err := there.Rows.DeleteRows(ctx, rows, func(int, string) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}
