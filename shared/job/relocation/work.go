package relocation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/googleapis/gax-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/config"
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
	groupUsers = 64 // between two checkpoints
	atOnce     = 4  // users of a task, unless the settings say another number
)

// work is the work of all phases.
type work struct {
	regions Regions
	mover   Mover
	now     func() time.Time
	moves   *Runner
	atOnce  int // users of a task; 0: the usual number
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
	plain := func(step func(context.Context, config.App, string) error) func(context.Context, config.App, string) (int, error) {
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
	if shard.From == lastFrom {
		return w.moveRows(ctx, app, shard, until, progress)
	}
	p := job.Progress{Next: shard.Next}
	params := job.ParamsOf[Params](j)
	step := w.userStep(params, until)
	for step != nil {
		group, next, err := w.group(ctx, app.ID, params, p.Next, shard.To)
		if err != nil {
			return p, err
		}
		var unfinished some
		rows, err := w.all(ctx, group, func(ctx context.Context, user string) (int, error) {
			if user != group[0] && !w.now().Before(until) { // the next task begins with them
				unfinished.add(user)
				return 0, nil
			}
			rows, err := step(ctx, app, user)
			if errors.Is(err, profile.ErrUnfinished) {
				unfinished.add(user)
				err = nil
			}
			return rows, err
		})
		p.Events += int64(rows)
		if err != nil {
			return p, err
		}
		if i := slices.IndexFunc(group, unfinished.has); i >= 0 {
			p.Visited += int64(i)
			p.Next = group[i]
			return p, nil
		}
		p.Visited += int64(len(group))
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

// some keeps some users of a group.
type some struct {
	mu    sync.Mutex
	users []string
}

func (s *some) add(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = append(s.users, user)
}

func (s *some) has(user string) bool { return slices.Contains(s.users, user) }

// all calls step for users, some at a time, and returns the sum.
func (w *work) all(ctx context.Context, users []string, step func(ctx context.Context, user string) (int, error)) (int, error) {
	counts := make([]int, len(users))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cmp.Or(w.atOnce, atOnce))
	for i, user := range users {
		g.Go(func() (err error) {
			counts[i], err = step(ctx, user)
			return err
		})
	}
	err, sum := g.Wait(), 0
	for _, n := range counts {
		sum += n
	}
	return sum, err
}

var errGroup = errors.New("the group is complete")

// group returns the next users of a range, and the one behind them, "" at its end.
func (w *work) group(ctx context.Context, appID string, p Params, from, to string) (users []string, next string, err error) {
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
// left.
func (w *work) Verify(ctx context.Context, j job.Job, app config.App, shard job.Shard) (int64, error) {
	if err := w.regions.known(app); err != nil {
		return 0, fmt.Errorf("%w: %w", job.ErrFailed, err)
	}
	params := job.ParamsOf[Params](j)
	if shard.From == lastFrom {
		return w.verifyRows(ctx, app)
	}
	if w.userStep(params, time.Time{}) == nil {
		return 0, nil
	}
	var open some // users at the first look
	looks := func(ctx context.Context, user string) (int, error) {
		done, err := w.mover.UserIsDone(ctx, app, user)
		if err == nil && !done {
			open.add(user)
		}
		return 0, err
	}
	for from, more := shard.From, true; more; {
		group, next, err := w.group(ctx, app.ID, params, from, shard.To)
		if err != nil {
			return 0, err
		}
		if _, err := w.all(ctx, group, looks); err != nil {
			return 0, err
		}
		from, more = next, next != ""
	}
	if len(open.users) == 0 {
		return 0, nil
	}
	// A request may have been between two steps for a user. It has ended by now.
	if err := gax.Sleep(ctx, lookAgain); err != nil {
		return 0, err
	}
	seen := open.users
	open.users = nil
	_, err := w.all(ctx, seen, looks)
	return int64(len(open.users)), err
}

// lookAgain is the time between two looks at what seems to be left to do.
const lookAgain = time.Second
