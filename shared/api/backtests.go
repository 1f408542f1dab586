package api

import "encoding/json"

// Limits of a backtest on the log of an app.
const (
	// MaxBacktestBody is the maximum size of a request in bytes.
	MaxBacktestBody = 500_000
	// MaxBacktestStrategies is the maximum number of strategies of a request.
	MaxBacktestStrategies = 10
)

// BacktestRequest is the body of POST /1/backtests.
type BacktestRequest struct {
	Index string `json:"index"`
	// Strategies are strategies, or numbers of versions of the app's strategy. The
	// first one says which events define the cases.
	Strategies []json.RawMessage `json:"strategies"`
	Protocol   string            `json:"protocol,omitempty"` // "last", the default, or "rolling"
	At         int               `json:"at,omitempty"`       // length of the top list, default 10
	Within     string            `json:"within,omitempty"`   // judge also among objects that share a value of this facet
	Sample     int               `json:"sample,omitempty"`   // the most cases; default and maximum 20,000 without All
	// All judges all cases, and reads a sample of the users only beyond 20 million
	// events instead of 4 million.
	All bool `json:"all,omitempty"`
}

// BacktestJob is a backtest of the log of an app: the answer of POST
// /1/backtests and GET /1/backtests/{id}.
type BacktestJob struct {
	ID    string   `json:"id"`
	State JobState `json:"state"`
	// Users and Events count what was read so far, PlannedUsers the users of the
	// app.
	Users        int64 `json:"users"`
	PlannedUsers int64 `json:"plannedUsers"`
	Events       int64 `json:"events"`
	// Sampled reports that the job has read a sample of the users.
	Sampled   bool `json:"sampled"`
	StartedAt Time `json:"startedAt"`
	// FinishedAt is null until the job has ended.
	FinishedAt *Time `json:"finishedAt"`
	// Error is why the job failed.
	Error string `json:"error,omitempty"`
	// Backtest is the report once the job is done. Its keys stand beside the
	// others.
	*Backtest
}

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
