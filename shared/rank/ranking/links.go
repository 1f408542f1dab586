package ranking

import "math"

// The features that come from links of objects, in the order of the formula.
const (
	paired = iota
	followed
	related
	kinds
)

// links are the sums of an object by kind.
type links [kinds]sum

// linkTable holds the links of objects, by the hashes of their ids. Of a million ids two have
// the same hash with a probability of 3e-8.
type linkTable struct {
	slots []slot // a power of 2; keys are indexes in sums + 1
	sums  []links
}

// fill makes the table of a query.
func (t *linkTable) fill(r *Ranker, q *Query) {
	most := 0
	for i := range q.Neighbours {
		for _, list := range q.Neighbours[i].Lists() {
			most += len(*list)
		}
	}
	if len(t.slots) > maxKept {
		*t = linkTable{}
	}
	clear(t.slots)
	t.sums, t.slots = t.sums[:0], grown(t.slots, min(most, maxKept/4))
	for i := range q.Neighbours {
		q.Neighbours[i].each(&r.weights, func(kind int, b *Pair, value float64) {
			hash := b.hash
			if hash == 0 {
				hash = hashText(b.ObjectID)
			}
			t.slots = grown(t.slots, len(t.sums)+1)
			s := at(t.slots, hash)
			if s.key == 0 {
				t.sums = append(t.sums, links{})
				s.hash, s.key = hash, int32(len(t.sums))
			}
			t.sums[s.key-1][kind].addBounded(value)
		})
	}
}

// of returns the links of an object, or nil.
func (t *linkTable) of(objectID string) *links {
	if len(t.sums) == 0 {
		return nil
	}
	if s := at(t.slots, hashText(objectID)); s.key > 0 {
		return &t.sums[s.key-1]
	}
	return nil
}

// ageOfRelated is after how many steps an object of the session counts half for those that
// the same users turn to. On the data of README.md 2 is as good, and 5 costs 2 to 7 %.
const ageOfRelated = 3

// Aged is what an object of the session of an age counts for those that the same users turn to.
func Aged(age int) float64 { return math.Exp2(-float64(age) / ageOfRelated) }

// Lists returns the lists of an object, in the order of crowd.Kind.
func (a *Neighbours) Lists() [kinds]*[]Pair { return [kinds]*[]Pair{&a.Pairs, &a.Sequence, &a.Related} }

// each calls add with each object that a links to, under the features that have a weight, and
// with what it adds to their sums.
func (a *Neighbours) each(w *weights, add func(kind int, b *Pair, value float64)) {
	of := func(kind int, list []Pair, factor float64) {
		if w.linked[kind] == 0 || !positive(factor) {
			return
		}
		for i := range list {
			if value := list[i].Count * factor; positive(list[i].Count) && positive(value) {
				add(kind, &list[i], value)
			}
		}
	}
	if a.Last {
		of(paired, a.Pairs, 1/a.Events)
		of(followed, a.Sequence, 1/a.Events)
	}
	of(related, a.Related, Aged(a.Age))
}
