package config

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Move is the move of an app from one region to another that is under way. It is zero if
// there is none: then all users live in the region of the app, and no row says who owns
// them.
//
// While an app moves, each user has an owner of their own: the region whose row of the user
// counts. Region of the app is the entry: its row of a user is asked first, and decides
// where a new user begins.
type Move struct {
	ID       string // unique, and never used again
	From, To string // regions
	// Births is the region in which new users begin.
	Births string
	Phase  MovePhase
	// Back reports that the move undoes an earlier one, which had not dropped anything.
	Back bool
	// Job is the id of the job that does the work of the phase; empty if none does.
	Job string
	// StartedAt is by the engine's clock, to the microsecond.
	StartedAt time.Time
	// ChangedAt is when the phase began, by the clock of App.ChangedAt. Other changes of the app
	// do not change it: a phase does not wait for them.
	ChangedAt time.Time
}

// MovePhase is the state of a move.
type MovePhase string

// The phases of a move. Each begins with a wait until nobody acts on the configuration of
// the one before.
const (
	// MoveMarking gives the rows of all users an owner. A row without one counts.
	MoveMarking MovePhase = "mark"
	// MoveArriving completes the moves of users that were left halfway: before the way back
	// alone, in which users still move nowhere.
	MoveArriving MovePhase = "arrive"
	// MoveClearing removes what is left in To of users who have moved from there. MoveCleared is
	// the wait behind it.
	MoveClearing MovePhase = "clear"
	MoveCleared  MovePhase = "cleared"
	// MoveUsers moves the users. New ones begin in To.
	MoveUsers MovePhase = "users"
	// MoveSwitched makes To the region of the app. Until its end the move can be undone.
	MoveSwitched MovePhase = "switch"
	// MoveDropping deletes what From holds, but for the rows that say who has moved, and
	// MoveErasing deletes these.
	MoveDropping MovePhase = "drop"
	MoveErasing  MovePhase = "erase"
	// MoveFinishing is the wait before the end. A row without an owner counts.
	MoveFinishing MovePhase = "finish"
)

// ValidRegion reports whether a region may have that name: 1 to 40 of [a-z0-9-].
func ValidRegion(s string) bool { return regionForm.MatchString(s) }

var regionForm = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// Moving reports whether each user of the app has an owner of their own.
func (a App) Moving() bool { return a.Move.Phase != "" }

// Births returns the region in which a new user begins.
func (a App) Births() string {
	if a.Moving() {
		return a.Move.Births
	}
	return a.Region
}

// Unmarked reports whether a row that names no owner counts in the region of the app.
func (a App) Unmarked() bool {
	return !a.Moving() || a.Move.Phase == MoveMarking || a.Move.Phase == MoveFinishing
}

// Place says in which regions the rows of an app lie that belong to no user: its catalog,
// its usage and the like. They move as a whole.
type Place struct {
	// Read is the region whose rows count.
	Read string
	// Write are the regions into which what clients change is written, Read first. While an
	// app moves it may be written there already, or be written there still.
	Write []string
}

// Place returns where the rows of the app lie that belong to no user. Until the move can no
// longer be undone, those of the region count from which the app came first. What changes
// is in both, so that a process with an older configuration may use either.
func (a App) Place() Place {
	m := a.Move
	switch {
	case !a.Moving(), m.Phase == MoveMarking, m.Phase == MoveErasing, m.Phase == MoveFinishing:
		return Place{a.Region, []string{a.Region}}
	case m.Back, m.Phase == MoveDropping:
		return Place{m.To, []string{m.To, m.From}}
	}
	return Place{m.From, []string{m.From, m.To}}
}

// Errors of a move that cannot begin or be undone.
var (
	ErrMoving    = errors.New("the app is moving to another region")
	ErrMigrating = errors.New("finish that, or roll it back, first")
	ErrResidency = errors.New("each user of the app has a region")
	ErrNoWayBack = errors.New("the move cannot be undone any more")
)

