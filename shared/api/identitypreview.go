package api

// IdentityPreviewRequest is the body of POST /1/identities/preview, which may be empty.
type IdentityPreviewRequest struct {
	// Days is how many days before now are read: 1 to MaxPreviewDays, 0 for DefaultPreviewDays.
	Days int `json:"days,omitempty"`
}

// Bounds of IdentityPreviewRequest.Days.
const (
	DefaultPreviewDays = 30
	MaxPreviewDays     = 365
)

// IdentityPreview is a job that says which links the events of the last days would have made, if the app had
// linked tokens: the answer of POST /1/identities/preview, GET /1/identities/preview/{id} and POST
// /1/identities/preview/{id}/cancel. It changes nothing.
type IdentityPreview struct {
	ID    string   `json:"id"`
	State JobState `json:"state"`
	// Days is how many days before StartedAt are read, at most those of the retention.
	Days int `json:"days"`
	// Users and Events count what was read so far, PlannedUsers the users of the app.
	Users        int64 `json:"users"`
	PlannedUsers int64 `json:"plannedUsers"`
	Events       int64 `json:"events"`
	StartedAt    Time  `json:"startedAt"`
	// FinishedAt is null until the job has ended.
	FinishedAt *Time `json:"finishedAt"`
	Place
	// Faulty counts rows of the log that could not be read. Faults names the first, at most MaxFaults, with the
	// reason; only GET /1/identities/preview/{id} has it.
	Faulty int64    `json:"faulty,omitempty"`
	Faults []string `json:"faults,omitempty"`
	// Error is why the job failed.
	Error string `json:"error,omitempty"`
	// Links is what was found, once the job is done; lists have none.
	Links *LinkPreview `json:"links,omitempty"`
}

// LinkPreview counts links that were not made.
type LinkPreview struct {
	LinkCounts
	// GainedEvents counts the events of the tokens that would count for the users, so that their profiles and
	// orders change.
	GainedEvents int64 `json:"gainedEvents"`
}

// IdentityPreviews is the answer of GET /1/identities/preview: the latest, the newest first, at most
// MaxJobsListed.
type IdentityPreviews struct {
	Previews []IdentityPreview `json:"previews"`
}
