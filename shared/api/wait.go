package api

// Place is the place of an unfinished job in its queue.
type Place struct {
	// JobsBefore is how many unfinished jobs are before the job: those of all apps
	// that share its queue, of every kind, whose first task was due earlier. A job that
	// is asked for later never raises it. Jobs run side by side, some shards of each at
	// a time, so a job with others before it may be at work. Absent until the first
	// task is due, as that of a nightly job, and once the job has ended.
	JobsBefore *int `json:"jobsBefore,omitempty"`
}

// Wait says how long an unfinished job may take, if users are all of its work.
type Wait struct {
	Place
	// EstimatedEndAt is when the job will have visited the planned users, at the rate
	// that it has had since it began to run. Absent while no rate is known, and once
	// the job has ended.
	EstimatedEndAt *Time `json:"estimatedEndAt,omitempty"`
}
