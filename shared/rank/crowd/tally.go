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
	Recent   float64 // decayed by Recently
	Own      int64   // what the object counts of sets
	Links    [Kinds]Listed
}

// Listed are the most frequent links of an object.
type Listed struct {
	Pairs []Pair // by ObjectID
	// Dropped is the highest count of the links that Pairs leaves out.
	Dropped int64
}

// Tally adds up what a Counter counts. It is not safe for concurrent use.
type Tally struct {
	asOf     int64
	halfLife float64

	events []int64 // by object
	counts []float64
	recent []float64
	own    []int64

	links [Kinds]linkTally
}

// linkTally adds up links of one kind. They lie in a sorted list with one entry of 16
// bytes for each different link, in a buffer, and in a table that adds up what comes often.
type linkTally struct {
	often  []uint64 // by a hash of the link, as in buffer; 0: none
	buffer []uint64 // first object << (numberBits + countBits) + second << countBits + count
	keys   []uint64 // different links, sorted: entries of buffer without the count
	ns     []int64  // how often each occurs

	spareKeys []uint64
	spareNs   []int64
}

// The bits of numbers of objects and of counts in a buffer.
const (
	numberBits = 22
	countBits  = 20
	maxCount   = 1<<countBits - 1
	oftenBits  = 17 // of the entries of the table, which a buffer of half as many gets
)

// MaxObjects is how many objects a Tally takes.
const MaxObjects = 1 << numberBits

// firstOf and secondOf return the objects of a key.
func firstOf(key uint64) uint32  { return uint32(key >> numberBits) }
func secondOf(key uint64) uint32 { return uint32(key & (1<<numberBits - 1)) }

var _ Sink = &Tally{}

// NewTally returns an empty tally. asOf (ms) and halfLife (ms, math.Inf(1) for
// none) are those of Index.
func NewTally(asOf int64, halfLife float64) *Tally { return &Tally{asOf: asOf, halfLife: halfLife} }

// Event counts an event of an object.
func (t *Tally) Event(object uint32, time int64) {
	if n := int(object) + 1 - len(t.events); n > 0 {
		t.events = append(t.events, make([]int64, n)...)
		t.counts = append(t.counts, make([]float64, n)...)
		t.recent = append(t.recent, make([]float64, n)...)
		t.own = append(t.own, make([]int64, n)...)
	}
	t.events[object]++
	t.counts[object] += math.Exp2(-float64(t.asOf-time) / t.halfLife)
	t.recent[object] += math.Exp2(-float64(t.asOf-time) / Recently)
}

// Own counts what an object counts of a set.
func (t *Tally) Own(object, n uint32) { t.own[object] += int64(n) }

// Link counts a link n times. Both objects must have an event, as those that a Counter
// counts have.
func (t *Tally) Link(kind Kind, first, second, n uint32) {
	l := &t.links[kind]
	key := uint64(first)<<numberBits | uint64(second)
	if l.often == nil {
		if l.buffer = append(l.buffer, key<<countBits|uint64(n)); len(l.buffer) == 1<<oftenBits/2 {
			l.often = make([]uint64, 1<<oftenBits)
		}
		return
	}
	e := &l.often[key*0x9e3779b97f4a7c15>>(64-oftenBits)] // Fibonacci hashing
	if *e>>countBits == key && *e&maxCount+uint64(n) <= maxCount {
		*e += uint64(n)
		return
	}
	if *e != 0 {
		l.buffer = append(l.buffer, *e)
	}
	*e = key<<countBits | uint64(n)
	if len(l.buffer) == maxBuffered {
		l.compact()
	}
}

// Different returns the number of entries of the sorted lists. The caller bounds
// the memory of a tally by it, and by Buffered.
func (t *Tally) Different() (n int) {
	for i := range t.links {
		n += len(t.links[i].keys)
	}
	return n
}

// Buffered returns the number of links that the buffers and tables have room for. An entry
// takes 8 bytes.
func (t *Tally) Buffered() (n int) {
	for i := range t.links {
		n += cap(t.links[i].buffer) + len(t.links[i].often)
	}
	return n
}

// Release adds the buffers and tables to the sorted lists and gives up their memory and that of
// the space to merge.
func (t *Tally) Release() {
	for i := range t.links {
		l := &t.links[i]
		l.compact()
		l.often, l.buffer, l.spareKeys, l.spareNs = nil, nil, nil, nil
	}
}

