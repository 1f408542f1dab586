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

// ageOfRelated is after how many steps an object of the session counts half for those that
// the same users turn to. On the data of README.md 2 is as good, and 5 costs 2 to 7 %.
const ageOfRelated = 3

// Aged is what an object of the session of an age counts for those that the same users turn to.
func Aged(age int) float64 { return math.Exp2(-float64(age) / ageOfRelated) }

// Lists returns the lists of an object, in the order of crowd.Kind.
func (a *Neighbours) Lists() [kinds]*[]Pair { return [kinds]*[]Pair{&a.Pairs, &a.Sequence, &a.Related} }

// each calls add with each object that a links to, under the features that have a weight, and
// with what it adds to their sums.
func (a *Neighbours) each(w *weights, add func(kind int, b string, value float64)) {
	of := func(kind int, list []Pair, factor float64) {
		if w.linked[kind] == 0 || !positive(factor) {
			return
		}
		for i := range list {
			if value := list[i].Count * factor; positive(list[i].Count) && positive(value) {
				add(kind, list[i].ObjectID, value)
			}
		}
	}
	if a.Last {
		of(paired, a.Pairs, 1/a.Events)
		of(followed, a.Sequence, 1/a.Events)
	}
	of(related, a.Related, Aged(a.Age))
}