// StartMove begins a move of an app to another region. id is one that was never used.
func (a *App) StartMove(id, to string, now time.Time) error {
	switch {
	case a.Moving():
		return fmt.Errorf("app %q moves from %s to %s, phase %s: %w", a.ID, a.Move.From, a.Move.To, a.Move.Phase, ErrMoving)
	case a.Residency.On():
		return fmt.Errorf("app %q: its users have regions of their own, move them: %w", a.ID, ErrResidency)
	case !ValidRegion(a.Region) || !ValidRegion(to) || a.Region == to:
		return fmt.Errorf("app %q is in region %q: it cannot move to %q", a.ID, a.Region, to)
	case len(a.Log.Write) > 1:
		return fmt.Errorf("the log of app %q migrates to another schema: %w", a.ID, ErrMigrating)
	}
	a.Move = Move{ID: id, From: a.Region, To: to, Births: a.Region, Phase: MoveMarking, StartedAt: now}
	return nil
}

// AdvanceMove ends the phase of a move, whose work is done, and begins the next one.
func (a *App) AdvanceMove() {
	m := &a.Move
	m.Job = ""
	switch m.Phase {
	case MoveArriving:
		m.Phase = MoveClearing
	case MoveClearing:
		m.Phase = MoveCleared
	case MoveMarking, MoveCleared:
		m.Phase, m.Births = MoveUsers, m.To
	case MoveUsers:
		m.Phase, a.Region = MoveSwitched, m.To
	case MoveSwitched:
		m.Phase = MoveDropping
	case MoveDropping:
		m.Phase = MoveErasing
	case MoveErasing:
		m.Phase = MoveFinishing
	default:
		*m = Move{}
	}
}

// UndoMove turns a move back, once: users go back to where they came from, and nothing is
// left of them in the region to which the app moved. It returns ErrNoWayBack from
// MoveDropping on, and for a move that goes back already.
func (a *App) UndoMove() error {
	m := &a.Move
	switch {
	case m.Back:
		return fmt.Errorf("app %q already goes back to %s: %w", a.ID, m.To, ErrNoWayBack)
	case m.Phase == MoveMarking: // nobody has moved
		m.From, m.To, m.Phase = m.To, m.From, MoveFinishing
	case m.Phase == MoveUsers || m.Phase == MoveSwitched:
		m.From, m.To, m.Phase = m.To, m.From, MoveArriving
	default:
		return fmt.Errorf("app %q, phase %q: %w", a.ID, m.Phase, ErrNoWayBack)
	}
	m.Back, m.Job = true, ""
	return nil
}

// WithMove returns the app that a change of its region or move leads to, and reports whether
// it differs from a. Only Region and Move are taken from what change does.
func (a App) WithMove(change func(*App) error) (App, bool, error) {
	draft := a
	if err := change(&draft); err != nil {
		return App{}, false, err
	}
	to := a
	to.Region, to.Move = draft.Region, draft.Move
	if to.Move != (Move{}) {
		to.Move.StartedAt = Stamp(to.Move.StartedAt)
	}
	if to.Region == a.Region && to.Move == a.Move {
		return to, false, nil
	}
	if err := to.checkMove(); err != nil {
		return App{}, false, err
	}
	if to.places() != a.places() { // Place follows from them
		to.ChangedAt = Stamp(time.Time{})
		if to.Moving() {
			to.Move.ChangedAt = to.ChangedAt
		}
	}
	return to, true, nil
}

// PlacedAt is when the last change of what Place and Births return was made.
func (a App) PlacedAt() time.Time {
	if a.Move.ChangedAt.IsZero() {
		return a.ChangedAt
	}
	return a.Move.ChangedAt
}

// places is what requests go by.
type places struct {
	region, births string
	unmarked       bool
	phase          MovePhase
}

func (a App) places() places { return places{a.Region, a.Births(), a.Unmarked(), a.Move.Phase} }

func (a App) checkMove() error {
	m := a.Move
	for _, region := range []string{a.Region, m.From, m.To, m.Births} {
		if region != "" && !ValidRegion(region) {
			return fmt.Errorf("region %q: want 1 to 40 of a-z, 0-9 and -", region)
		}
	}
	if m == (Move{}) {
		return nil
	}
	switch m.Phase {
	case MoveMarking, MoveArriving, MoveClearing, MoveCleared, MoveUsers, MoveSwitched, MoveDropping, MoveErasing,
		MoveFinishing:
	default:
		return fmt.Errorf("move of app %q: unknown phase %q", a.ID, m.Phase)
	}
	if m.ID == "" || m.From == m.To || (a.Region != m.From && a.Region != m.To) ||
		(m.Births != m.From && m.Births != m.To) {
		return fmt.Errorf("move of app %q from %q to %q: the app is in %q, and its new users in %q", a.ID, m.From,
			m.To, a.Region, m.Births)
	}
	return nil
}
