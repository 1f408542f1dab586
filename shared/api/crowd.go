package api

// CrowdRequest is the body of POST /1/crowd, which may be empty.
type CrowdRequest struct {
	// Index is the index whose crowd statistics to build. Default: all indexes
	// of the app.
	Index string `json:"index,omitempty"`
}

// CrowdBuild is a job that builds crowd statistics: the answer of POST
// /1/crowd and POST /1/crowd/{id}/cancel.
type CrowdBuild struct {
	ID    string   `json:"id"`
	State JobState `json:"state"`
	// Indexes are those whose statistics the job builds, as of AsOf.
	Indexes []string `json:"indexes"`
	AsOf    Time     `json:"asOf"`
	// Sampled says that the job reads a sample of the users, because the app has
	// too many events.
	Sampled bool   `json:"sampled"`
	Shards  Shards `json:"shards"`
	// Users counts users with events that count for an object, and Events the
	// events that the strategy scores, of all users.
	Users  int64 `json:"users"`
	Events int64 `json:"events"`
	// WithUnknownObjects counts events that name an object that the catalog does
	// not know.
	WithUnknownObjects int64 `json:"withUnknownObjects"`
	StartedAt          Time  `json:"startedAt"`
	// FinishedAt is null until the job has ended.
	FinishedAt *Time `json:"finishedAt"`
	Place
	// Trigger is why the job was started: manual, nightly or import.
	Trigger string `json:"trigger"`
	// PlannedUsers is about how many users the job will visit, VisitedUsers how
	// many it has visited.
	PlannedUsers int64 `json:"plannedUsers"`
	VisitedUsers int64 `json:"visitedUsers"`
	// Faulty counts users and rows of the log that could not be read. The statistics
	// lack them. Faults names the first, at most MaxFaults, with the reason; only GET
	// /1/crowd with a key that holds the permission admin has it.
	Faulty int64    `json:"faulty,omitempty"`
	Faults []string `json:"faults,omitempty"`
	// Error says why the job failed or was superseded; absent otherwise.
	Error string `json:"error,omitempty"`
}

// Crowd is the answer of GET /1/crowd.
type Crowd struct {
	// Indexes are those that have objects, of which statistics can be built, in order.
	Indexes []string `json:"indexes"`
	// Generations are the statistics that rankings use, one for each index that
	// has any, with State done, and those that unfinished jobs build. They are
	// by index, and those of an index by AsOf.
	Generations []CrowdGeneration `json:"generations"`
	// Builds are the latest jobs, the newest first, at most MaxCrowdBuilds.
	Builds []CrowdBuild `json:"builds"`
}

// CrowdGeneration describes the statistics of an index as of an instant.
type CrowdGeneration struct {
	Index string `json:"index"`
	AsOf  Time   `json:"asOf"`
	// Events and Users are those that count for an object of the index. While a
	// job builds the statistics they are those of all its indexes so far.
	Events int64 `json:"events"`
	Users  int64 `json:"users"`
	// Sampled says that the statistics come from a sample of the users.
	Sampled bool     `json:"sampled"`
	State   JobState `json:"state"`
}

// MaxCrowdBuilds is how many builds GET /1/crowd lists.
const MaxCrowdBuilds = 10
