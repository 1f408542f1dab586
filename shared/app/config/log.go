package config

import (
	"time"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// Migration is the last migration of an app's log from one schema to the other. It
// is zero if there was none.
type Migration struct {
	ID       string // unique, and never used again
	From, To schema.Name
	Phase    Phase
	// Job is the id of the job that does the work of the phase; empty if none does.
	Job string
	// Backfill is the id of the last backfill; empty before the first one. Rate is
	// the most rows that it copies in a second; 0 means no limit.
	Backfill string
	Rate     int
	// Undone reports that the last step undid a cutover.
	Undone bool
	// StartedAt is by the engine's clock, to the microsecond.
	StartedAt time.Time
}

// Phase is the state of a migration.
type Phase string

// The phases of a migration. From Dual on, writers write both schemas. Older rows
// are copied in Backfilling and compared in Verifying. With CutOver, readers read
// the new schema. Dropping deletes the old schema, RollingBack the new one.
const (
	Dual        Phase = "dual"
	Backfilling Phase = "backfill"
	Verifying   Phase = "verify"
	CutOver     Phase = "cutover"
	Dropping    Phase = "drop"
	RollingBack Phase = "rollback"
)
