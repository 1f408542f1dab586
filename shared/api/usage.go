package api

// Limits of GET /1/usage, in days.
const (
	// DefaultUsageDays is how many days the answer covers if the request does not
	// say from when: up to and including its last day.
	DefaultUsageDays = 30
	// MaxUsageDays is how many days the engine keeps counts, and an answer covers
	// at most.
	MaxUsageDays = 400
)

// Usage is the answer of GET /1/usage: what an app used, by day.
type Usage struct {
	// From and To are the first and the last day, as 2026-11-22, in UTC.
	From string `json:"from"`
	To   string `json:"to"`
	// Days are all days from From to To, those without use too, in order.
	Days []UsageDay `json:"days"`
	// Total adds up Days.
	Total UsageCounts `json:"total"`
	// DeadLetters is how many messages of accepted events the engine could not apply. They
	// wait for the operator, and their events do not count. At most 10,000.
	DeadLetters int `json:"deadLetters"`
}

// UsageDay is what an app used in a day.
type UsageDay struct {
	Day           string `json:"day"`
	Events        int64  `json:"events"`
	RefusedEvents int64  `json:"refusedEvents"`
	RefusedLinks  int64  `json:"refusedLinks"`
	Reads         int64  `json:"reads"`
	Rows          int64  `json:"rows"`
	Bytes         int64  `json:"bytes"`
}

// UsageCounts are what an app used. Counts are some seconds old.
type UsageCounts struct {
	// Events are accepted events, those of imports and repeated ones too.
	Events int64 `json:"events"`
	// RefusedEvents are requests of events that were refused for what they contain,
	// each once however many events it had, and refused lines of imports.
	RefusedEvents int64 `json:"refusedEvents"`
	// RefusedLinks are accepted events that asked for a link between their two tokens and got none. An event that
	// is delivered again to the engine counts again.
	RefusedLinks int64 `json:"refusedLinks"`
	// Reads are users whose profile a request asked for: each user of a batch, and
	// one of a ranking or an explanation.
	Reads int64 `json:"reads"`
	// Rows are rows of Bigtable that the engine wrote or was sent for the app, by
	// requests and by jobs; Bytes are the keys, columns and values of these rows.
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}
