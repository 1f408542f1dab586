package api

import (
	"encoding/json"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Limits of POST /1/recommend.
const (
	DefaultRecommended  = 20        // items of an answer unless limit says otherwise
	MaxRecommended      = 1000      // items of an answer
	MaxRecommendObjects = 50        // objects for which others are recommended
	MaxExcluded         = 1000      // objects that an answer must not have
	MaxRecommendBody    = 512 << 10 // bytes
)

// The models of POST /1/recommend.
const (
	RecommendRelated  = "related"  // what goes with some objects
	RecommendTogether = "together" // what stands in baskets with some objects
	RecommendNext     = "next"     // what users turn to after some objects
	RecommendTrending = "trending" // what has more events than before
	RecommendForYou   = "for-you"  // what suits a user
)

// RecommendRequest is the body of POST /1/recommend.
type RecommendRequest struct {
	// ID names the request, in 32 hex digits. Events may send it back as their
	// queryID. If it is empty, the engine makes one.
	ID    string `json:"id,omitempty"`
	Model string `json:"model"`
	Index string `json:"index"`
	// ObjectIDs are the objects for which related, together and next recommend others, 1 to
	// MaxRecommendObjects. The answer does not have them.
	ObjectIDs []string `json:"objectIDs,omitempty"`
	// UserToken is the user in whose order the objects are; empty: a guest.
	UserToken string `json:"userToken,omitempty"`
	// Where is a condition on objects, as a text such as "brand:Nike AND price < 50" or as
	// an object with and, or, not and filter. Empty: all objects of the index.
	Where json.RawMessage `json:"where,omitempty"`
	// Exclude are up to MaxExcluded objects that the answer does not have.
	Exclude []string `json:"exclude,omitempty"`
	// Limit is how many items to answer, at most MaxRecommended. 0 stands for
	// DefaultRecommended.
	Limit int `json:"limit,omitempty"`
	// The others are as in RankRequest.
	Impact    *int                `json:"impact,omitempty"`
	HalfLife  strategy.HalfLife   `json:"halfLife,omitzero"`
	Explain   bool                `json:"explain,omitempty"`
	Seen      string              `json:"seen,omitempty"`
	Diversity *strategy.Diversity `json:"diversity,omitempty"`
	Strategy  int64               `json:"strategy,omitempty"`
	Draft     json.RawMessage     `json:"draft,omitempty"`
}

// RecommendAnswer is the answer of POST /1/recommend. A key that stands in web pages gets a
// RankOrder. The fields are those of RankAnswer.
type RecommendAnswer struct {
	ID              string  `json:"id"`
	Took            int64   `json:"took"`
	Model           string  `json:"model"`
	StrategyVersion int64   `json:"strategyVersion"`
	ScoringVersion  int64   `json:"scoringVersion,omitempty"`
	CrowdAsOf       *Time   `json:"crowdAsOf"`
	Fallback        *string `json:"fallback"`
	Person          bool    `json:"person,omitempty"`
	Experiment      *InArm  `json:"experiment,omitempty"`
	// Given are the given objects that the statistics know, if the request asks to explain. Another
	// one brings in nothing.
	Given []GivenObject `json:"given,omitzero"`
	// Items are what the model brings in, the highest score first, and then the popular
	// objects that fill up the answer, the highest score of these first.
	Items []RecommendedItem `json:"items"`
}

// GivenObject is an object for which others are recommended.
type GivenObject struct {
	ObjectID string `json:"objectID"`
	// Events is how many events the statistics count for it, at any age.
	Events int64 `json:"events"`
}

// RecommendedItem is a recommended object.
type RecommendedItem struct {
	ObjectID string `json:"objectID"`
	// Source is what brought the object in: sequence, neighbours, pairs or bought, the crowd's
	// links from the given objects or from those that the user has seen; likes, it has many
	// events among the objects of a filter that the user likes; trending; new; popular; or
	// catalog, an object of the index that fills up the answer where those with events are too
	// few.
	Source   string        `json:"source"`
	Score    float64       `json:"score"`
	Features []RankFeature `json:"features,omitzero"`
}
