package api

// The schemas of the log.
const (
	SchemaNarrow = "narrow"
	SchemaWide   = "wide"
)

// The steps of a migration, each a route POST /1/schema/{step}. All answer with
// [Schema]. A step that is not possible now is refused with 409, and the
// message says what comes first. A step that is requested again continues its
// work.
const (
	StepStart    = "start"    // both schemas are written
	StepBackfill = "backfill" // earlier events are copied to the new schema
	StepVerify   = "verify"   // the two schemas are compared row by row
	StepCutover  = "cutover"  // the new schema is read
	StepRollback = "rollback" // undoes the cutover; before it, abandons the migration
	StepDrop     = "drop"     // the old schema is no longer written, and is removed
)

// SchemaStartRequest is the body of POST /1/schema/start.
type SchemaStartRequest struct {
	To string `json:"to"` // the schema to migrate to; required
}

// SchemaBackfillRequest is the body of POST /1/schema/backfill, which may be
// empty.
type SchemaBackfillRequest struct {
	// Rate is how many rows a second to copy at most, up to MaxBackfillRate; 0
	// is without limit. Absent: DefaultBackfillRate.
	Rate *int `json:"rate,omitempty"`
}

// SchemaDropRequest is the body of POST /1/schema/drop.
type SchemaDropRequest struct {
	Schema string `json:"schema"` // the schema to remove; required
}

// Schema says in which schemas the log of the app is stored: the answer of
// GET /1/schema and of each step.
type Schema struct {
	// Read is the schema that is read. Written are the schemas that are
	// written.
	Read    string   `json:"read"`
	Written []string `json:"written"`
	// Encoding is how new values are written: "json" or "compact".
	Encoding string `json:"encoding"`
	// Migration is the last migration, finished or not; null if there was none.
	Migration *Migration `json:"move"`
	// SettlesInMs is how many milliseconds it takes until all instances use the
	// schemas above; 0 if all do.
	SettlesInMs int64 `json:"settlesInMs"`
	// Next are the steps that are possible now.
	Next []string `json:"next"`
}

// Migration moves the log from one schema to the other.
type Migration struct {
	ID   string `json:"id"`
	From string `json:"from"`
	To   string `json:"to"`
	// Phase is how far it is: "dual" after the start, then "backfill",
	// "verify", "cutover", "drop", or "rollback".
	Phase     string `json:"phase"`
	StartedAt Time   `json:"startedAt"`
	// Moving is false once the migration is over.
	Moving bool `json:"moving"`
	// Job does the work of the phase. It is null if the phase needs no job, or
	// if the job ended so long ago that it is no longer kept.
	Job *MigrationJob `json:"job"`
}

// MigrationJob does the work of a phase.
type MigrationJob struct {
	ID     string   `json:"id"`
	Kind   string   `json:"kind"` // "backfill", "verify" or "drop"; a rollback drops too
	State  JobState `json:"state"`
	Shards Shards   `json:"shards"`
	// Rate is how many rows a second a backfill copies at most, 0 for no limit;
	// absent from other jobs.
	Rate *int `json:"rate,omitempty"`
	// Users counts the users visited so far, of about PlannedUsers. A drop
	// counts none.
	Users        int64 `json:"users"`
	PlannedUsers int64 `json:"plannedUsers"`
	// Rows were read, and Changed of them copied, repaired or removed. Faulty
	// ones do not decode, or were not the same in both schemas.
	Rows    int64 `json:"rows"`
	Changed int64 `json:"changed"`
	Faulty  int64 `json:"faulty"`
	// Faults are the first faulty rows, at most MaxFaults, and what is wrong.
	Faults    []string `json:"faults"`
	StartedAt Time     `json:"startedAt"`
	// FinishedAt is null until the job has ended.
	FinishedAt *Time `json:"finishedAt"`
	Wait
	// Error says why the job failed; absent otherwise.
	Error string `json:"error,omitempty"`
}
