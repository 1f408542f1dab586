package crowd

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Kept is how many pairs of each first object a run keeps. It exceeds Best by so
// much that the counts of the best pairs are nearly always exact when runs are
// merged.
const Kept = 400

// maxBuffered is how many pairs a Tally collects before it sorts them.
const maxBuffered = 1 << 20

// Partial holds what the users of a run, which are some users of an app, did with one object.
type Partial struct {
	ObjectID string
	Events   int64   // that count for the object
	Count    float64 // decayed
	Pairs    []Pair  // the most frequent ones, by ObjectID
	// Dropped is the highest count of the pairs that Pairs leaves out.
	Dropped int64
}

// Tally adds up what a Counter counts. Pairs lie in a sorted list with one
// entry of 16 bytes for each different pair, and in a buffer. It is not safe for
// concurrent use.
type Tally struct {
	asOf     int64
	halfLife float64

	events []int64 // by object
	counts []float64

	buffer []uint64 // first object << 32 + second
	keys   []uint64 // different pairs, sorted
	ns     []int64  // how often each occurs

	spareKeys []uint64
	spareNs   []int64
}

var _ Sink = &Tally{}

// NewTally returns an empty tally. asOf (ms) and halfLife (ms, math.Inf(1) for
// none) are those of Index.
func NewTally(asOf int64, halfLife float64) *Tally { return &Tally{asOf: asOf, halfLife: halfLife} }

// Event counts an event of an object.
func (t *Tally) Event(object uint32, time int64) {
	if n := int(object) + 1 - len(t.events); n > 0 {
		t.events = append(t.events, make([]int64, n)...)
		t.counts = append(t.counts, make([]float64, n)...)
	}
	t.events[object]++
	t.counts[object] += math.Exp2(-float64(t.asOf-time) / t.halfLife)
}

// Pair counts an occurrence of a pair. Both objects must have an event, as those
// that a Counter counts have.
func (t *Tally) Pair(first, second uint32) {
	t.buffer = append(t.buffer, uint64(first)<<32|uint64(second))
	if len(t.buffer) == maxBuffered {
		t.compact()
	}
}

// Different returns the number of entries of the sorted list. The caller bounds
// the memory of a tally by it, and by Buffered.
func (t *Tally) Different() int { return len(t.keys) }

// Buffered returns the number of pairs that the buffer has room for. An entry
// takes 8 bytes.
func (t *Tally) Buffered() int { return cap(t.buffer) }

// Release adds the buffer to the sorted list and gives up its memory and that of
// the space to merge.
func (t *Tally) Release() {
	t.compact()
	t.buffer, t.spareKeys, t.spareNs = nil, nil, nil
}

// compact adds the buffer to the sorted list.
func (t *Tally) compact() {
	if len(t.buffer) == 0 {
		return
	}
	slices.Sort(t.buffer)
	keys, ns := t.spareKeys[:0], t.spareNs[:0]
	i := 0
	for start := 0; start < len(t.buffer); {
		key, end := t.buffer[start], start+1
		for end < len(t.buffer) && t.buffer[end] == key {
			end++
		}
		from := i
		for i < len(t.keys) && t.keys[i] < key {
			i++
		}
		keys, ns = append(keys, t.keys[from:i]...), append(ns, t.ns[from:i]...)
		n := int64(end - start)
		if i < len(t.keys) && t.keys[i] == key {
			n += t.ns[i]
			i++
		}
		keys, ns = append(keys, key), append(ns, n)
		start = end
	}
	keys, ns = append(keys, t.keys[i:]...), append(ns, t.ns[i:]...)
	t.spareKeys, t.spareNs = t.keys, t.ns
	t.keys, t.ns, t.buffer = keys, ns, t.buffer[:0]
}

// Cut returns what the tally has counted and empties it. name returns the
// objectID of a number. Each object keeps its kept most frequent pairs, those of
// one count by objectID.
func (t *Tally) Cut(kept int, name func(object uint32) string) []Partial {
	t.compact()
	var ids []string // by number
	var objects []uint32
	starts := make([]int, len(t.events)+1) // by number: where its pairs begin in keys
	for o, events := range t.events {
		ids = append(ids, "")
		if events > 0 { // an object without events has no pairs
			ids[o] = name(uint32(o))
			objects = append(objects, uint32(o))
		}
		at := starts[o]
		for at < len(t.keys) && t.keys[at]>>32 == uint64(o) {
			at++
		}
		starts[o+1] = at
	}
	slices.SortFunc(objects, func(a, b uint32) int { return strings.Compare(ids[a], ids[b]) })
	places := make([]uint32, len(t.events)) // by number: the place of its objectID among all
	for place, o := range objects {
		places[o] = uint32(place)
	}
	parts := make([]Partial, len(objects))
	for i, o := range objects {
		parts[i] = Partial{ObjectID: ids[o], Events: t.events[o], Count: t.counts[o]}
		t.best(&parts[i], starts[o], starts[o+1], kept, ids, places)
	}
	// Of many tallies each may have been the largest once.
	*t = Tally{asOf: t.asOf, halfLife: t.halfLife}
	return parts
}

// best sets the pairs of an object to the most frequent ones of keys[start:end].
// ids and places are by number.
func (t *Tally) best(p *Partial, start, end, kept int, ids []string, places []uint32) {
	order := make([]int, 0, end-start)
	for i := start; i < end; i++ {
		order = append(order, i)
	}
	byID := func(i, j int) int { return cmp.Compare(places[uint32(t.keys[i])], places[uint32(t.keys[j])]) }
	if len(order) > kept {
		slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(t.ns[j], t.ns[i]), byID(i, j)) })
		p.Dropped = t.ns[order[kept]]
		order = order[:kept]
	}
	slices.SortFunc(order, byID)
	p.Pairs = make([]Pair, len(order))
	for i, j := range order {
		p.Pairs[i] = Pair{ids[uint32(t.keys[j])], t.ns[j]}
	}
}

// Merge adds up what several runs say of one object. It returns the decayed
// count too.
//
// The true count of a pair is at least the sum of its counts in the runs that
// list it, and exceeds that sum by at most the sum of Dropped of the other runs.
func Merge(runs []Partial) (count float64, o Object) {
	type sum struct {
		count  int64
		listed int64 // Dropped of the runs that list the pair
	}
	var dropped int64
	sums := map[string]sum{}
	for _, r := range runs {
		count += r.Count
		o.Events += r.Events
		dropped += r.Dropped
		for _, p := range r.Pairs {
			s := sums[p.ObjectID]
			sums[p.ObjectID] = sum{s.count + p.Count, s.listed + r.Dropped}
		}
	}
	all := make([]Pair, 0, len(sums))
	for id, s := range sums {
		all = append(all, Pair{id, s.count})
	}
	slices.SortFunc(all, byCount)
	o.Pairs = slices.Clone(all[:min(len(all), Best)])
	if dropped == 0 {
		return count, o
	}
	// A pair that no run lists may occur dropped times. Others are compared with
	// the last place of the list, and one may tie with it.
	var last int64
	if len(o.Pairs) == Best {
		last = o.Pairs[Best-1].Count
	}
	o.Bound = max(0, dropped-last)
	if dropped == last {
		o.Bound = 1
	}
	for i, p := range all {
		missed := dropped - sums[p.ObjectID].listed
		switch {
		case missed == 0:
		case i < Best:
			o.Bound = max(o.Bound, missed)
		case p.Count+missed >= last:
			o.Bound = max(o.Bound, p.Count+missed-last, 1)
		}
	}
	return count, o
}
