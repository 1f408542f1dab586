package api

// JobState is how far a job is.
type JobState string

// A job is planning until its users are divided into shards, and running until
// all shards have ended. The other states are final.
const (
	JobPlanning   JobState = "planning"
	JobRunning    JobState = "running"
	JobDone       JobState = "done"
	JobFailed     JobState = "failed"     // Error says why
	JobSuperseded JobState = "superseded" // a newer job or strategy took its place
	JobCancelled  JobState = "cancelled"
)

// Ended reports whether the state is final.
func (s JobState) Ended() bool { return s != JobPlanning && s != JobRunning }

// Shards counts the parts of a job, each a range of users.
type Shards struct {
	Total  int `json:"total"` // 0 until the job is planned
	Done   int `json:"done"`
	Failed int `json:"failed"`
}

// The triggers of a recompute.
const (
	TriggerStrategy = "strategy" // a new strategy
	TriggerManual   = "manual"   // POST /1/recomputes
	TriggerNightly  = "nightly"
	TriggerImport   = "import" // the end of an import
)

// RecomputeRequest is the body of POST /1/recomputes, which may be empty. A new
// recompute supersedes one under way.
type RecomputeRequest struct {
	// OnlyStale skips profiles that can be served as they are. Default: false.
	OnlyStale bool `json:"onlyStale"`
	// Fold packs the history of every user, as the nightly round does for those with
	// many events. Default: false.
	Fold bool `json:"fold,omitempty"`
	// Full computes every profile and maintains the users' histories, as a scheduled
	// full recompute does. Not together with OnlyStale. Default: false.
	Full bool `json:"full,omitempty"`
	// UserToken computes the profile of this user only, stores it and answers it: a
	// Profile instead of a Recompute. Not together with other keys.
	UserToken *string `json:"userToken,omitempty"`
}

// Recompute is a job that stores the profiles of all users again: the answer of
// POST /1/recomputes, GET /1/recomputes/{id} and POST
// /1/recomputes/{id}/cancel.
type Recompute struct {
	ID    string   `json:"id"`
	State JobState `json:"state"`
	// StrategyVersion is the version of the strategy when the job started.
	StrategyVersion int64 `json:"strategyVersion"`
	// ScoringVersion is the version at which the scores of that strategy last
	// changed. Absent if that is StrategyVersion.
	ScoringVersion int64  `json:"scoringVersion,omitempty"`
	Shards         Shards `json:"shards"`
	// Users counts users with an event within the retention, and Events the
	// events that were read.
	Users     int64 `json:"users"`
	Events    int64 `json:"events"`
	StartedAt Time  `json:"startedAt"`
	// FinishedAt is null until the job has ended.
	FinishedAt *Time `json:"finishedAt"`

	Wait
	// Trigger is TriggerStrategy, TriggerManual, TriggerNightly or TriggerImport.
	Trigger string `json:"trigger"`
	// RetentionDays is the retention of the app when the job started; 0 is
	// without limit.
	RetentionDays int  `json:"retentionDays"`
	OnlyStale     bool `json:"onlyStale"`
	// Maintain is whether the job also maintains the users' histories.
	Maintain bool `json:"maintain"`
	// Fold is whether the job packs the history of every user, and FoldedUsers how
	// many it has packed, also without Fold: absent if none.
	Fold        bool  `json:"fold"`
	FoldedUsers int64 `json:"foldedUsers,omitempty"`
	// PlannedUsers is about how many users the job will visit, VisitedUsers how
	// many it has visited. Users may come and go while it runs.
	PlannedUsers int64 `json:"plannedUsers"`
	VisitedUsers int64 `json:"visitedUsers"`
	// StaleUsers counts users whose stored profile was out of date when the job
	// last read it.
	StaleUsers int64 `json:"staleUsers"`
	// Faulty counts users whose profiles could not be computed or stored. The job
	// goes on without them. Faults names the first, at most MaxFaults, with the reason;
	// only GET /1/recomputes/{id} lists them. Both are absent if there are none.
	Faulty int64    `json:"faulty,omitempty"`
	Faults []string `json:"faults,omitempty"`
	// Error says why the job failed; absent otherwise.
	Error string `json:"error,omitempty"`
}

// Recomputes is the answer of GET /1/recomputes: the latest recomputes, the
// newest first, at most MaxJobsListed.
type Recomputes struct {
	Recomputes []Recompute `json:"recomputes"`
}
