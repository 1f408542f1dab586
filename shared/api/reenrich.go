package api

// ReenrichRequest is the body of POST /1/reenrich, which may be empty. If a
// re-enrichment is under way, the answer is that one.
type ReenrichRequest struct {
	// DryRun counts and changes nothing. Default: false.
	DryRun bool `json:"dryRun"`
	// NumericBands also gives the events of all indexes with numeric bands the current
	// ones, if their filters are of others. A change of bands does so by itself; events
	// that were imported with their filters may have others. Default: false.
	NumericBands bool `json:"numericBands,omitzero"`
}

// Reenrichment is a job that gives events the filters of objects that the
// catalog did not know when the events came: the answer of POST /1/reenrich,
// GET /1/reenrich/{id} and POST /1/reenrich/{id}/cancel.
type Reenrichment struct {
	ID     string   `json:"id"`
	State  JobState `json:"state"`
	DryRun bool     `json:"dryRun"`
	// NumericBands are the indexes whose numeric bands the job gives to events, with the
	// version of their settings. Only a job of bands has them; its Resolved and
	// StillUnknown also count events with filters of earlier bands, which are
	// StillUnknown if the catalog has lost an object.
	NumericBands map[string]int64 `json:"numericBands,omitzero"`
	Shards       Shards           `json:"shards"`
	// Users counts users with events within the retention, and Events these
	// events.
	Users  int64 `json:"users"`
	Events int64 `json:"events"`
	// WithUnknownObjects counts events that named unknown objects. Each is
	// Resolved if the catalog now knows more of its objects, else StillUnknown.
	WithUnknownObjects int64 `json:"withUnknownObjects"`
	Resolved           int64 `json:"resolved"`
	StillUnknown       int64 `json:"stillUnknown"`
	// Faulty counts rows that could not be read and were left out.
	Faulty int64 `json:"faulty"`
	// Faults are the keys of some faulty rows, at most MaxFaults. Only
	// GET /1/reenrich/{id} names them.
	Faults    []string `json:"faults,omitempty"`
	StartedAt Time     `json:"startedAt"`
	// FinishedAt is null until the job has ended.
	FinishedAt *Time `json:"finishedAt"`

	Wait
	// RetentionDays is the retention of the app when the job started; 0 is
	// without limit.
	RetentionDays int `json:"retentionDays"`
	// PlannedUsers is about how many users the job will visit, VisitedUsers how
	// many it has visited.
	PlannedUsers int64 `json:"plannedUsers"`
	VisitedUsers int64 `json:"visitedUsers"`
	// Error says why the job failed; absent otherwise.
	Error string `json:"error,omitempty"`
}

// Reenrichments is the answer of GET /1/reenrich: the latest, the newest first,
// at most MaxJobsListed.
type Reenrichments struct {
	Reenrichments []Reenrichment `json:"reenrichments"`
}
