package api

import (
	"encoding/json"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// What POST /1/rank does with candidates that the user's events name. Events
// that the strategy does not score do not count.
const (
	SeenKeep    = "keep"    // ranks them as the others
	SeenDemote  = "demote"  // takes a quarter of the impact from their score
	SeenExclude = "exclude" // leaves them out of the answer
)

// FieldRelevancy is the only field of a RankItem: the caller's own score of the
// candidate, such as the text score of a search engine.
const FieldRelevancy = "relevancy"

// The fallbacks of a user without events: the order is by popularity, or, without crowd
// statistics or their weight, by what the request and the catalog alone say. A user who is held out gets the
// same order, and FallbackHoldout.
const (
	FallbackPopularity = "popularity"
	FallbackCatalog    = "catalog"
	FallbackHoldout    = "holdout"
)

// RankRequest is the body of POST /1/rank. It gives the candidates as ObjectIDs
// or as Items, not both. A candidate that is named twice is ranked once, and
// its first mention counts.
type RankRequest struct {
	// ID names the request, in 32 hex digits. Events may send it back as their
	// queryID. If it is empty, the engine makes one.
	ID        string `json:"id,omitempty"`
	UserToken string `json:"userToken"`
	Index     string `json:"index"`
	// ObjectIDs are up to MaxCandidates candidates without a relevancy.
	ObjectIDs []string `json:"objectIDs,omitempty"`
	// Items are up to MaxCandidates candidates, each with its relevancy.
	Items []RankItem `json:"items,omitempty"`
	// Exclude are up to MaxExcluded objects that the answer does not have.
	Exclude []string `json:"exclude,omitempty"`
	// Limit is how many items to answer, from the top. 0 stands for all.
	Limit int `json:"limit,omitempty"`
	// Impact is the personalization impact of this request, 0 to 100; nil
	// stands for that of the strategy. Without a relevancy it is always 100.
	Impact *int `json:"impact,omitempty"`
	// HalfLife is one of the strategy's; absent, its first.
	HalfLife strategy.HalfLife `json:"halfLife,omitzero"`
	// Explain asks for the features of each item.
	Explain bool `json:"explain,omitempty"`
	// Seen is SeenKeep, SeenDemote or SeenExclude. Empty stands for SeenKeep.
	Seen string `json:"seen,omitempty"`
	// Diversity makes the items differ from each other; nil: they need not.
	Diversity *strategy.Diversity `json:"diversity,omitempty"`
	// Strategy ranks by another version of the strategy. 0 stands for the
	// active one.
	Strategy int64 `json:"strategy,omitempty"`
	// Draft ranks by a strategy that is not stored, in the form that POST /1/strategies/personalization
	// takes. Empty: Strategy counts.
	Draft json.RawMessage `json:"draft,omitempty"`
}

// RankItem is a candidate with fields that the caller knows.
type RankItem struct {
	ID     string      `json:"id"`
	Fields []RankField `json:"fields,omitempty"`
}

// RankField is a number that the caller gives a candidate.
type RankField struct {
	Name  string  `json:"name"` // FieldRelevancy
	Value float64 `json:"value"`
}

// RankAnswer is the answer of POST /1/rank.
type RankAnswer struct {
	ID string `json:"id"`
	// Took is the time in the engine, in whole milliseconds.
	Took int64 `json:"took"`
	// StrategyVersion is 0 if the request brings a draft.
	StrategyVersion int64 `json:"strategyVersion"`
	// ScoringVersion is the version at which the scoring of events last
	// changed; absent if it equals StrategyVersion, or if the request names a
	// version.
	ScoringVersion int64 `json:"scoringVersion,omitempty"`
	// CrowdAsOf is the instant of the index's statistics, from which popularity
	// and pairs come; null if the index has none.
	CrowdAsOf *Time `json:"crowdAsOf"`
	// Fallback is FallbackPopularity or FallbackCatalog if the user has no event that
	// counts, FallbackHoldout if they are held out, and null otherwise.
	Fallback *string `json:"fallback"`
	// Person is true if the order is that of the user who has signed in under the userToken.
	Person bool `json:"person,omitempty"`
	// Experiment is the arm that the user is in; nil: none.
	Experiment *InArm `json:"experiment,omitempty"`
	// Items are the candidates, the highest score first. Equal scores keep the
	// order of their objectIDs.
	Items []RankedItem `json:"items"`
}

// RankOrder is the answer of POST /1/rank to a key that stands in web pages: the
// order and nothing about why.
type RankOrder struct {
	ID    string        `json:"id"`
	Items []OrderedItem `json:"items"` // the best first
}

// OrderedItem is a candidate at its place.
type OrderedItem struct {
	ObjectID string `json:"objectID"`
}

// RankedItem is a candidate with its score.
type RankedItem struct {
	ObjectID string `json:"objectID"`
	// Score is the sum of the features' values.
	Score float64 `json:"score"`
	// Features say what the score is made of. Absent unless the request asks
	// to explain.
	Features []RankFeature `json:"features,omitzero"`
}

// RankFeature is a term of a score, with its weight in it.
type RankFeature struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Parts are what the value is made of, the largest first: filters, objects of
	// the user's last events, or for diversity the similar object before the item.
	Parts []RankPart `json:"parts,omitempty"`
}

// RankPart is a part of a feature's value.
type RankPart struct {
	Name  string  `json:"name"` // such as brand:Apple
	Value float64 `json:"value"`
}
