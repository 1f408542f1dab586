package api

// LinkedPrefix begins the name of a strategy's order by the events of all tokens of the person.
const LinkedPrefix = "linked:"

// BacktestIdentity says what links between the tokens of persons are worth: the same cases are judged by the
// history of the token, and by that of the person.
type BacktestIdentity struct {
	LinkCounts
	// Changed is the number of cases in the whole catalog whose history is another one by links.
	Changed int `json:"changed"`
	// Whole is the judgement with all objects as candidates, Within that within the facet of the backtest.
	// Both are absent if no history changes.
	Whole  *BacktestLinked `json:"whole,omitempty"`
	Within *BacktestLinked `json:"within,omitempty"`
}

// BacktestLinked compares orders by tokens with orders by persons.
type BacktestLinked struct {
	All BacktestPair `json:"all"`
	// Changed is of the cases whose history is another one by links; absent if there are none.
	Changed *BacktestPair `json:"changed,omitempty"`
}

// BacktestPair is a comparison on the same cases.
type BacktestPair struct {
	Cases int `json:"cases"`
	// Results are the lists that everybody sees, then of each strategy two for plain:NAME and two for NAME: by
	// tokens, and with the prefix linked: by persons.
	Results []BacktestResult `json:"results"`
	// Gains are those of all other results over the best list that everybody sees.
	Gains []BacktestGain `json:"gains"`
	// Linked are the gains of the orders by persons over those by tokens.
	Linked []BacktestGain `json:"linked"`
}
