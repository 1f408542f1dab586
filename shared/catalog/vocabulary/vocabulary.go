// Package vocabulary finds values of a facet that probably mean the same, such as
// Nike, NIKE and Nikes, so that a strategy can merge them by aliases. It reads
// nothing itself: its caller adds the filters of objects.
//
// A wrong alias mixes what users like, so the package proposes and a person
// decides. Every suggestion has its reason, and the surest come first.
package vocabulary

import (
	"cmp"
	"maps"
	"slices"

	"golang.org/x/text/cases"

	"github.com/affinityengine/affinity/shared/event"
)

// A Reason says why two values may mean the same. A lower one is surer.
type Reason int

// The reasons, the surest first.
const (
	Entities   Reason = iota // they differ in HTML entities alone: & and &amp;
	Unicode                  // they are the same letters as other code points
	Case                     // they differ in upper and lower case, too
	Separators               // they differ in spaces, hyphens, underscores, dots, apostrophes or &, too
	Accents                  // they differ in accents, too
	Plural                   // one ends in s, es or ies where the other does not
	Objects                  // mostly the same objects carry both
	Spelling                 // one letter of a long word is other, missing or swapped with the next one
	Digits                   // one is the other with digits: iphone 7 and iphone
)

var reasons = [...]string{"entities", "Unicode", "case", "separators", "accents", "plural", "same objects", "spelling",
	"digits"}

// String returns the reason as the command prints it, such as same objects.
func (r Reason) String() string { return reasons[r] }

// Doubtful reports whether most pairs of this reason mean other things: nobody should take
// these suggestions unread.
func (r Reason) Doubtful() bool { return r == Digits }

// Suggestion proposes that one value of a facet counts as another.
type Suggestion struct {
	Facet string
	// From is the rarer value, To the one that more objects carry, or the one without
	// digits. A value that aliases lead to already is never From.
	From, To string
	// Reason is the surest reason.
	Reason Reason
	// FromObjects and ToObjects are how many objects carry the values, and
	// SharedObjects how many carry both.
	FromObjects, ToObjects, SharedObjects int
}

// Vocabulary holds the values of facets and the objects that carry them. It is
// not safe for concurrent use.
type Vocabulary struct {
	objects int32
	facets  map[string]map[string][]int32 // facet -> value -> objects, ascending
}

// New returns an empty vocabulary.
func New() *Vocabulary { return &Vocabulary{facets: map[string]map[string][]int32{}} }

// Add adds the filters of one object. A filter that occurs twice counts once.
func (v *Vocabulary) Add(filters []event.Filter) {
	for _, f := range filters {
		values := v.facets[f.Facet]
		if values == nil {
			values = map[string][]int32{}
			v.facets[f.Facet] = values
		}
		carriers := values[f.Value]
		if n := len(carriers); n == 0 || carriers[n-1] != v.objects {
			values[f.Value] = append(carriers, v.objects)
		}
	}
	v.objects++
}

// Facets returns the names of the facets, sorted.
func (v *Vocabulary) Facets() []string { return slices.Sorted(maps.Keys(v.facets)) }

// Values returns how many distinct values a facet has.
func (v *Vocabulary) Values(facet string) int { return len(v.facets[facet]) }

// Suggest returns the suggestions for a facet, the surest first, then those of
// more objects. aliases are the facet's in the strategy, from value to value. With
// them the suggestions are aliases of one step, without chains or cycles: every
// value is From at most once, and no To is the From of another.
//
// Values with other digits, and values without a letter, are never alike: size 40
// is not size 41. Those of Digits come last.
func (v *Vocabulary) Suggest(facet string, aliases map[string]string) []Suggestion {
	values := v.facets[facet]
	targets := map[string]bool{}
	for _, to := range aliases {
		targets[to] = true
	}
	free, fold := make([]value, 0, len(values)), cases.Fold()
	for _, text := range slices.Sorted(maps.Keys(values)) {
		if _, merged := aliases[text]; !merged {
			free = append(free, newValue(fold, text, values[text], targets[text]))
		}
	}
	pairs := candidates(free)
	suggestions := make([]Suggestion, 0, len(pairs))
	for p, reason := range pairs {
		from, to := free[p.a], free[p.b]
		if reason == Digits && from.digits == "" || reason != Digits && lessUsual(to, from) {
			from, to = to, from
		}
		if from.target {
			continue // aliases lead to both: the strategy keeps them apart
		}
		suggestions = append(suggestions, Suggestion{
			Facet: facet, From: from.text, To: to.text, Reason: reason,
			FromObjects: len(from.objects), ToObjects: len(to.objects), SharedObjects: shared(from.objects, to.objects),
		})
	}
	slices.SortFunc(suggestions, surer)
	return oneStep(suggestions)
}

// lessUsual reports whether a should be an alias of b: b is the target of an alias
// and a is not, or more objects carry b. Of equal ones the first in order is usual.
func lessUsual(a, b value) bool {
	if a.target != b.target {
		return b.target
	}
	return cmp.Or(cmp.Compare(len(a.objects), len(b.objects)), cmp.Compare(b.text, a.text)) < 0
}

func surer(a, b Suggestion) int {
	return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(b.FromObjects+b.ToObjects, a.FromObjects+a.ToObjects),
		cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}

// oneStep keeps the suggestions that are aliases of one step together with those
// before them.
func oneStep(sorted []Suggestion) []Suggestion {
	from, to := map[string]bool{}, map[string]bool{}
	return slices.DeleteFunc(sorted, func(s Suggestion) bool {
		if from[s.From] || from[s.To] || to[s.From] {
			return true
		}
		from[s.From], to[s.To] = true, true
		return false
	})
}

// shared counts the numbers that two ascending lists share.
func shared(a, b []int32) int {
	n := 0
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n, a, b = n+1, a[1:], b[1:]
		}
	}
	return n
}
