package api

// Backtest says how high strategies and baselines would have ranked what users
// turned to next.
type Backtest struct {
	Cases      int  `json:"cases"`      // instants that were judged
	Candidates int  `json:"candidates"` // objects of the index
	Cut        Time `json:"cut"`        // cases are at or after it, crowd statistics from before it
	At         int  `json:"at"`         // the length of the top lists
	// Results are those of the baselines, then two for each strategy: plain:NAME
	// is its order by affinities alone, NAME that of its own ranking.
	Results []BacktestResult `json:"results"`
	// Within is the same judgement with fewer candidates, if the request named a
	// facet.
	Within *BacktestWithin `json:"within,omitempty"`
}

// BacktestWithin judges orders of those objects that share a value of a facet
// with the objects of the judged instant.
type BacktestWithin struct {
	Facet   string           `json:"facet"`
	Cases   int              `json:"cases"`
	Results []BacktestResult `json:"results"`
}

// BacktestResult is how well one order did: means over all cases.
type BacktestResult struct {
	Name     string  `json:"name"`
	NDCG     float64 `json:"ndcg"`     // of the top list
	HitRate  float64 `json:"hitRate"`  // share of cases with a relevant object in the top list
	MRR      float64 `json:"mrr"`      // mean reciprocal rank of the first relevant object
	Coverage float64 `json:"coverage"` // share of the index's objects in at least one top list
	// NDCGLow and NDCGHigh are the 95 % interval of NDCG.
	NDCGLow  float64 `json:"ndcgLow"`
	NDCGHigh float64 `json:"ndcgHigh"`
}
