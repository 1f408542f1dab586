package api

import (
	"encoding/json"
	"errors"
	"strconv"
)

// Limits of segments.
const (
	MaxSegmentConditions = 8        // filters of a condition
	MaxSegmentDepth      = 4        // levels of a condition; a filter alone has one
	MaxSegmentBody       = 64 << 10 // bytes of the body of a query or of a saved segment
	DefaultSegmentUsers  = 100      // users of a page unless limit says otherwise
	MaxSegmentUsers      = 1000     // users of a page
	MinSegmentUsers      = 20       // fewer are counted exactly for keys with the permission admin alone
)

// SegmentCondition is a condition on a profile. It has exactly one of And, Or, Not
// and Filter.
type SegmentCondition struct {
	And []SegmentCondition `json:"and,omitempty"` // all hold
	Or  []SegmentCondition `json:"or,omitempty"`  // at least one holds
	Not *SegmentCondition  `json:"not,omitempty"` // it does not hold
	// Filter has the form facet:value. It holds if the user's score of it is above
	// Above under HalfLife, one of the strategy's. Absent: its first.
	Filter   string   `json:"filter,omitempty"`
	HalfLife HalfLife `json:"halfLife,omitzero"`
	Above    float64  `json:"above,omitempty"`
}

// SegmentQuery is the body of POST /1/segments/query.
type SegmentQuery struct {
	Where SegmentCondition `json:"where"`
	// Limit is the number of users of a page, at most MaxSegmentUsers. 0: the answer
	// only counts them. Absent: DefaultSegmentUsers.
	Limit *int `json:"limit,omitempty"`
	// Cursor is that of the page before. It belongs to the same Where.
	Cursor string `json:"cursor,omitempty"`
}

// UserCount is a number of users. In JSON it is the number or, for a key without the
// permission admin and a number below MinSegmentUsers, the text "fewer than 20".
type UserCount struct {
	N     int64
	Fewer bool // N is hidden and 0
}

const fewer = "fewer than 20"

// String returns the number, or fewer than 20.
func (c UserCount) String() string {
	if c.Fewer {
		return fewer
	}
	return strconv.FormatInt(c.N, 10)
}

// MarshalJSON encodes the number or the text.
func (c UserCount) MarshalJSON() ([]byte, error) {
	if c.Fewer {
		return json.Marshal(fewer)
	}
	return json.Marshal(c.N)
}

// UnmarshalJSON decodes a number or the text.
func (c *UserCount) UnmarshalJSON(b []byte) error {
	if string(b) == strconv.Quote(fewer) {
		*c = UserCount{Fewer: true}
		return nil
	}
	*c = UserCount{}
	if json.Unmarshal(b, &c.N) != nil {
		return errors.New(`a number of users must be a number or "` + fewer + `"`)
	}
	return nil
}

// SegmentPage is the answer of POST /1/segments/query.
type SegmentPage struct {
	// Total is how many users meet the condition at AsOf, on all pages.
	Total UserCount `json:"total"`
	AsOf  Time      `json:"asOf"`
	// Users are by Score descending, then by token.
	Users []SegmentUser `json:"users"`
	// Cursor asks for the next page. Absent: this is the last one.
	Cursor string `json:"cursor,omitempty"`
}

// SegmentUser is a user who meets a condition.
type SegmentUser struct {
	UserToken string `json:"userToken"`
	// Score is that of the first filter of the condition, under its half-life. 0: the
	// user meets the condition by other filters.
	Score float64 `json:"score"`
}

// SegmentHistogram is the answer of GET /1/segments/histogram: how the scores of a
// value are distributed over its holders, the users who score it above 0.
type SegmentHistogram struct {
	Users UserCount `json:"users"`
	// Mean, Quantiles and Buckets are absent if Users hides the number, or is 0.
	Mean      float64           `json:"mean,omitempty"`
	Quantiles *SegmentQuantiles `json:"quantiles,omitempty"`
	Buckets   []SegmentBucket   `json:"buckets,omitempty"` // by From
	AsOf      Time              `json:"asOf"`
}

// SegmentQuantiles are scores that a share of the holders does not exceed.
type SegmentQuantiles struct {
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// SegmentBucket counts the holders with a score in [From, To).
type SegmentBucket struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	Users int64   `json:"users"`
}

// SegmentRequest is the body of PUT /1/segments/{name}.
type SegmentRequest struct {
	Where SegmentCondition `json:"where"`
}

// Segment is a saved segment: the answer of PUT and GET /1/segments/{name}.
type Segment struct {
	Name  string           `json:"name"`
	Where SegmentCondition `json:"where"`
	// SetAt is when the condition was set.
	SetAt Time `json:"setAt"`
	// Sizes are how many users met the condition at the end of a build or of an update
	// of the lists, the last of each day, the oldest first. They begin with the day of
	// SetAt.
	Sizes []SegmentSize `json:"sizes"`
}

// SegmentSize is the size of a segment on a day.
type SegmentSize struct {
	Day   string    `json:"day"` // such as 2026-11-23, in UTC
	Users UserCount `json:"users"`
}

// Segments is the answer of GET /1/segments.
type Segments struct {
	Segments []Segment `json:"segments"` // by name
	// Lists describes what queries read; null until the first build is done.
	Lists *SegmentLists `json:"lists"`
	// Builds are the latest jobs that build the lists, the newest first.
	Builds []SegmentBuild `json:"builds"`
}

// SegmentLists describes the lists of users that queries read.
type SegmentLists struct {
	BuiltAt        Time  `json:"builtAt"`
	ScoringVersion int64 `json:"scoringVersion"`
	RetentionDays  int   `json:"retentionDays"`
	// Users counts the users of the last build. Parts and Updates count the files of
	// the build, and those of users who changed since.
	Users   int64 `json:"users"`
	Parts   int   `json:"parts"`
	Updates int   `json:"updates"`
}

// DeletedSegment is the answer of DELETE /1/segments/{name}.
type DeletedSegment struct {
	DeletedAt Time `json:"deletedAt"`
}

// SegmentBuild is a job that builds the lists: the answer of POST
// /1/segments/refresh.
type SegmentBuild struct {
	ID         string   `json:"id"`
	State      JobState `json:"state"`
	Shards     Shards   `json:"shards"`
	Users      int64    `json:"users"`
	StartedAt  Time     `json:"startedAt"`
	FinishedAt *Time    `json:"finishedAt"` // null until the job has ended
	Place
	// Trigger is why the job was started: manual, nightly or strategy.
	Trigger string `json:"trigger"`
	// PlannedUsers is about how many users the job will visit, VisitedUsers how many
	// it has visited.
	PlannedUsers int64 `json:"plannedUsers"`
	VisitedUsers int64 `json:"visitedUsers"`
	// Faulty counts users that could not be read. No segment has them.
	Faulty int64  `json:"faulty,omitempty"`
	Error  string `json:"error,omitempty"`
}

// SegmentExport is a job that writes the users of a segment to a file: the answer of
// POST /1/segments/{name}/export and GET /1/segments/export/{id}.
type SegmentExport struct {
	ID      string   `json:"id"`
	Segment string   `json:"segment"`
	State   JobState `json:"state"`
	// Users counts the lines of the file, as of AsOf. Both are null until the job is
	// done.
	Users *int64 `json:"users"`
	AsOf  *Time  `json:"asOf"`
	// KeptUntil is when the file goes.
	KeptUntil  *Time `json:"keptUntil"`
	StartedAt  Time  `json:"startedAt"`
	FinishedAt *Time `json:"finishedAt"`
	Place
	Error string `json:"error,omitempty"`
}
