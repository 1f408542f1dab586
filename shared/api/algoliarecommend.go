package api

import "encoding/json"

// Limits of recommendations in Algolia's form.
const (
	MaxAlgoliaRecommends = 20 // requests of a body
	MaxAlgoliaRecommend  = 30 // hits of a result, as many as a request without maxRecommendations has
)

// AlgoliaRecommends is the body of POST /1/recommend/1/indexes/*/recommendations.
type AlgoliaRecommends struct {
	Requests []AlgoliaRecommend `json:"requests"` // 1 to MaxAlgoliaRecommends
}

// AlgoliaRecommend asks for one list.
type AlgoliaRecommend struct {
	IndexName string `json:"indexName"`
	// Model is related-products, bought-together, trending-items, trending-facets or recommended-for-you.
	Model string `json:"model"`
	// ObjectID is the object of related-products and bought-together.
	ObjectID string `json:"objectID,omitempty"`
	// FacetName and FacetValue are a filter that items which trend have. Of trending-facets FacetName is the facet whose
	// values are answered.
	FacetName  string `json:"facetName,omitempty"`
	FacetValue string `json:"facetValue,omitempty"`
	// Threshold leaves out hits with a lower _score, 0 to 100.
	Threshold float64 `json:"threshold"`
	// MaxRecommendations is how many hits to answer; 0: MaxAlgoliaRecommend.
	MaxRecommendations int `json:"maxRecommendations,omitempty"`
	// QueryParameters are parameters of Algolia's search, of which filters, userToken and attributesToRetrieve count.
	QueryParameters map[string]json.RawMessage `json:"queryParameters,omitempty"`
	// FallbackParameters say that popular objects fill up a list that is too short. What they hold does not count.
	FallbackParameters map[string]json.RawMessage `json:"fallbackParameters,omitempty"`
}
