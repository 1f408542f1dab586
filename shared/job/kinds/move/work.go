package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
)

// Mover takes the steps of a move for one user. Each may be repeated.
type Mover interface {
	MarkUser(ctx context.Context, app config.App, user string) error
	// MoveUser returns profile.ErrUnfinished if the user has more events than it could copy until
	// then.
	MoveUser(ctx context.Context, app config.App, user string, until time.Time) (rows int, err error)
	StayUser(ctx context.Context, app config.App, user string) error
	ArriveUser(ctx context.Context, app config.App, user string) error
	ClearUser(ctx context.Context, app config.App, user string) error
	ReconcileUser(ctx context.Context, app config.App, user string) (rows int, err error)
	DropUser(ctx context.Context, app config.App, user string) (gone bool, err error)
	// UserIsDone reports whether the phase has nothing left to do for a user.
	UserIsDone(ctx context.Context, app config.App, user string) (bool, error)
}

var _ Mover = (*profile.Engine)(nil)

const (
	groupUsers  = 64 // between two checkpoints
	movedAtOnce = 4  // users of a task, unless the settings say another number
)

// work is the work of all phases.
type work struct {
	regions     Regions
	mover       Mover
	now         func() time.Time
	moves       *Runner
	concurrency int // users of a task; 0: the usual number
}

var (
	_ job.Closing   = (*work)(nil)
	_ job.Continued = (*work)(nil)
)

// Obsolete says that the move has gone on, or has turned back.
func (w *work) Obsolete(j job.Job, app config.App) string {
	if app.Move.Job != j.ID {
		return fmt.Sprintf("the move is in phase %q now", app.Move.Phase)
	}
	return ""
}

// Close begins the next phase.
func (w *work) Close(ctx context.Context, j job.Job) error {
	if j.State != job.Done {
		return nil
	}
	return w.moves.next(ctx, j)
}

// userStep is what a phase does for a user; nil: nothing. It returns the number of rows of the log that
// it has copied. What copies for longer than until is left unfinished.
func (w *work) userStep(p Params, until time.Time) func(ctx context.Context, app config.App, user string) (int, error) {
	plain := func(step func(context.Context, config.App, string) error) func(context.Context, config.App,
		string) (int, error) {
		return func(ctx context.Context, app config.App, user string) (int, error) { return 0, step(ctx, app, user) }
	}
	move := func(ctx context.Context, app config.App, user string) (int, error) {
		return w.mover.MoveUser(ctx, app, user, until)
	}
	if p.Back {
		move = func(ctx context.Context, app config.App, user string) (int, error) {
			if err := w.mover.StayUser(ctx, app, user); err != nil {
				return 0, err
			}
			return w.mover.MoveUser(ctx, app, user, until)
		}
	}
	switch p.Phase {
	case config.MoveMarking:
		return plain(w.mover.MarkUser)
	case config.MoveArriving:
		return plain(w.mover.ArriveUser)
	case config.MoveClearing:
		return plain(w.mover.ClearUser)
	case config.MoveUsers:
		return move
	case config.MoveDropping:
		return func(ctx context.Context, app config.App, user string) (rows int, err error) {
			if p.Back { // a request may have sent on a new user who arrived after the users moved
				if rows, err = move(ctx, app, user); err != nil {
					return rows, err
				}
			}
			more, err := w.mover.ReconcileUser(ctx, app, user)
			if err == nil {
				_, err = w.mover.DropUser(ctx, app, user)
			}
			return rows + more, err
		}
	}
	return nil
}

// Process takes the step of the phase for the users of a range. Its places are user tokens.
func (w *work) Process(ctx context.Context, j job.Job, app config.App, shard job.Shard, until time.Time,
	progress func(job.Progress) error) (job.Progress, error) {
	if err := w.regions.known(app); err != nil {
		return job.Progress{Next: shard.Next}, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	if shard.Part == others {
		return w.moveRows(ctx, app, shard, until, progress)
	}
	p, counts := job.Progress{Next: shard.Next}, Counts{}
	params := job.ParamsOf[Params](j)
	step := w.userStep(params, until)
	for step != nil {
		group, next, err := w.group(ctx, app.ID, params, p.Next, shard.To)
		if err != nil {
			return p, err
		}
		finished, rows, err := w.each(ctx, group, until,
			func(ctx context.Context, i int) (int, error) { return step(ctx, app, group[i]) })
		counts.Rows += int64(rows)
		counts.Users += int64(finished)
		p.Counts = job.Count(counts)
		if err != nil {
			return p, err
		}
		if finished < len(group) { // the next task begins with them
			p.Next = group[finished]
			return p, nil
		}
		if next == "" {
			break
		}
		p.Next = next
		if err := progress(p); err != nil {
			return p, err
		}
		if !w.now().Before(until) {
			return p, nil
		}
	}
	p.Done = true
	return p, nil
}

// each calls step with the numbers of users, some at a time, and returns the sum. It calls it for
// the first user, and for others until the time is over. finished is the number of users, from
// the first one on, who are finished.
func (w *work) each(ctx context.Context, users []string, until time.Time,
	step func(ctx context.Context, i int) (int, error)) (finished, sum int, err error) {
	counts, left := make([]int, len(users)), make([]bool, len(users))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cmp.Or(w.concurrency, movedAtOnce))
	for i := range users {
		g.Go(func() (err error) {
			if i > 0 && !w.now().Before(until) {
				left[i] = true
				return nil
			}
			counts[i], err = step(ctx, i)
			if errors.Is(err, profile.ErrUnfinished) {
				left[i], err = true, nil
			}
			return err
		})
	}
	err = g.Wait()
	for _, n := range counts {
		sum += n
	}
	if finished = slices.Index(left, true); finished < 0 {
		finished = len(users)
	}
	return finished, sum, err
}