// compact adds the buffer to the sorted list.
func (t *linkTally) compact() {
	for i, e := range t.often {
		if e != 0 {
			t.buffer = append(t.buffer, e)
			t.often[i] = 0
		}
	}
	if len(t.buffer) == 0 {
		return
	}
	slices.Sort(t.buffer)
	keys, ns := t.spareKeys[:0], t.spareNs[:0]
	i := 0
	for start := 0; start < len(t.buffer); {
		key, n, end := t.buffer[start]>>countBits, int64(0), start
		for ; end < len(t.buffer) && t.buffer[end]>>countBits == key; end++ {
			n += int64(t.buffer[end] & maxCount)
		}
		from := i
		for i < len(t.keys) && t.keys[i] < key {
			i++
		}
		keys, ns = append(keys, t.keys[from:i]...), append(ns, t.ns[from:i]...)
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
// objectID of a number. Each object keeps its kept most frequent links of a kind, those of
// one count by objectID.
func (t *Tally) Cut(kept int, name func(object uint32) string) []Partial {
	var ids []string // by number
	var objects []uint32
	for o, events := range t.events {
		ids = append(ids, "")
		if events > 0 { // an object without events has no links
			ids[o] = name(uint32(o))
			objects = append(objects, uint32(o))
		}
	}
	slices.SortFunc(objects, func(a, b uint32) int { return strings.Compare(ids[a], ids[b]) })
	places := make([]uint32, len(t.events)) // by number: the place of its objectID among all
	parts := make([]Partial, len(objects))
	for place, o := range objects {
		places[o] = uint32(place)
		parts[place] = Partial{ObjectID: ids[o], Events: t.events[o], Count: t.counts[o], Recent: t.recent[o],
			Own: t.own[o]}
	}
	for kind := range t.links {
		l := &t.links[kind]
		l.compact()
		for start := 0; start < len(l.keys); {
			first, end := firstOf(l.keys[start]), start+1
			for end < len(l.keys) && firstOf(l.keys[end]) == first {
				end++
			}
			parts[places[first]].Links[kind] = l.best(start, end, kept, ids, places)
			start = end
		}
	}
	// Of many tallies each may have been the largest once.
	*t = Tally{asOf: t.asOf, halfLife: t.halfLife}
	return parts
}

// best returns the most frequent links of keys[start:end]. ids and places are by number.
func (t *linkTally) best(start, end, kept int, ids []string, places []uint32) (listed Listed) {
	order := make([]int, 0, end-start)
	for i := start; i < end; i++ {
		order = append(order, i)
	}
	byID := func(i, j int) int { return cmp.Compare(places[secondOf(t.keys[i])], places[secondOf(t.keys[j])]) }
	if len(order) > kept {
		slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(t.ns[j], t.ns[i]), byID(i, j)) })
		listed.Dropped = t.ns[order[kept]]
		order = order[:kept]
	}
	slices.SortFunc(order, byID)
	listed.Pairs = make([]Pair, len(order))
	for i, j := range order {
		listed.Pairs[i] = Pair{ids[secondOf(t.keys[j])], t.ns[j]}
	}
	return listed
}

// Merge adds up what several runs say of one object. It returns the decayed and the recent
// count too. own returns what an object counts of sets in all runs.
//
// The true count of a pair is at least the sum of its counts in the runs that
// list it, and exceeds that sum by at most the sum of Dropped of the other runs.
func Merge(runs []Partial, own func(objectID string) int64) (count, recent float64, o Object) {
	for _, r := range runs {
		count += r.Count
		recent += r.Recent
		o.Events += r.Events
	}
	for kind := range o.Links {
		o.Links[kind] = o.merge(runs, Kind(kind), own)
	}
	return count, recent, o
}

// merge merges the links of one kind, and sets the bound of pairs.
func (o *Object) merge(runs []Partial, kind Kind, own func(string) int64) []Pair {
	type sum struct {
		count  int64
		listed int64 // Dropped of the runs that list the pair
	}
	var dropped int64
	sums := map[string]sum{}
	for _, r := range runs {
		l := &r.Links[kind]
		dropped += l.Dropped
		for _, p := range l.Pairs {
			s := sums[p.ObjectID]
			sums[p.ObjectID] = sum{s.count + p.Count, s.listed + l.Dropped}
		}
	}
	all := make([]Pair, 0, len(sums))
	for id, s := range sums {
		p := Pair{id, s.count}
		if kind == Together {
			p.Count = Weight(s.count, own(runs[0].ObjectID), own(id))
		}
		if p.Count > 0 {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, byCount)
	best := slices.Clone(all[:min(len(all), Best)])
	if kind != Follows || dropped == 0 {
		return best
	}
	// A pair that no run lists may occur dropped times. Others are compared with
	// the last place of the list, and one may tie with it.
	var last int64
	if len(best) == Best {
		last = best[Best-1].Count
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
	return best
}
