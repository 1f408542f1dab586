package api

import "github.com/affinityengine/affinity/shared/score/strategy"

// BoostQuery are the query parameters of GET /1/boosts.
type BoostQuery struct {
	// Engine is the search engine that the query is for, such as "elasticsearch".
	// An unknown one is refused with the list of them.
	Engine string
	// Mode is one of the engine's forms of a query. "" is its default.
	Mode string
	// Impact is the personalization impact, 0 to 100. nil is that of the strategy.
	Impact *int
	// Limit is how many affinities the query has at most, 1 to MaxBoostAffinities.
	// 0 stands for DefaultBoostAffinities.
	Limit int
	// HalfLife scores by this half-life, one of the strategy's. The zero value is
	// its first.
	HalfLife strategy.HalfLife
	// Fields are the facets of the query, without commas. nil stands for all.
	Fields []string
	// FieldMap gives facets the name of their field in the engine, where it is
	// another one. A facet has neither comma nor colon, a field no comma.
	FieldMap map[string]string
	// Consistency is "eventual" or "strong". "" is the app's default.
	Consistency string
}

// Boost is the answer of GET /1/boosts: a user's profile as a part of the request
// to a search engine. Query is empty if the user has no profile.
type Boost struct {
	UserToken string `json:"userToken"`
	// Person is true if the affinities are those of the user who has signed in under the userToken.
	Person bool `json:"person,omitempty"`
	// Holdout is true if the user is held out, so that the query is empty. Absent otherwise.
	Holdout bool `json:"holdout,omitempty"`
	// Experiment is the arm that the user is in; nil: none.
	Experiment *InArm `json:"experiment,omitempty"`
	Engine     string `json:"engine"`
	Mode       string `json:"mode"`
	// StrategyVersion is that of the active strategy, or of the arm.
	StrategyVersion int64 `json:"strategyVersion"`
	// AsOf is the instant of the scores.
	AsOf   Time `json:"asOf"`
	Impact int  `json:"impact"`
	// Affinities are those of the query, the strongest first.
	Affinities []BoostAffinity `json:"affinities"`
	// Query is what the caller merges into the request to the engine.
	Query map[string]any `json:"query"`
	// Dropped are affinities that the query leaves out, the strongest first.
	Dropped []DroppedAffinity `json:"dropped"`
}

// BoostAffinity is an affinity of a query.
type BoostAffinity struct {
	Facet string `json:"facet"`
	Value string `json:"value"`
	// Weight is the score divided by the sum, over the facets of the query, of the
	// score of the facet's strongest affinity: above 0, at most 1.
	Weight float64 `json:"weight"`
}

// DroppedAffinity is an affinity that a query leaves out.
type DroppedAffinity struct {
	Facet  string `json:"facet"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}
