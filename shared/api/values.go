package api

// Limits of GET /1/values.
const (
	DefaultValues = 100  // values unless limit says otherwise
	MaxValues     = 1000 // values
	// MaxValuesSample is the maximum number of users whose events are counted.
	MaxValuesSample = 1000
)

// Values is the answer of GET /1/values: the values of a facet that most users have.
type Values struct {
	Facet string `json:"facet"`
	// Values are by users, the most first.
	Values []Value `json:"values"`
	// Total is how many different values of the facet users have.
	Total int `json:"total"`
	// AsOf is when they were counted: at the end of the last build of the lists.
	AsOf Time `json:"asOf"`
	// Sample is the users whose events were counted. Without a sample it is nil.
	Sample *ValuesSample `json:"sample,omitzero"`
}

// Value is a value of a facet with the number of users who score it above 0.
type Value struct {
	Value string    `json:"value"`
	Users UserCount `json:"users"`
	// Events is how many events that score have the value, each counted once for each
	// of its objects that has it. It is nil without a sample, if too few users of the
	// sample have the value, and if Users is a bound.
	Events *int64 `json:"events,omitzero"`
}

// ValuesSample is a sample of users.
type ValuesSample struct {
	Users int `json:"users"`
	// All says that these are all users of the app. The events are then exact, and
	// otherwise estimated.
	All bool `json:"all"`
}
