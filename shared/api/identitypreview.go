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
	// Orders says for how many users of a sample the links change the order of objects. Absent without a strategy, and
	// without objects in the catalog.
	Orders *LinkPreviewOrders `json:"orders,omitempty"`
}

// MaxLinkPreviewUsers is how many users LinkPreviewOrders compares at most.
const MaxLinkPreviewUsers = 200

// LinkPreviewOrders counts users of a sample for whom the same objects come in another order by the events of all their
// tokens than by their own events alone. POST /1/rank orders them so under the active strategy for users without a
// session, in an index without statistics.
type LinkPreviewOrders struct {
	// Users is how many users were compared: at random, of those who would be linked and have events that count. Users
	// with very many events are left out.
	Users int `json:"users"`
	// Index has the objects, Objects is their number.
	Index   string `json:"index"`
	Objects int    `json:"objects"`
	// TopChanged counts those with another first object, TopTenChanged with others or another order within the first
	// ten, and Changed at any place.
	TopChanged    int `json:"topChanged"`
	TopTenChanged int `json:"topTenChanged"`
	Changed       int `json:"changed"`
}

// IdentityPreviews is the answer of GET /1/identities/preview: the latest, the newest first, at most
// MaxJobsListed.
type IdentityPreviews struct {
	Previews []IdentityPreview `json:"previews"`
}
