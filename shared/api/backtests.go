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
	// first one says which events define the cases. With Tune: at most one, none
	// for the active strategy.
	Strategies []json.RawMessage `json:"strategies,omitempty"`
	Protocol   string            `json:"protocol,omitempty"` // "last", the default, or "rolling"
	At         int               `json:"at,omitempty"`       // length of the top list, default 10
	// Within is a facet: judge also among objects that share a value of it. Empty:
	// the facet that looks like the category. "none": judge among all objects alone.
	Within string `json:"within,omitempty"`
	Sample int    `json:"sample,omitempty"` // the most cases; default and maximum 20,000 without All
	// All judges all cases, and reads a sample of the users only beyond 20 million
	// events instead of 4 million.
	All bool `json:"all,omitempty"`
	// Tune asks for a search that begins with the strategy. Nil: judge the
	// strategies as they are.
	Tune *TuneRequest `json:"tune,omitempty"`
}

// TuneRequest says how to search.
type TuneRequest struct {
	// Trials is the most strategies to judge: 1 to 300, 0 for 64.
	Trials int `json:"trials,omitempty"`
}

// Backtests is the answer of GET /1/backtests: the latest backtests, the newest
// first, at most MaxJobsListed.
type Backtests struct {
	Backtests []BacktestSummary `json:"backtests"`
}

// BacktestSummary is a backtest without its report: an entry of GET /1/backtests,
// and the answer of POST /1/backtests/{id}/cancel.
type BacktestSummary struct {
	ID    string   `json:"id"`
	State JobState `json:"state"`
	// Users and Events count what was read so far, PlannedUsers the users of the
	// app.
	Users        int64 `json:"users"`
	PlannedUsers int64 `json:"plannedUsers"`
	Events       int64 `json:"events"`
	StartedAt    Time  `json:"startedAt"`
	// FinishedAt is null until the job has ended.
	FinishedAt *Time `json:"finishedAt"`
	Place
	// Faulty counts users and rows of the log that could not be read. The judgement
	// lacks them. Faults names the first, at most MaxFaults, with the reason; only GET
	// /1/backtests/{id} has it.
	Faulty int64    `json:"faulty,omitempty"`
	Faults []string `json:"faults,omitempty"`
	// Error is why the job failed.
	Error string `json:"error,omitempty"`
	// Search is how far the search of a tuning is; nil without one.
	Search *TuneSearch `json:"search,omitempty"`
}

// BacktestJob is a backtest of the log of an app: the answer of POST
// /1/backtests and GET /1/backtests/{id}.
type BacktestJob struct {
	BacktestSummary
	// Sampled reports that the job has read a sample of the users.
	Sampled bool `json:"sampled"`
	// Tune is what the search found, once the job is done.
	Tune *Tuning `json:"tune,omitempty"`
	// Backtest is the report once the job is done. Its keys stand beside the
	// others. The report of a tuning is that of the untouched slice.
	*Backtest
}

// TuneSearch is how far a search is.
type TuneSearch struct {
	Trials int `json:"trials"` // strategies judged so far
	Most   int `json:"most"`   // and the most that will be
	// Strategy is the one that the search began with. It and the fields below are
	// absent until the search has ended.
	Strategy *Strategy `json:"strategy,omitempty"`
	Cases    int       `json:"cases,omitempty"` // that the search saw
	// Gain is that of tuned over given, on the cases that decide (see
	// Tuning.Within).
	Gain *BacktestGain `json:"gain,omitempty"`
}

// BacktestGain compares the nDCG of two results on the same cases. The bounds
// are those of paired 95 % intervals.
type BacktestGain struct {
	Name       string  `json:"name"` // the result
	Over       string  `json:"over"` // what it is compared with
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	// Ratio and its bounds are 0 if the other result is 0 everywhere.
	Ratio     float64 `json:"ratio"`
	RatioLow  float64 `json:"ratioLow"`
	RatioHigh float64 `json:"ratioHigh"`
}

// Tuning is what a search found: results on cases that it has not seen.
type Tuning struct {
	// Within is the facet whose value the candidates shared, in the search and in
	// all that follows but Lifts. Absent: all objects of the index.
	Within string `json:"within,omitempty"`
	// Lifts are those of the tuned order if it is recommended, else of the given
	// one, the smaller first.
	Lifts []BacktestLift `json:"lifts"`
	Plain BacktestResult `json:"plain"` // the order by affinities alone
	Given BacktestResult `json:"given"`
	Tuned BacktestResult `json:"tuned"`
	// GainLow and GainHigh are the paired 95 % interval of the gain of tuned over
	// given, in nDCG.
	GainLow  float64 `json:"gainLow"`
	GainHigh float64 `json:"gainHigh"`
	// Recommended is whether the gain is more than chance.
	Recommended bool `json:"recommended"`
	// Strategy is the tuned one.
	Strategy Strategy `json:"strategy"`
}

// Backtest says how high strategies and baselines would have ranked what users
// turned to next.
type Backtest struct {
	Cases      int  `json:"cases"`      // instants that were judged
	Candidates int  `json:"candidates"` // objects of the index
	Cut        Time `json:"cut"`        // cases are at or after it, crowd statistics from before it
	At         int  `json:"at"`         // the length of the top lists
	// Within is the same judgement with the candidates that a page of a category
	// shows; nil if no facet looks like one and none was named.
	Within *BacktestWithin `json:"within,omitempty"`
	// Results are those of the baselines, then two for each strategy: plain:NAME
	// is its order by affinities alone, NAME that of its own ranking.
	Results []BacktestResult `json:"results"`
	// Gains are those of all other results over the best list that everybody sees
	// (see BacktestLift).
	Gains []BacktestGain `json:"gains"`
}

// BacktestWithin judges orders of those objects that share a value of a facet
// with the objects of the judged instant.
type BacktestWithin struct {
	Facet string `json:"facet"`
	// StandIn says that the facet is no category: bands of prices stand in for one.
	StandIn bool             `json:"standIn,omitempty"`
	Cases   int              `json:"cases"`
	Results []BacktestResult `json:"results"`
	Gains   []BacktestGain   `json:"gains"`
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
	// HalfLife is the one of popularity-recent that was chosen: 1d, 7d, 30d or none.
	HalfLife string `json:"halfLife,omitempty"`
}
