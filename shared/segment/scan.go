package segment

// Set is a set of ordinals of one part. The zero value is empty. nil is an empty set
// that takes none.
type Set struct{ words []uint64 }

// Add adds an ordinal.
func (s *Set) Add(ordinal uint16) {}

// Has reports whether an ordinal is in the set.
func (s *Set) Has(ordinal uint16) bool { return false }

// Len returns the number of ordinals.
func (s *Set) Len() int { return 0 }

// Input is one part for Scan.
type Input struct {
	Part Part
	// Lists are the cells of the list of each term in the part, as they are stored: the
	// small one, or the bands under the term's half-life from Threshold on (for the First
	// term of a Whole query, all of them). No cells: nobody in the part holds the filter.
	// For a part with Buckets they are what Lists found.
	Lists [][]Cell
	// Out are the users of the part who do not count.
	Out *Set
	// After, of a page after the first: only users with a lower Order than After.Order
	// are found, and of those with the same the ones from ordinal AfterOrdinal on.
	After        *Cursor
	AfterOrdinal int
}

// Hit is a user of a part who belongs to the segment.
type Hit struct {
	Order   Order // under the half-life of the First term; NoOrder if its score counts as none
	Ordinal uint16
}

// Found is what Scan finds in a part.
type Found struct {
	// Total counts the users who certainly belong to the segment, wherever the page begins.
	Total int
	// Hits are the first of them, by Order descending, then ordinal.
	Hits []Hit
	// Edge are users who lie so close to a threshold that only their profiles can
	// tell. They are not in Total or Hits.
	Edge []uint16
}

// Scan evaluates a query over one part as of an instant (ms). It returns at most limit
// hits. An error means that a list is damaged.
func (q *Query) Scan(in Input, at int64, limit int) (Found, error) { return Found{}, nil }

// Lists returns the cells of the lists of terms in the cell of a bucket, by term.
func Lists(bucket []byte, terms []Term) ([][]Cell, error) { return nil, nil }

// BucketOf returns the bucket that holds the list of a filter in a part with buckets.
func BucketOf(facet, value string, buckets int) int { return 0 }

// SmallColumn is the column of a list of few users. It holds all half-lives.
const SmallColumn = "l"

// BandColumns returns the range of columns, without its end, of the bands under a
// half-life (an index) that can hold Orders from a threshold on, in a part of an
// instant (ms).
func BandColumns(halfLife int, d Decay, threshold Order, instant int64) (from, end string) {
	return "", ""
}
