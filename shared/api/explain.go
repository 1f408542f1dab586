package api

// ExplainQuery are the query parameters of GET /1/explain/{userToken}.
type ExplainQuery struct {
	// Facet and Value name a score to explain. Both or neither.
	Facet, Value string
	// Limit is how many contributions to list one by one: the latest. 0 stands
	// for DefaultContributions. A limit above MaxContributions is lowered to
	// that.
	Limit int
}

// Explanation says why a profile is as it is, or empty: the answer of
// GET /1/explain/{userToken}. It is computed from the log alone. A user without
// events in the log has one too.
type Explanation struct {
	UserToken string `json:"userToken"`
	// AsOf is the instant to which the scores have decayed.
	AsOf Time `json:"asOf"`
	// Known is whether any event is within the retention: whether there is a
	// profile.
	Known bool `json:"known"`
	// StrategyVersion is the version that is explained; 0 if none has been set.
	StrategyVersion int64 `json:"strategyVersion"`
	// RetentionDays is how long an event counts; 0 is without limit.
	RetentionDays int `json:"retentionDays"`
	// DeletedUntil is the time up to which no event counts, as the deletion answered;
	// absent if the user
	// was not deleted.
	DeletedUntil *Time `json:"deletedUntil,omitempty"`
	// Events counts the events in the log by why they count or do not.
	Events ExplainedEvents `json:"events"`
	// FirstEventAt and LastEventAt are the times of the first and the last
	// event in the log; null if there is none.
	FirstEventAt *Time `json:"firstEventAt"`
	LastEventAt  *Time `json:"lastEventAt"`
	// Reasons are sentences for a person. There is at least one.
	Reasons []string `json:"reasons"`
	// ScoreExplanation explains the score that the query names. Its fields are
	// absent if the query names none.
	*ScoreExplanation
}

// ExplainedEvents counts the events of a user in the log. Each accepted event
// is in the first of Deleted, OutsideWindow, Ahead, NotInStrategy,
// WithoutFilters, Ignored and Counted that holds, so these seven add up to Accepted.
type ExplainedEvents struct {
	// Accepted: in the log of the user, or in that of an anonymous token and counting for the user.
	Accepted int `json:"accepted"`
	// Deleted: before the user was deleted, and not yet removed from the log.
	Deleted int `json:"deleted"`
	// OutsideWindow: older than the retention.
	OutsideWindow int `json:"outsideWindow"`
	// Ahead: ahead of now, by the clock of the instance that received it.
	Ahead int `json:"ahead"`
	// NotInStrategy: of a type and name that the strategy does not score, or
	// only with facets that it does not score.
	NotInStrategy int `json:"notInStrategy"`
	// WithoutFilters: of a type and name that scores, and without filters.
	WithoutFilters int `json:"withoutFilters"`
	// Ignored: of a type and name that scores, with facets that score, but with no value
	// that scores: the strategy ignores the values or does not allow them.
	Ignored int `json:"ignored"`
	// Counted: adds to the profile.
	Counted int `json:"counted"`

	// WithUnknownObjects: of the last four, those that named objects which the
	// catalog did not know when the event came.
	WithUnknownObjects int `json:"withUnknownObjects"`
}

// ScoreExplanation explains one score of a profile.
type ScoreExplanation struct {
	Facet string `json:"facet"`
	Value string `json:"value"`
	// Score is the sum of the contributions, added in their order, to the last
	// bit.
	Score float64 `json:"score"`
	// Scores are the same by half-life in days; absent if the strategy has
	// none.
	Scores map[string]float64 `json:"scores,omitempty"`
	// Contributions are what the events add, the earliest first. If there are
	// more than the limit, the first entry adds up the earlier ones.
	Contributions []Contribution `json:"contributions"`
}

// Contribution is what one event adds to a score, or what several earlier
// events add. Exactly one of ContributedEvent and EarlierEvents is set.
type Contribution struct {
	*EarlierEvents
	*ContributedEvent
	// Contribution is what is added to Score.
	Contribution float64 `json:"contribution"`
	// Contributions are the same by half-life in days; absent if the strategy
	// has none.
	Contributions map[string]float64 `json:"contributions,omitempty"`
}

// EarlierEvents are the events that the limit excludes from the list.
type EarlierEvents struct {
	Events int  `json:"events"` // 1 or more
	From   Time `json:"from"`   // of the first
	To     Time `json:"to"`     // of the last
}

// ContributedEvent is an event that adds to a score.
type ContributedEvent struct {
	// UserToken is the anonymous token of the event, if its events count for the user who is explained; absent for
	// an event of the user's own token.
	UserToken string `json:"userToken,omitempty"`
	// Purposes are those for which the facet of the event counts; absent if the app has none.
	Purposes  []string `json:"purposes,omitempty"`
	Time      Time     `json:"time"`
	Type      string   `json:"type"`
	Name      string   `json:"name"`
	Index     string   `json:"index"`
	ObjectIDs []string `json:"objectIDs,omitempty"`
	QueryID   string   `json:"queryID,omitempty"`
	// Values are the values of the event's objects that an alias of the
	// strategy counts as the value.
	Values     []string `json:"values,omitempty"`
	EventScore int      `json:"eventScore"` // points of the event's type and name
	FacetScore int      `json:"facetScore"` // weight of the facet
	Weight     int      `json:"weight"`     // EventScore times FacetScore
	Count      int      `json:"count"`      // objects of the event that have the value
	AgeDays    float64  `json:"ageDays"`
	// Decay is the factor by which the first half-life has reduced the
	// contribution after AgeDays; 1 without half-lives.
	Decay float64 `json:"decay"`
}
