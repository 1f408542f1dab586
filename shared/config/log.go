package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/schema"
)

// Move is the last move of an app's log from one schema to the other. The zero
// Move says that there was none.
type Move struct {
	ID       string // unique, and never that of another move
	From, To schema.Name
	Phase    Phase
	// Job is the job that does the work of the phase; empty where none does.
	Job string
	// Backfill is the last backfill that the move began; empty before. Rate is how
	// many rows a second it copies at most, 0 for no limit.
	Backfill string
	Rate     int
	// Undone says that the last change was that of a cutover undone.
	Undone bool
	// StartedAt is by the engine's clock, to the microsecond.
	StartedAt time.Time
}

// Phase is how far a move is.
type Phase string

// The phases of a move. Both schemas are written from Dual on; what was written
// before is copied while Backfilling and compared while Verifying; reads change
// sides with CutOver. Dropping ends the schema that was left, RollingBack the
// one that was moved to.
const (
	Dual        Phase = "dual"
	Backfilling Phase = "backfill"
	Verifying   Phase = "verify"
	CutOver     Phase = "cutover"
	Dropping    Phase = "drop"
	RollingBack Phase = "rollback"
)

// checkLog refuses a layout under which events could not be written or found.
func checkLog(l schema.Layout) error {
	if err := l.Validate(); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// copied is a layout that shares no memory with l.
func copied(l schema.Layout) schema.Layout {
	l.Write = slices.Clone(l.Write)
	return l
}

// withLog returns what the app becomes by a change of its log, if it may, and
// whether that is another than it was. Of what change did only Log and Move are
// taken.
func (a App) withLog(change func(*App) error) (App, bool, error) {
	draft := a
	draft.Log = copied(a.Log) // change may work in place, and fail then
	if err := change(&draft); err != nil {
		return App{}, false, err
	}
	if err := checkLog(draft.Log); err != nil {
		return App{}, false, err
	}
	to := a
	to.Log, to.Move = copied(draft.Log), draft.Move.prepared()
	to.Log.Generation = a.Log.Generation
	if !sameSchemas(a.Log, to.Log) {
		to.Log.Generation++
		to.ChangedAt = stamp(time.Time{})
	}
	return to, !to.Log.Equal(a.Log) || to.Move != a.Move, nil
}

// sameSchemas tells whether two layouts differ in their encoding at most, which
// is told apart when a value is read and so in force whenever it arrives.
func sameSchemas(a, b schema.Layout) bool {
	b.Encoding = a.Encoding
	return a.Equal(b)
}

// prepared returns a move as it is stored.
func (m Move) prepared() Move {
	if m != (Move{}) {
		m.StartedAt = stamp(m.StartedAt)
	}
	return m
}
