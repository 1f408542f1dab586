// Package move moves the users of an app from one region to another while the app is
// in use. It runs the phases of a move one after the other: each is a job over all
// users, which begins with a wait until nobody acts on the configuration of the phase
// before, and ends by beginning the next. Package profile moves each user, and its page
// functions/docs/design/regions.md says why that loses nothing.
//
// The app's configuration holds the phase (config.Move); the jobs lie beside it:
//
//	apps/{app}/moves/{job}
//
// Jobs over all users of other kinds wait until the app has arrived.
package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("moves")

// Counts counts the work of a job.
type Counts struct {
	Users int64 // moved
	Rows  int64 // copied or deleted
}

// concurrency is how many shards of a move have tasks at a time, which leaves capacity for
// clients.
const concurrency = 4

// Params are the parameters of the job of a phase.
type Params struct {
	Move  string           `firestore:"move"`
	Phase config.MovePhase `firestore:"phase"`
	// Region is where the users are whom the phase works on.
	Region string `firestore:"region"`
	// Also is another region whose users the phase works on; empty if there is none.
	Also string `firestore:"also,omitempty"`
	Back bool   `firestore:"back"`
}

var _ job.Params = Params{}

// LogAttrs returns the phase and the region.
func (p Params) LogAttrs() []slog.Attr {
	return []slog.Attr{slog.String("move", p.Move), slog.String("phase", string(p.Phase)), slog.String("region", p.Region)}
}

// Refused is the error of a move that cannot begin, or not be undone.
type Refused struct {
	// Message says what prevents it, and what comes first.
	Message string
}

// Error returns the message.
func (r *Refused) Error() string { return r.Message }

func refuse(format string, args ...any) error { return &Refused{fmt.Sprintf(format, args...)} }

// Regions are the Bigtables of a deployment by the names of their regions. Apps that name
// none live in First.
type Regions struct {
	First string
	Rows  map[string]*store.Store
}

// Config reads apps and changes where they live: a *config.Store does. A *config.Cached does
// not, since it is not a config.Source.
type Config interface {
	config.Source
	UpdateMove(ctx context.Context, appID string, change func(*config.App) error) (config.App, error)
}

// Runner begins moves, turns them back, and runs the tasks of their phases. It is safe for
// concurrent use.
type Runner struct {
	*job.Runner
	config  Config
	regions Regions
	arrived func(ctx context.Context, app config.App) error
}

// New returns the runner. It sets the name, the users and the work of r. longest is how long
// a request or a task lives; each phase waits for that, besides the propagation of the
// configuration. arrived is called when an app rests in another region than before: work that
// has waited for it may begin. It may be called again.
func New(r job.Runner, c Config, regions Regions, mover Mover, longest time.Duration,
	arrived func(ctx context.Context, app config.App) error) *Runner {
	r.Name, r.StaleText = "move", "users or rows of the app are not where they should be"
	r.Propagation += longest
	r.DuringMoves = true
	moves := &Runner{config: c, regions: regions, arrived: arrived}
	r.Users = usersOf{c, regions}
	r.Work = &work{regions: regions, mover: mover, now: r.Now, moves: moves, concurrency: r.Settings.MovedAtOnce}
	moves.Runner = job.New(r)
	return moves
}

// Status is where the move of an app is.
type Status struct {
	Region string // of the app; new requests begin there
	Move   config.Move
	// Job is the job of the phase; nil if the app rests, or if nobody has created it yet.
	Job *job.Job
	// Waits is how long the phase still waits before it begins.
	Waits time.Duration
}

// Start begins a move of an app to another region. For an app that moves there already it
// resumes the job, in case the queue has lost its tasks. The error is of type Refused if the
// app cannot move now.
func (r *Runner) Start(ctx context.Context, appID, to string) (Status, error) {
	app, err := r.config.App(ctx, appID)
	if err != nil {
		return Status{}, err
	}
	if app.Moving() && app.Move.To == to {
		return r.proceed(ctx, app)
	}
	if err := r.check(ctx, app, to); err != nil {
		return Status{}, err
	}
	id := job.NewID("move", r.Now())
	app, err = r.config.UpdateMove(ctx, appID, func(a *config.App) error {
		if a.Move.ID == id {
			return nil // the answer to an earlier attempt was lost
		}
		if a.Region == "" {
			a.Region = r.regions.First
		}
		return a.StartMove(id, to, job.Stamp(r.Now()))
	})
	if errors.Is(err, config.ErrMoving) || errors.Is(err, config.ErrMigrating) {
		return Status{}, refuse("%v", err)
	}
	if err != nil {
		return Status{}, err
	}
	return r.resume(ctx, app)
}

