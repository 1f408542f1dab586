// Package segment finds the users of an app whose profiles meet a condition, such
// as color:Red above 500 under a half-life of 30 days, without reading all profiles.
//
// A condition is about scores as of one instant T, those that GET of a profile would
// show: a user's score of a filter under a half-life must be above a number. A score
// of Least or less counts as none. Holds judges one profile, and Reference all of
// them as the definition reads; the answer from postings equals that of Reference.
//
// Postings say who holds a filter. Under one half-life all scores of all users shrink
// by the same factor, so a score has a place among all others, its Order, that stays
// the same until the user's profile changes. A Packer takes profiles and writes, for
// each filter, the list of the users who hold it with their orders, cut into bands of
// a quarter of an octave, the highest first: a reader fetches the bands that can lie
// above a threshold and no others.
//
// A part is what one Packer wrote: lists over some users, whom it numbers (ordinals)
// in the order of their tokens. A base part covers a range of users. A delta holds
// scattered users whose profiles have changed, and sets them out of older parts. The
// Manifest names the parts that count. Users who have changed since their part was
// cut, or whose profile has expired (Until), are set out too, and Holds judges their
// profiles. Scan evaluates a condition over one part.
//
// The package does no I/O. Package store keeps parts in the table segments; the
// stored forms are in codec.go.
package segment

// The bounds of a condition.
const (
	maxFilters = 8 // in one condition
	maxDepth   = 4 // a filter is one level, each and, or, not around it another
)

// Least is the score that counts as none, like every lower one. Numbers near the
// smallest that a float64 holds have few digits, so that no two ways to compute them
// agree.
const Least = 1e-250

// The bounds of a part.
const (
	MaxUsers      = 1 << 16   // an ordinal takes two bytes
	MaxAffinities = 3_000_000 // some 90 MB while it is packed with three half-lives
)
