package segment

// Histogram counts the scores of one filter over many parts.
type Histogram struct{}

// NewHistogram returns a histogram of a term, whose Above it ignores, as of an instant
// (ms).
func NewHistogram(t Term, at int64) *Histogram { return nil }

// AddPart adds the users in a part's list of the term's filter: all bands, or the small
// list. Users in out do not count.
func (h *Histogram) AddPart(p Part, list []Cell, out *Set) error { return nil }

// AddScore adds the score of a user as of the histogram's instant, if it counts.
func (h *Histogram) AddScore(score float64) {}

// Summary is what a histogram says. Quantiles are scores of users: p10 is the lowest
// score that at least a tenth of the users do not exceed.
type Summary struct {
	Users              int
	Mean               float64
	P10, P50, P90, P99 float64
	Buckets            []HistogramBucket // ascending, without gaps
}

// HistogramBucket counts the scores from From up to, but not including, To.
type HistogramBucket struct {
	From, To float64
	Users    int
}

// Summary returns the counts of what was added.
func (h *Histogram) Summary() Summary { return Summary{} }
