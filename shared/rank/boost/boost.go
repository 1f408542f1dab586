// Package boost renders a profile as a part of a request to a search engine. It
// is pure: it reads no clock, no store and no network.
//
// The strongest affinities of a user become an Answer. Its Query is a JSON
// object that the caller merges into the request to the engine: key by key for
// engines with flat parameters, and deeply for elasticsearch and opensearch,
// where the caller adds the text query at query.function_score.query. README.md
// lists engines, modes and limits.
//
// A product boost multiplies the engine's own text score of a document by
//
//	factor = 1 + impact / 100 x min(1, sum of the weights that match)
//
// where the weight of an affinity is score / M, and M is the sum over facets of
// the score of the facet's strongest affinity in the answer. So the factor is
// at most 1 + impact / 100. The sum of a document with one value a facet is at
// most 1 by itself.
//
// A value never changes the structure of a query. An affinity that an engine
// cannot express is left out, and Dropped gives the reason.
package boost

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

const (
	// MaxImpact is the highest impact: percent.
	MaxImpact = 100
	// MaxLimit is the maximum number of affinities of one answer.
	MaxLimit = 100
	// MaxDropped is the maximum length of Answer.Dropped: the strongest ones.
	MaxDropped = 100
	// unit is how many parts weights have. Weights are whole parts, so that the
	// decimal digits of a weight, also times an impact, are exact.
	unit = 1_000_000
)

// Affinity is one filter of a profile with its score, above 0, as of one
// instant.
type Affinity struct {
	Facet, Value string
	Score        float64
}

// Range is the numbers from From on and below Below. An open end is infinite.
type Range struct{ From, Below float64 }

// ends returns the ends of the range that are not open, each with the comparison of a
// number within.
func (r Range) ends() []end {
	var all []end
	if !math.IsInf(r.From, -1) {
		all = append(all, end{">=", r.From})
	}
	if !math.IsInf(r.Below, 1) {
		all = append(all, end{"<", r.Below})
	}
	return all
}

type end struct {
	compare string
	number  float64
}

// digits returns the number without an exponent: not every grammar has one.
func (e end) digits() string { return strconv.FormatFloat(e.number, 'f', -1, 64) }

// Request is all that an answer depends on.
type Request struct {
	Engine string
	Mode   string // "" is the engine's default
	Impact int    // 0 to MaxImpact percent; at 0 the query is empty

	// Affinities are the user's, in any order. Those without a positive finite
	// score do not count. Of those with one facet and value the highest counts.
	Affinities []Affinity
	// Limit is the maximum number of affinities of the answer, 1 to MaxLimit.
	Limit int
	// Fields are the facets to render. nil: all.
	Fields []string
	// FieldMap gives facets the name of their field in the engine, where it
	// differs.
	FieldMap map[string]string
	// Private are facets that no part of an answer shows.
	Private map[string]bool
	// Ranges reports whether a facet holds numbers in the documents of the engine, and
	// returns those that a value means, with at least one end; nil if the value is no
	// band. nil: no facet holds numbers.
	Ranges func(facet, value string) (numbers *Range, numeric bool)
	// Spoken reports whether a catalog of the app holds a filter. Sentences name
	// only such values. nil: nobody knows, and sentences name nothing.
	Spoken func(facet, value string) bool
}

// Weighted is an affinity of a query with its weight: above 0, at most 1, in
// steps of a millionth.
type Weighted struct {
	Facet  string  `json:"facet"`
	Value  string  `json:"value"`
	Weight float64 `json:"weight"`
}

