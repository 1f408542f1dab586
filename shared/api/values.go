package api

// Limits of GET /1/values.
const (
	DefaultValues = 100  // values unless limit says otherwise
	MaxValues     = 1000 // values
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
}

// Value is a value of a facet with the number of users who score it above 0.
type Value struct {
	Value string    `json:"value"`
	Users UserCount `json:"users"`
}