var errGroup = errors.New("the group is complete")

// group returns the next users of a range, and the one behind them, "" at its end.
func (w *work) group(ctx context.Context, appID string, p Params, from,
	to string) (users []string, next string, err error) {
	err = w.regions.scan(ctx, appID, p, from, to, func(user string) error {
		if len(users) == groupUsers {
			next = strings.Clone(user)
			return errGroup
		}
		users = append(users, strings.Clone(user))
		return nil
	})
	if errors.Is(err, errGroup) {
		err = nil
	}
	return users, next, err
}

// Verify counts the users for whom the phase has something left to do, or rows that it has
// left. A request may be between two steps for a user: one counts who is open at two looks,
// with a pause between. A place is the user with whom the first looks continue, empty at the
// end of the range, and the users who were open at the first look, each behind a comma.
func (w *work) Verify(ctx context.Context, j job.Job, app config.App, shard job.Shard,
	until time.Time) (job.Verified, error) {
	if err := w.regions.known(app); err != nil {
		return job.Verified{}, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	params := job.ParamsOf[Params](j)
	if shard.Part == others {
		return w.verifyRows(ctx, app, shard, until)
	}
	if w.userStep(params, time.Time{}) == nil {
		return job.Verified{}, nil
	}
	place := strings.Split(shard.Next, ",")
	from, seen := place[0], place[1:]
	more := from != "" || len(seen) == 0
	open, left, err := w.open(ctx, app, seen, until)
	v := job.Verified{Stale: int64(len(open))}
	if err != nil || len(left) > 0 {
		v.Next = strings.Join(append([]string{from}, left...), ",")
		return v, err
	}
	open = nil
	for first := len(seen) == 0; more && len(open) < groupUsers && (first || w.now().Before(until)); first = false {
		group, next, err := w.group(ctx, app.ID, params, from, shard.To)
		if err != nil {
			return v, err
		}
		some, left, err := w.open(ctx, app, group, until)
		if err != nil {
			return v, err
		}
		if len(left) > 0 {
			next = left[0]
		}
		open, from, more = append(open, some...), next, next != ""
	}
	if len(open) > 0 {
		v.Pause = lookAgain
	}
	if more || len(open) > 0 {
		v.Next = strings.Join(append([]string{from}, open...), ",")
	}
	return v, nil
}

// open returns those of some users for whom the phase has something left to do, and the users
// at whom it had no time to look.
func (w *work) open(ctx context.Context, app config.App, users []string,
	until time.Time) (open, left []string, err error) {
	isOpen := make([]bool, len(users))
	looked, _, err := w.each(ctx, users, until, func(ctx context.Context, i int) (int, error) {
		done, err := w.mover.UserIsDone(ctx, app, users[i])
		isOpen[i] = !done
		return 0, err
	})
	for i, user := range users[:looked] {
		if isOpen[i] {
			open = append(open, user)
		}
	}
	return open, users[looked:], err
}

// lookAgain is the time between two looks at what seems to be left to do.
const lookAgain = time.Second

// next ends the phase of a job that is done, and begins the following one.
func (r *Runner) next(ctx context.Context, j job.Job) error {
	app, err := r.config.UpdateMove(ctx, j.App, func(a *config.App) error {
		if a.Move.Job == j.ID {
			a.AdvanceMove()
		}
		return nil // or an earlier attempt did it
	})
	if errors.Is(err, config.ErrNotFound) {
		return nil // the app has been deleted
	}
	if err != nil {
		return err
	}
	p := job.ParamsOf[Params](j)
	switch {
	case app.Moving() && app.Move.ID == p.Move:
		return r.resumeUnlessFailed(ctx, app)
	case !app.Moving() && p.Phase == config.MoveFinishing:
		return r.arrived(ctx, app)
	}
	return nil // a late task of a move that has ended
}

// resumeUnlessFailed starts the job of the app's phase again, unless it has failed: then it
// stays as it is, for an operator.
func (r *Runner) resumeUnlessFailed(ctx context.Context, app config.App) error {
	s, err := r.status(ctx, app)
	if err != nil || s.Job != nil && s.Job.State.Ended() && s.Job.State != job.Done {
		return err
	}
	_, err = r.resume(ctx, app)
	return err
}