// Estimate is what a move would do.
type Estimate struct {
	From, To string
	// Users is the number of users of the app, at most MaxCounted.
	Users int
	// Least is how long the move takes at least: its phases wait. Arrival is how long it
	// takes at least until the new region owns every user.
	Least, Arrival time.Duration
}

// MaxCounted is how many users an estimate counts.
const MaxCounted = 100_000

// forward is the number of phases of a move. A user has arrived after the first arriving.
const (
	forward  = 6
	arriving = 3
)

// left is how long a move takes from now on at least, if its phase has waited already.
func (r *Runner) left(m config.Move) time.Duration {
	behind := []config.MovePhase{config.MoveFinishing, config.MoveErasing, config.MoveDropping, config.MoveSwitched,
		config.MoveUsers, config.MoveCleared, config.MoveClearing, config.MoveArriving}
	n := slices.Index(behind, m.Phase)
	if m.Phase == config.MoveMarking {
		n = forward - 1
	}
	return (time.Duration(max(n, 1)) * r.Propagation).Round(time.Second)
}

var errCounted = errors.New("enough users are counted")

// Estimate returns what a move would do, and does nothing. The error is of type Refused if the
// app cannot move now.
func (r *Runner) Estimate(ctx context.Context, appID, to string) (Estimate, error) {
	app, err := r.config.App(ctx, appID)
	if err != nil {
		return Estimate{}, err
	}
	if err := r.check(ctx, app, to); err != nil {
		return Estimate{}, err
	}
	p := Estimate{From: cmp.Or(app.Region, r.regions.First), To: to, Least: forward * r.Propagation,
		Arrival: arriving * r.Propagation}
	err = r.regions.Rows[p.From].Users.ScanUserKeys(ctx, appID, "", "", func(string) error {
		if p.Users++; p.Users == MaxCounted {
			return errCounted
		}
		return nil
	})
	if errors.Is(err, errCounted) {
		err = nil
	}
	return p, err
}

// check returns why an app cannot move.
func (r *Runner) check(ctx context.Context, app config.App, to string) error {
	from := cmp.Or(app.Region, r.regions.First)
	switch {
	case r.regions.Rows[to] == nil:
		return refuse("There is no region %q: the regions are %s", to,
			strings.Join(slices.Sorted(maps.Keys(r.regions.Rows)), ", "))
	case app.Moving() && app.Move.Back:
		return refuse("App %s goes back from %s to %s, phase %s: it must arrive first, in %s or more; --wait waits for it",
			app.ID, app.Move.From, app.Move.To, app.Move.Phase, r.left(app.Move))
	case app.Moving():
		return refuse("App %s moves from %s to %s, phase %s: it must arrive, in %s or more, or go back, first; --wait of "+
			"its move waits for the end", app.ID, app.Move.From, app.Move.To, app.Move.Phase, r.left(app.Move))
	case r.regions.Rows[from] == nil:
		return refuse("App %s is in region %q, which this deployment does not have: add it to the regions first",
			app.ID, from)
	case from == to:
		return refuse("App %s is in region %s already", app.ID, to)
	case len(app.Log.Write) > 1:
		return refuse("The log of app %s migrates to another schema: finish that, or roll it back, first", app.ID)
	}
	names, err := store.TableNames()
	if err != nil {
		return err
	}
	for _, table := range names {
		keys, err := r.regions.Rows[to].Rows.FindRows(ctx, store.AppRows{App: app.ID, Table: table}, 1)
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			return refuse("Region %s still holds rows of app %s, in table %s: delete them first", to, app.ID, table)
		}
	}
	return nil
}

