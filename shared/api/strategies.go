package api

import (
	"encoding/json"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Strategy says which events and facets score, and how scores decay: the answer
// of GET /1/strategies/personalization and the body of POST, which answers with
// a [Message], with warnings if parts of it have no effect. A new strategy applies
// to every read that begins 5 s later or after. A recompute updates the stored profiles.
type Strategy = strategy.Strategy

// MaxStrategyNote is the maximum number of characters of a note on a strategy.
const MaxStrategyNote = 200

// EventScore gives points to the events of one type and name.
type EventScore = strategy.EventScore

// FacetScore gives a weight to one facet.
type FacetScore = strategy.FacetScore

// ValueSet holds the only values of a facet that score.
type ValueSet = strategy.ValueSet

// HalfLife is the age at which an event counts half: days (30), a time ("12h")
// or, in a session's ranking, a number of events ("2e").
type HalfLife = strategy.HalfLife

// Ranking defines how profiles order objects. Its groups are below.
type (
	Ranking           = strategy.Ranking
	SessionRanking    = strategy.SessionRanking
	PopularityRanking = strategy.PopularityRanking
	PairsRanking      = strategy.PairsRanking
	FreshnessRanking  = strategy.FreshnessRanking
)

// StrategyVersions is the answer of GET /1/strategies/personalization/versions:
// the strategies that the app has and had, the newest first, at most 1,000. The
// engine keeps the last 200 and all of the last 90 days. GET
// /1/strategies/personalization?version=N answers one of them.
type StrategyVersions struct {
	Versions []StrategyVersion `json:"versions"`
}

// StrategyVersion names one strategy of an app.
type StrategyVersion struct {
	Version int64 `json:"version"`
	// ScoringVersion is the version at which the scores of the strategy last
	// changed. Strategies with the same one give the same profiles.
	ScoringVersion int64 `json:"scoringVersion"`
	SetAt          Time  `json:"setAt"`
	// Active reports that it is the strategy of the app now.
	Active bool `json:"active"`
	// Note says why it was set, in the words of who set it: at most MaxStrategyNote
	// characters. Absent: they gave none.
	Note string `json:"note,omitempty"`
}

// RestoreStrategyRequest is the body of POST
// /1/strategies/personalization/restore. The strategy of that version becomes the
// active one as a new version. The answer is a [Message].
type RestoreStrategyRequest struct {
	Version int64 `json:"version"`
	// IfVersion is the version that must be active, 0 if none was ever set; absent: any.
	IfVersion *int64 `json:"ifVersion,omitempty"`
}

// PreviewRequest is the body of POST /1/strategies/personalization/preview. It
// changes nothing.
type PreviewRequest struct {
	// Strategy is the [Strategy] to try, as JSON. Required.
	Strategy json.RawMessage `json:"strategy"`
	// Sample is how many users to choose at random, 1 to MaxPreviewSample;
	// absent: DefaultPreviewSample. Not together with UserTokens.
	Sample *int `json:"sample,omitempty"`
	// UserTokens are the users to compute, 1 to MaxPreviewSample.
	UserTokens []string `json:"userTokens,omitempty"`
}

// Preview says what a strategy would change.
type Preview struct {
	// Sampled counts the users whose profiles were computed, and Known those
	// who have one. A known user is Changed, if the share of a value in the sum of
	// their scores changes, or Unchanged.
	Sampled   int `json:"sampled"`
	Known     int `json:"known"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	// ChosenFrom are the users that the sample was chosen from; absent if the request
	// named the users.
	ChosenFrom *ChosenFrom `json:"chosenFrom,omitempty"`
	// StrategyVersion is the version of the active strategy; 0 if none has been
	// set.
	StrategyVersion int64 `json:"strategyVersion"`
	// Warnings are those that setting the strategy would answer with.
	Warnings []string `json:"warnings,omitempty"`
	// Values counts known users by what becomes of the order of their values.
	Values PreviewOrders `json:"values"`
	// Objects does so for objects of the catalog, and is null if it holds none.
	Objects *PreviewObjects `json:"objects"`
	// Scale is the sum of all scores under the other strategy, as a multiple of the sum
	// under the active one; null if that is 0. A ranker sees none of it. A tiny number
	// says that the events are too old for the half-life.
	Scale *float64 `json:"scale"`
	// Cost is what the preview read for the profiles under one strategy, and what a recompute
	// would take.
	Cost PreviewCost `json:"cost"`
	// RankCorrelation is null if no user is known.
	RankCorrelation *RankCorrelation `json:"rankCorrelation"`
	// Facets are the facets whose shares change, the one that changes most
	// first.
	Facets []FacetPreview `json:"facets"`
	// Examples are the five users whose order changes most.
	Examples []PreviewExample `json:"examples"`
}

// PreviewOrders counts known users whose order changes.
type PreviewOrders struct {
	Changed        int `json:"changed"`        // at any place
	TopFiveChanged int `json:"topFiveChanged"` // within the first five
	TopChanged     int `json:"topChanged"`     // at the first place
}

// PreviewObjects says for how many known users the same objects would come in another
// order. POST /1/rank orders them so for users without a session, in an index without
// statistics.
type PreviewObjects struct {
	Index    string `json:"index"`
	Compared int    `json:"compared"` // objects
	PreviewOrders
}

// PreviewCost is what a preview read and how long it took.
type PreviewCost struct {
	Events int   `json:"events"`
	Blocks int   `json:"blocks"`
	Took   int64 `json:"took"` // ms, of both computations
	// Recompute is null if no user is known.
	Recompute *RecomputeCost `json:"recompute"`
}

// RecomputeCost is what a recompute of some users takes on the worker, if they are like the
// known users of a preview: an estimate. They are all users of the app, if the sample was
// chosen from all, else a million.
type RecomputeCost struct {
	Users      int     `json:"users"`
	Events     int     `json:"events"` // of these users
	CPUSeconds float64 `json:"cpuSeconds"`
	USD        float64 `json:"usd"` // of the CPU, by the list price of Cloud Run
}

// ChosenFrom describes the users among whom a sample was chosen: each had the same
// chance.
type ChosenFrom struct {
	Users int `json:"users"` // at most 50,000
	// All is whether these are all users of the app. Otherwise they are a stretch in the
	// order of the users' tokens, from First to Last, that begins at a random place; it
	// may go on after the app's last user with the first. The users outside had no
	// chance to be chosen.
	All   bool   `json:"all"`
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
}

// RankCorrelation sums up Kendall's tau-b between the two orders of each known
// user: 1 is the same order, -1 the reverse.
type RankCorrelation struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	P10  float64 `json:"p10"` // a tenth of the users have this or less
}

// FacetPreview lists the five values of a facet whose mean shares change most.
type FacetPreview struct {
	Facet  string  `json:"facet"`
	Movers []Mover `json:"movers"`
}

// Mover is a value whose mean share over the known users changes. The share is the part
// that a value has in the sum of a user's scores, 0 to 1.
type Mover struct {
	Value       string  `json:"value"`
	ShareBefore float64 `json:"shareBefore"` // under the active strategy
	ShareAfter  float64 `json:"shareAfter"`  // under the other
	Before      float64 `json:"before"`      // mean score under the active strategy
	After       float64 `json:"after"`       // mean score under the other
	Users       int     `json:"users"`       // users for whom the share changes
}

// PreviewExample is a user whose profile would change.
type PreviewExample struct {
	UserToken       string     `json:"userToken"`
	RankCorrelation float64    `json:"rankCorrelation"` // between Before and After
	Before          []Affinity `json:"before"`          // the first ten
	After           []Affinity `json:"after"`           // the first ten
}
