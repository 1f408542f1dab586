package api

// ImportEndRequest is the body of POST /1/imports/end, which may be empty.
type ImportEndRequest struct {
	// At is that of an earlier answer: the end of the same import. Default: the
	// import that came last.
	At *Time `json:"at,omitempty"`
}

// ImportEnd says how far the jobs are that follow an import: the answer of POST
// /1/imports/end.
type ImportEnd struct {
	// At is the time of the last request of the import. It is null if the app has
	// none, and then so are the jobs.
	At *Time `json:"at"`
	// Recompute folds the histories of all users. Crowd builds the crowd statistics
	// of all indexes; it is null if the app has no objects.
	Recompute *Recompute  `json:"recompute"`
	Crowd     *CrowdBuild `json:"crowd"`
	// Waiting says that one of them is a job that began before the end of the import.
	// Send the request again once it has ended.
	Waiting bool `json:"waiting"`
}

// Ended reports whether both jobs have ended.
func (e ImportEnd) Ended() bool {
	return !e.Waiting && (e.Recompute == nil || e.Recompute.State.Ended()) && (e.Crowd == nil || e.Crowd.State.Ended())
}
