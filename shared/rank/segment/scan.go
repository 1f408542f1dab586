package segment

import (
	"fmt"
	"math/bits"
	"sync"
)

// Set is a set of ordinals of one part. The zero value is empty, and so is nil.
type Set struct{ words []uint64 }

const setWords = MaxUsers / 64

// Add adds an ordinal. The set must not be nil.
func (s *Set) Add(ordinal uint16) {
	if s.words == nil {
		s.words = make([]uint64, setWords)
	}
	s.words[ordinal>>6] |= 1 << (ordinal & 63)
}

// Has reports whether an ordinal is in the set.
func (s *Set) Has(ordinal uint16) bool {
	return s != nil && s.words != nil && s.words[ordinal>>6]&(1<<(ordinal&63)) != 0
}

// Len returns the number of ordinals.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Input is one part for Scan.
type Input struct {
	Part Part
	// Lists are the cells of the list of each term in the part, as they are stored: the
	// small one, or the bands under the term's half-life from Query.Lists on. No cells:
	// nobody in the part holds the filter. For a part with Buckets they are what Lists
	// found.
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

// scratch is the memory of a Scan.
type scratch struct {
	sets     [][]uint64
	edge     []uint64
	ordinals []uint16
}

var scratches = sync.Pool{New: func() any { return &scratch{edge: make([]uint64, setWords)} }}

// bitmaps returns n cleared bitmaps for ordinals below users.
func (s *scratch) bitmaps(n int) [][]uint64 {
	for len(s.sets) < n {
		s.sets = append(s.sets, make([]uint64, setWords))
	}
	for _, set := range s.sets[:n] {
		clear(set)
	}
	clear(s.edge)
	return s.sets[:n]
}

// Scan evaluates a query over one part as of an instant (ms). It returns at most limit
// hits. An error means that a list is damaged.
func (q *Query) Scan(in Input, at int64, limit int) (Found, error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if len(in.Lists) != len(q.Terms) {
		return Found{}, fmt.Errorf("scan part %s: %d lists for %d filters", in.Part.ID, len(in.Lists), len(q.Terms))
	}
	sets := s.bitmaps(len(q.Terms) + 1)
	for i, t := range q.Terms {
		if err := t.mark(in.Lists[i], in.Part, at, sets[i], s); err != nil {
			return Found{}, fmt.Errorf("scan part %s for %s:%s: %w", in.Part.ID, t.Facet, t.Value, err)
		}
	}
	members := q.root.combine(sets[:len(q.Terms)])
	f := Found{}
	for i := range members {
		w := s.edge[i]
		if in.Out != nil && in.Out.words != nil {
			w &^= in.Out.words[i]
			members[i] &^= in.Out.words[i]
		}
		members[i] &^= w
		f.Total += bits.OnesCount64(members[i])
		for ; w != 0; w &= w - 1 {
			f.Edge = append(f.Edge, uint16(i<<6+bits.TrailingZeros64(w)))
		}
	}
	if f.Total == 0 || limit <= 0 {
		return f, nil
	}
	best := top{limit: limit, after: in.After, afterOrdinal: in.AfterOrdinal}
	if err := q.rank(in, at, members, sets[len(q.Terms)], &best, s); err != nil {
		return Found{}, fmt.Errorf("scan part %s: %w", in.Part.ID, err)
	}
	f.Hits = best.sorted()
	return f, nil
}

// mark sets the bits of the users whose score is above the term's number, and those of
// the users of whom only the profile can tell.
func (t Term) mark(cells []Cell, p Part, at int64, set []uint64, s *scratch) error {
	low, high := t.between(at)
	from, above := t.Decay.key(low, p.Instant), t.Decay.key(high, p.Instant)+1
	if high < low { // nobody is at the edge
		above = from
	}
	from, above = max(from, 1), max(above, 1)
	return eachBand(cells, t.HalfLife, &s.ordinals, func(b *band) bool {
		if b.high <= from {
			return false
		}
		if b.low >= above && b.width == lowBytes {
			for _, o := range b.ordinals {
				set[o>>6] |= 1 << (o & 63)
			}
			return true
		}
		for i, o := range b.ordinals {
			switch k := b.key(i); {
			case k >= above:
				set[o>>6] |= 1 << (o & 63)
			case k >= from:
				s.edge[o>>6] |= 1 << (o & 63)
			}
		}
		return true
	})
}

// combine returns the bitmap of a node. It may change those of its terms.
func (n node) combine(sets [][]uint64) []uint64 {
	switch n.op {
	case opTerm:
		return sets[n.term]
	case opNot:
		set := n.children[0].combine(sets)
		for i := range set {
			set[i] = ^set[i] // a filter that holds bounds it in the end
		}
		return set
	}
	set := n.children[0].combine(sets)
	for _, c := range n.children[1:] {
		other := c.combine(sets)
		for i := range set {
			if n.op == opAnd {
				set[i] &= other[i]
			} else {
				set[i] |= other[i]
			}
		}
	}
	return set
}

// rank passes the members to best with their Orders under the first term. seen is a
// cleared bitmap.
func (q *Query) rank(in Input, at int64, members, seen []uint64, best *top, s *scratch) error {
	t := q.Terms[q.First]
	whole, _ := t.Decay.halvings(in.Part.Instant)
	base := Order(whole) * octave
	none := t.Decay.orderOf(Least, at)
	err := eachBand(in.Lists[q.First], t.HalfLife, &s.ordinals, func(b *band) bool {
		if best.full() && b.width == lowBytes && base+Order(b.high) <= best.worst().Order {
			return false // not one of the band is before those
		}
		if low := base + Order(b.low); b.width == lowBytes && low > none && best.passed(low) {
			for _, o := range b.ordinals {
				seen[o>>6] |= 1 << (o & 63)
			}
			return true
		}
		for i, o := range b.ordinals {
			if members[o>>6]&(1<<(o&63)) == 0 {
				continue
			}
			if order := base + Order(b.key(i)); order > none {
				best.add(Hit{order, o})
				seen[o>>6] |= 1 << (o & 63)
			}
		}
		return true
	})
	if err != nil || !q.Whole || best.full() && best.worst().Order != NoOrder {
		return err
	}
	for i, w := range members {
		for w &^= seen[i]; w != 0; w &= w - 1 {
			best.add(Hit{NoOrder, uint16(i<<6 + bits.TrailingZeros64(w))})
		}
	}
	return nil
}