// Dropped is an affinity that the query leaves out.
type Dropped struct {
	Facet  string `json:"facet"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

// Answer is a rendered profile. Equal requests give equal bytes of JSON,
// whatever the order of the affinities.
type Answer struct {
	Mode       string         // the mode of the query
	Affinities []Weighted     // those of the query, strongest first; never nil
	Query      map[string]any // to merge into the engine's request; empty, never nil, without affinities or impact
	Dropped    []Dropped      // strongest first, at most MaxDropped; never nil
}

// term is an affinity on its way into a query.
type term struct {
	facet, field, value string
	score               float64
	weight              int    // parts of unit
	mapped              bool   // FieldMap names the field
	numeric             bool   // the field holds numbers
	numbers             *Range // that the value means; nil: it is a text
}

// Render returns the query of a profile. The error is a *fault.Error: an
// unknown engine or mode, an impact or a limit out of range, a facet without a
// mapping.
func Render(r Request) (Answer, error) {
	d, mode, err := r.dialect()
	if err != nil {
		return Answer{}, err
	}
	if err := r.check(); err != nil {
		return Answer{}, err
	}
	answer := Answer{Mode: mode, Affinities: []Weighted{}, Query: map[string]any{}, Dropped: []Dropped{}}
	if r.Impact == 0 {
		return answer, nil
	}
	var terms []term
	terms, answer.Dropped = r.split(d.refuse(r))
	if len(terms) == 0 {
		return answer, nil
	}
	answer.Affinities = make([]Weighted, 0, len(terms))
	for _, t := range terms {
		answer.Affinities = append(answer.Affinities, Weighted{t.facet, t.value, float64(t.weight) / unit})
	}
	answer.Query = d.query(terms, r.Impact)
	return answer, nil
}

// strongest returns the affinities by score descending, then facet and value:
// the order of profiles, so that they are seldom sorted here.
func (r Request) strongest() []Affinity {
	byStrength := func(a, b Affinity) int {
		if c := cmp.Compare(affinity.Rounded(b.Score), affinity.Rounded(a.Score)); c != 0 {
			return c
		}
		return cmp.Or(strings.Compare(a.Facet, b.Facet), strings.Compare(a.Value, b.Value))
	}
	if slices.IsSortedFunc(r.Affinities, byStrength) {
		return r.Affinities
	}
	return slices.SortedFunc(slices.Values(r.Affinities), byStrength)
}

// asks reports whether the answer may show an affinity.
func (r Request) asks(a Affinity) bool {
	return a.Score > 0 && !math.IsInf(a.Score, 1) && !r.Private[a.Facet] &&
		(r.Fields == nil || slices.Contains(r.Fields, a.Facet))
}

// term returns an affinity with its field in the engine.
func (r Request) term(a Affinity) term {
	t := term{facet: a.Facet, field: a.Facet, value: a.Value, score: affinity.Rounded(a.Score)}
	if field, ok := r.FieldMap[a.Facet]; ok {
		t.field, t.mapped = field, true
	}
	if r.Ranges != nil {
		t.numbers, t.numeric = r.Ranges(a.Facet, a.Value)
	}
	return t
}

// split returns the terms of the query, with their weights, and what it leaves
// out.
func (r Request) split(refuse func(term) string) ([]term, []Dropped) {
	type filter struct{ facet, value string }
	known := make(map[filter]bool, r.Limit)
	kept, dropped := make([]term, 0, r.Limit), []Dropped{}
	for _, a := range r.strongest() {
		f := filter{a.Facet, a.Value}
		if !r.asks(a) || known[f] {
			continue
		}
		known[f] = true
		t, reason := r.term(a), ""
		switch {
		case !utf8.ValidString(t.field) || !utf8.ValidString(t.value):
			reason = "not UTF-8"
		case len(kept) == r.Limit:
			reason = "beyond the limit"
		case len(kept) > 0 && t.score < kept[0].score/unit:
			reason = "weaker than a millionth of the strongest affinity"
		default:
			reason = refuse(t)
		}
		switch {
		case reason == "":
			kept = append(kept, t)
		case len(dropped) < MaxDropped:
			dropped = append(dropped, Dropped{t.facet, t.value, reason})
		case len(kept) == r.Limit: // both lists are full
			return weigh(kept), dropped
		}
	}
	return weigh(kept), dropped
}

// weigh gives each term its weight: score / M in parts of unit, at least one.
func weigh(terms []term) []term {
	if len(terms) == 0 {
		return nil
	}
	// Relative to the highest score, so that no sum overflows.
	highest, sum, facets := terms[0].score, 0.0, make(map[string]bool, 8)
	for _, t := range terms {
		if !facets[t.facet] {
			facets[t.facet] = true
			sum += t.score / highest
		}
	}
	for i := range terms {
		terms[i].weight = max(1, int(math.Round(terms[i].score/highest/sum*unit)))
	}
	return terms
}

// textOfNumbers is why engines whose fields have types leave a value out: they refuse
// the whole query.
const textOfNumbers = "no band, and the field holds numbers"

// typeless reports whether the value cannot be compared with the field.
func (t term) typeless() bool { return t.numeric && t.numbers == nil }

// scaled returns impact / 100 x weight. It has at most eight decimal places.
func (t term) scaled(impact int) float64 {
	return float64(t.weight*impact) / (unit * MaxImpact)
}