// Undo turns the move of an app back. It is possible until the app drops what it left
// behind. The error is of type Refused if it is not.
func (r *Runner) Undo(ctx context.Context, appID string) (Status, error) {
	app, err := r.config.App(ctx, appID)
	if err != nil {
		return Status{}, err
	}
	if !app.Moving() {
		return Status{}, refuse("App %s does not move", appID)
	}
	if app.Move.Back {
		return r.proceed(ctx, app)
	}
	if err := r.regions.known(app); err != nil {
		return Status{}, refuse("%v", err)
	}
	id := app.Move.ID
	app, err = r.config.UpdateMove(ctx, appID, func(a *config.App) error {
		if a.Move.ID != id || a.Move.Back {
			return nil // another caller was faster, or the answer was lost
		}
		return a.UndoMove()
	})
	if errors.Is(err, config.ErrNoWayBack) {
		return Status{}, refuse("%v: it is a move like any other once it has ended", err)
	}
	if err != nil {
		return Status{}, err
	}
	return r.resume(ctx, app)
}

// Resume enqueues the tasks that the move of an app waits for, in case the queue has lost
// them. A job that has failed stays as it is, for an operator to look at.
func (r *Runner) Resume(ctx context.Context, id string) error {
	app, err := r.config.App(ctx, id)
	if errors.Is(err, config.ErrNotFound) {
		return nil // it has been deleted
	}
	if err == nil && app.Moving() {
		err = r.resumeUnlessFailed(ctx, app)
	}
	if err != nil {
		return fmt.Errorf("resume the move of app %s: %w", id, err)
	}
	return nil
}

// Status returns where the move of an app is.
func (r *Runner) Status(ctx context.Context, appID string) (Status, error) {
	app, err := r.config.App(ctx, appID)
	if err != nil {
		return Status{}, err
	}
	return r.status(ctx, app)
}

func (r *Runner) status(ctx context.Context, app config.App) (Status, error) {
	s := Status{Region: cmp.Or(app.Region, r.regions.First), Move: app.Move,
		Waits: max(0, app.PlacedAt().Add(r.Propagation).Sub(r.Clock()))}
	if app.Move.Job == "" {
		return s, nil
	}
	j, err := r.Find(ctx, app.ID, app.Move.Job)
	if errors.Is(err, job.ErrNotFound) {
		return s, nil
	}
	s.Job = &j
	return s, err
}

// proceed is resume for an operator, who learns what prevents it.
func (r *Runner) proceed(ctx context.Context, app config.App) (Status, error) {
	if err := r.regions.known(app); err != nil {
		return Status{}, refuse("%v", err)
	}
	return r.resume(ctx, app)
}

// resume starts the job of the phase of a move, or resumes it. A job that has failed is
// followed by another one.
func (r *Runner) resume(ctx context.Context, app config.App) (Status, error) {
	if !app.Moving() {
		return r.status(ctx, app)
	}
	s, err := r.status(ctx, app)
	if err != nil {
		return s, err
	}
	if app.Move.Job == "" || s.Job != nil && s.Job.State.Ended() && s.Job.State != job.Done {
		was, id := app.Move, job.NewID(string(app.Move.Phase), r.Now())
		app, err = r.config.UpdateMove(ctx, app.ID, func(a *config.App) error {
			if a.Move == was {
				a.Move.Job = id
			}
			return nil // or another caller was faster
		})
		if err != nil || !app.Moving() {
			return s, err
		}
	}
	if _, err := r.Runner.Start(ctx, draft(app), 0); err != nil {
		return s, err
	}
	return r.status(ctx, app)
}

// draft returns the job of an app's phase.
func draft(app config.App) job.Job {
	m := app.Move
	p := Params{Move: m.ID, Phase: m.Phase, Region: m.From, Back: m.Back}
	switch m.Phase {
	case config.MoveMarking:
		p.Region = app.Region
	case config.MoveArriving, config.MoveClearing:
		p.Region = m.To // where users have moved away from
	case config.MoveUsers, config.MoveDropping:
		// On the way back the other region may be the only one to have a row, of a user who was
		// about to leave it, or whom it has sent on and who never arrived.
		if m.Back {
			p.Also = m.To
		}
	}
	return job.Job{App: app.ID, ID: m.Job, Kind: string(m.Phase), Concurrency: concurrency, Params: p}
}
