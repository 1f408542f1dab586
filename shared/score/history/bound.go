package history

import (
	"encoding/binary"
	"math/bits"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// maxBound is the number of dictionaries for which a Reader keeps what it looks up.
// Most blocks have the newest or the one before.
const maxBound = 4

// bound is what a Reader looks up in a dictionary for its strategy, by ids.
type bound struct {
	*Dictionary
	points []float64 // by kind: its event score
	facets []boundFacet
}

type boundFacet struct {
	index  int // in the strategy; -1: the facet does not score
	values []span
	// places are those of the values in the scorer. A reader makes them when it has
	// looked up as many values: before that they cost more than they save.
	places  []affinity.Place
	lookups int
}

// bind prepares the reader for the dictionary of a block.
func (r *Reader) bind(f *frame) error {
	if !f.bound {
		r.bound = nil
		return nil
	}
	for _, b := range r.boundAll {
		if b.generation == f.generation && b.sum() == f.sum {
			if b != r.bound {
				r.bound, r.points = b, nil
			}
			return nil
		}
	}
	d, err := f.dictionary(r.dictionaries)
	if err != nil {
		return err
	}
	if len(r.boundAll) == maxBound {
		r.boundAll = r.boundAll[:0]
	}
	r.bound, r.points = newBound(d, r.c), nil
	r.boundAll = append(r.boundAll, r.bound)
	return nil
}

func newBound(d *Dictionary, c *affinity.Compiled) *bound {
	b := &bound{Dictionary: d, points: make([]float64, len(d.kinds)), facets: make([]boundFacet, len(d.facets))}
	for i, k := range d.kinds {
		b.points[i] = c.Points(d.text(k.typ), d.text(k.name))
	}
	for i := range d.facets {
		f := &b.facets[i]
		*f = boundFacet{index: -1, values: d.facets[i].values}
		if index, ok := c.Facet(d.text(d.facets[i].name)); ok {
			f.index = index
		}
	}
	return b
}

// use counts the lookup of values.
func (f *boundFacet) use(n int) {
	if f.places == nil {
		if f.lookups += n; f.lookups > len(f.values) {
			f.places = make([]affinity.Place, len(f.values))
		}
	}
}

// add adds the totals to a value, by its id.
func (r *Reader) add(f *boundFacet, id int, sc *affinity.Scorer) {
	v := f.values[id]
	if f.places == nil {
		sc.AddTotals(f.index, r.bound.stored, int(v.start), int(v.end), r.totals)
		return
	}
	sc.AddTotalsAt(&f.places[id], f.index, r.bound.stored, int(v.start), int(v.end), r.totals)
}

// groups scores a section of a block.
func (r *Reader) groups(s *section, sc *affinity.Scorer) bool {
	if s.id < 0 {
		facet, ok := r.c.Facet(s.name)
		return !ok || r.eachGroup(&s.body, &boundFacet{index: facet}, sc)
	}
	if r.bound == nil || s.id >= len(r.bound.facets) {
		return false
	}
	facet := &r.bound.facets[s.id]
	return facet.index < 0 || r.eachGroup(&s.body, facet, sc)
}

func (r *Reader) eachGroup(c *cursor, f *boundFacet, sc *affinity.Scorer) bool {
	b, p, first := c.B, c.Next, -1
	for p < len(b) {
		head, n, next, ok := readHead(b, p)
		if !ok {
			return false
		}
		scores := false
		if p, scores, ok = r.groupTotals(b, next, head); !ok {
			return false
		}
		if head>>groupShift == 0 {
			p, ok = r.texts(b, p, n, f.index, scores, sc)
		} else {
			p, ok = r.ids(b, p, n, &first, head>>groupShift, f, scores, sc)
		}
		if !ok {
			return false
		}
	}
	return true
}

// texts adds the totals to the values of a group that are texts, unless no event of
// theirs scores.
func (r *Reader) texts(b []byte, p, n, facet int, scores bool, sc *affinity.Scorer) (next int, ok bool) {
	for range n {
		size, start := uvarint(b, p)
		if start > len(b) || size > uint64(len(b)-start) {
			return 0, false
		}
		if p = start + int(size); scores {
			sc.AddTotals(facet, b, start, p, r.totals)
		}
	}
	return p, true
}

// ids adds the totals to the values of a group that are ids, unless no event of
// theirs scores.
func (r *Reader) ids(b []byte, p, n int, first *int, distance uint64, f *boundFacet, scores bool,
	sc *affinity.Scorer) (next int, ok bool) {
	known := uint64(len(f.values))
	if distance > known || uint64(*first)+distance >= known {
		return 0, false
	}
	*first += int(distance)
	if f.use(n); scores {
		r.add(f, *first, sc)
	}
	for id := *first; n > 1; n-- {
		distance, p = uvarint(b, p)
		if p > len(b) || distance >= known || uint64(id)+distance+1 >= known {
			return 0, false
		}
		if id += int(distance) + 1; scores {
			r.add(f, id, sc)
		}
	}
	return p, true
}

// groupTotals sums the weights of the events of a group into r.totals. It reports
// whether one of them scores, if only a zero by decay.
func (r *Reader) groupTotals(b []byte, p int, head uint64) (next int, scores, ok bool) {
	if r.k == 1 && head&groupCounted == 0 {
		var total float64
		switch head & formMask {
		case formOne:
			ordinal, next := uvarint(b, p)
			if next > len(b) || ordinal >= uint64(len(r.scored)) {
				return 0, false, false
			}
			if r.scored[ordinal] == 0 {
				return next, false, true
			}
			if int(ordinal) < r.seek {
				r.noteOldest(int(ordinal))
			}
			r.totals[0] = r.weights[0][ordinal]
			return next, true, true
		case formAll:
			for _, w := range r.weights[0] {
				total += w
			}
			if r.totals[0] = total; r.firstScored < r.seek {
				r.noteOldest(r.firstScored)
			}
			return p, true, true
		case formBits:
			return r.bitsTotal(b, p)
		case formList:
			n, first := uvarint(b, p)
			if first > len(b) || n > uint64(len(b)-first) {
				return 0, false, false
			}
			next, ok = r.total(b, first, int(n))
			return next, ok && (r.totals[0] != 0 || r.anyScores(b, first, int(n))), ok
		}
	}
	next, ok = r.postings.read(b, p, head, len(r.scored))
	if !ok {
		return 0, false, false
	}
	return next, r.sum(), true
}

// sum sums weight x count of the postings for each score.
func (r *Reader) sum() (scores bool) {
	l := &r.postings
	for _, o := range l.ordinals {
		if r.scored[o] > 0 {
			scores = true
			if int(o) < r.seek {
				r.noteOldest(int(o))
			}
			break
		}
	}
	if !scores {
		return false
	}
	for k, weights := range r.weights {
		total := 0.0
		if len(l.counts) == 0 {
			for _, o := range l.ordinals {
				total += weights[o]
			}
		}
		for i, n := range l.counts {
			total += weights[l.ordinals[i]] * float64(n)
		}
		r.totals[k] = total
	}
	return true
}

// bitsTotal is groupTotals for events as bits, whose counts are all 1, and one score.
func (r *Reader) bitsTotal(b []byte, p int) (next int, scores, ok bool) {
	end, weights := p+(len(r.scored)+7)/8, r.weights[0]
	if end > len(b) || len(weights)&7 != 0 && b[end-1]>>(len(weights)&7) != 0 {
		return 0, false, false
	}
	total := 0.0
	for at := 0; p < end; p, at = p+8, at+64 {
		x := word(b, p, end)
		for ; x != 0; x &= x - 1 {
			o := at + bits.TrailingZeros64(x)
			total += weights[o]
			if o < r.seek && r.scored[o] > 0 {
				r.noteOldest(o)
			}
		}
	}
	r.totals[0] = total
	if total != 0 {
		return end, true, true
	}
	return end, r.anyBit(b, end), true
}

// word returns the bytes of b[p:end] as the low bytes of a word, at most 8.
func word(b []byte, p, end int) uint64 {
	if p+8 <= len(b) {
		x := binary.LittleEndian.Uint64(b[p:])
		if n := end - p; n < 8 {
			x &= 1<<(8*n) - 1
		}
		return x
	}
	x := uint64(0)
	for i := end - 1; i >= p; i-- {
		x = x<<8 | uint64(b[i])
	}
	return x
}

// anyBit reports whether one of the events of the bits that end at end scores.
func (r *Reader) anyBit(b []byte, end int) bool {
	start := end - (len(r.scored)+7)/8
	for o, points := range r.scored {
		if points > 0 && b[start+o>>3]>>(o&7)&1 != 0 {
			return true
		}
	}
	return false
}
