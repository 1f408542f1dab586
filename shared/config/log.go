package config

import (
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
