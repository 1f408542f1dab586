package api

import "time"

// ProfileQuery are the query parameters of GET /1/profiles/{userToken}.
type ProfileQuery struct {
	// Limit is how many affinities to list, 1 or more. 0 stands for
	// DefaultAffinities.
	Limit int
	// HalfLife orders and scores by this half-life, one of the strategy's as
	// the strategy writes it: "30", "12h". "" is the strategy's first.
	HalfLife string
	// Consistency is "eventual" or "strong". "" is the app's default.
	Consistency string
	// Segments asks for the names of the saved segments that the user belongs to.
	Segments bool
	// Surface asks for what counts for the purposes of a surface of the app, such as "rank". "" is all that is kept.
	Surface string
	// Holdout is "ignore" to ask for the affinities of users who are held out, too, which needs a key with the
	// permission admin. "": their profiles have none.
	Holdout string
	// At asks for the profile as of an instant of the past, within the retention, of the events that
	// the engine holds now. The zero value is now.
	At time.Time
	// StrategyVersion is the version of the strategy that gives the scores as of At. 0 is the
	// active one. Without At it is refused.
	StrategyVersion int64
}

// ProfilesRequest is the body of POST /1/profiles/batch.
type ProfilesRequest struct {
	// UserTokens are 1 to MaxProfiles tokens. One that is named twice is
	// answered once.
	UserTokens []string `json:"userTokens"`
	// Limit is how many affinities to list of each user, 1 or more; absent:
	// DefaultAffinities.
	Limit *int `json:"limit,omitempty"`
	// Consistency is "eventual" or "strong"; absent: the app's default.
	Consistency *string `json:"consistency,omitempty"`
	// Segments asks for the names of the saved segments that each user belongs to.
	Segments bool `json:"segments,omitempty"`
	// Surface and Holdout are as in ProfileQuery.
	Surface *string `json:"surface,omitempty"`
	Holdout string  `json:"holdout,omitempty"`
}

// Profiles is the answer of POST /1/profiles/batch. Each user of the request is
// in one of the lists, in the order of the request.
type Profiles struct {
	Profiles []Profile `json:"profiles"`
	// NotFound are users without an event within the retention.
	NotFound []string `json:"notFound"`
	// Faulty are users whose profiles cannot be read: part of what is stored of them
	// is damaged, or of a newer version. Absent if there are none.
	Faulty []string `json:"faulty,omitempty"`
}

// The sources of a profile.
const (
	SourceStored   = "stored"   // decoded as it is stored
	SourceComputed = "computed" // computed for this answer
)

// Profile is what a user likes: the answer of GET /1/profiles/{userToken}. A
// user without an event within the retention is answered with 404.
type Profile struct {
	UserToken string `json:"userToken"`
	// LastEventAt is the time of the latest event within the retention.
	LastEventAt Time `json:"lastEventAt"`
	// AsOf is the instant that scores have decayed to.
	AsOf Time `json:"asOf"`
	// HeldFrom is from when on events count of a profile as of an instant of the past. The
	// profile that was read at that instant may have counted older ones, which have left the
	// retention since. Absent of a profile as of now, and if the app's retention has no end.
	HeldFrom *Time `json:"heldFrom,omitempty"`
	// StrategyVersion is the version of the strategy that gives the scores; 0
	// if none has been set.
	StrategyVersion int64 `json:"strategyVersion"`
	// ScoringVersion is the version at which the scores of the strategy last
	// changed. Absent if that is StrategyVersion.
	ScoringVersion int64 `json:"scoringVersion,omitempty"`
	// Source is SourceStored or SourceComputed. Both give the same profile.
	Source string `json:"source"`
	// Total is how many values the user's events in the retention score, listed or
	// not.
	Total int `json:"total"`
	// Truncated is whether the profile leaves out values that score, because the user
	// has more than profiles hold: see the limits. Absent if not.
	Truncated bool `json:"truncated,omitempty"`
	// Segments are the names of the saved segments that the user belongs to at AsOf,
	// sorted. Absent unless the request asks for them.
	Segments []string `json:"segments,omitempty"`
	// Holdout is true for a user who is held out, and gets no personalization: Affinities are empty, unless the request
	// ignores that. Absent otherwise.
	Holdout bool `json:"holdout,omitempty"`
	// Experiment is the arm that the user is in; nil: none. All arms score alike.
	Experiment *InArm `json:"experiment,omitempty"`
	// Affinities are the strongest, the highest score first.
	Affinities []Affinity `json:"affinities"`
}

// Affinity is how much a user likes one value of a facet.
type Affinity struct {
	Facet string `json:"facet"`
	// Operator is between facet and value, always ":".
	Operator string `json:"operator"`
	Value    string `json:"value"`
	// Score is the score by which affinities are sorted: that of the half-life
	// in the query, or of the strategy's first, or the plain sum without
	// half-lives.
	Score float64 `json:"score"`
	// Scores are the scores by half-life, as the strategy writes it: {"7":12.5,"12h":4}.
	// Absent if the strategy has no half-lives, and in previews.
	Scores map[string]float64 `json:"scores,omitempty"`
}

// PersonalizationProfile is the answer of
// GET /1/profiles/personalization/{userToken}, in the form of Algolia's
// Personalization API.
type PersonalizationProfile struct {
	UserToken   string `json:"userToken"`
	LastEventAt Time   `json:"lastEventAt"`
	// Scores are whole numbers from 1 to 20, by facet and value. Of a user who is held out there are none.
	Scores map[string]map[string]int `json:"scores"`
}

// DeletedUser is the answer of DELETE /1/profiles/{userToken}. DELETE
// /1/usertokens/{userToken} does the same and answers 204 without a body.
type DeletedUser struct {
	UserToken string `json:"userToken"`
	// DeletedUntil is the time up to which no event of the user counts: by its time, or
	// by when it was received. It is a few seconds after the request, because clocks
	// differ.
	DeletedUntil Time `json:"deletedUntil"`
}

// UsersQuery are the query parameters of GET /1/usertokens.
type UsersQuery struct {
	// Prefix is how the tokens begin. "": all users.
	Prefix string
	// Limit is how many users a page lists, at most MaxProfiles. 0: DefaultUsers.
	Limit int
	// Cursor is that of the page before. "": the first page.
	Cursor string
}

// Users is the answer of GET /1/usertokens: users with an event within the retention, in the
// order in which they are stored.
type Users struct {
	Users []ListedUser `json:"users"`
	// Faulty are users whose profiles cannot be read, as in Profiles.
	Faulty []string `json:"faulty,omitempty"`
	// Cursor leads to the next page; absent on the last one. A page may have fewer users
	// than asked for, or none, and still a next one: deleted users count too.
	Cursor string `json:"cursor,omitempty"`
}

// ListedUser is a user of a list.
type ListedUser struct {
	UserToken string `json:"userToken"`
	// LastEventAt is the time of the newest event within the retention.
	LastEventAt Time `json:"lastEventAt"`
	// Total is how many values the user's events score.
	Total int `json:"total"`
}

// RecentUsers is the answer of GET /1/usertokens/recent: users of the sample of recent
// events, those of the newest event first.
type RecentUsers struct {
	Users []RecentUser `json:"users"`
}

// RecentUser is a user of the sample.
type RecentUser struct {
	UserToken string `json:"userToken"`
	// LastEventAt is when their newest event of the sample was received.
	LastEventAt Time `json:"lastEventAt"`
	// Events is how many events of the user are in the sample.
	Events int `json:"events"`
}
