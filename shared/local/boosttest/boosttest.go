// Package boosttest makes random documents and requests for tests of boosts, and
// holds the formula that product boosts are compared with.
package boosttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/local/simulate"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

// facet is an attribute of the documents, with between least and most values.
type facet struct {
	name        string
	least, most int
	values      []string
}

// Each facet has values that a language of queries could take for its own.
var facets = []facet{
	{"brand", 1, 1, []string{"Apple", "Sony", "Acme", `O'Neil "& (Sons)"`, "Northwave", "Littlebee", "Ember & Oak",
		"Vandal", `Back\slash`, "H&M", "A|B", "Null"}},
	{"color", 0, 3, []string{"Black", "White", "Red", "Yellow", "Blue", "日本", "Noir, mat", "Off-White"}},
	{"categories.lvl0", 1, 1, []string{"Kids > Shoes", "Phones", "Speakers", "Garden; Tools", "$1", "--"}},
	{"price_range", 0, 1, []string{"0:25", "25:50", "75:100", "100:200"}},
	{"tags", 0, 4, []string{"new", "-sale", "<b>", "50%", "a]b", "tick`tick", "x:=y", "{}", "'; --", "caf\u00e9",
		"two  spaces", "score=3>", "line\nbreak", "right\u202eleft", "\U0001f45f", "smile :)", "(some",
		"x):9000000,(color:=Red"}},
}

var words = []string{"red", "phone", "case", "shoe", "running", "speaker", "wireless", "small", "kids", "garden"}

// mapped is the engine's name of the facet brand where a request has a field map.
const mapped = "brand.keyword"

// Facets returns the names of the documents' facets, mapped included.
func Facets() []string {
	names := []string{mapped}
	for _, f := range facets {
		names = append(names, f.name)
	}
	return names
}

// Document is a document with the title that engines search.
type Document struct {
	simulate.Document
	Title string
}

// Documents returns n documents, with IDs in their order. Each has two words or
// more, a score of its own, and its brand under mapped too.
func Documents(r *rand.Rand, n int) []Document {
	docs := make([]Document, n)
	for i := range docs {
		d := &docs[i]
		d.ID = fmt.Sprintf("d%03d", i)
		d.Text = math.Round(r.Float64()*1000)/100 + 0.01
		d.Facets = map[string][]string{}
		for _, f := range facets {
			for _, at := range r.Perm(len(f.values))[:f.least+r.IntN(f.most-f.least+1)] {
				d.Facets[f.name] = append(d.Facets[f.name], f.values[at])
			}
		}
		d.Facets[mapped] = d.Facets["brand"]
		var title []string
		for range 2 + r.IntN(6) {
			title = append(title, words[r.IntN(len(words))])
		}
		d.Title = strings.Join(title, " ")
	}
	return docs
}

// Plain returns the documents without their titles.
func Plain(docs []Document) []simulate.Document {
	plain := make([]simulate.Document, len(docs))
	for i, d := range docs {
		plain[i] = d.Document
	}
	return plain
}

// Search returns two words of titles.
func Search(r *rand.Rand) string {
	at := r.Perm(len(words))
	return words[at[0]] + " " + words[at[1]]
}

// Request returns a request for a random profile of up to 41 affinities, some of
// which no document has.
func Request(r *rand.Rand, engine, mode string) boost.Request {
	q := boost.Request{Engine: engine, Mode: mode, Impact: r.IntN(101), Limit: 1 + r.IntN(100)}
	steep := r.Float64() * 3
	for _, f := range facets {
		for _, value := range append([]string{"No document has this"}, f.values...) {
			if r.IntN(4) > 0 {
				continue
			}
			score := math.Exp(steep*r.NormFloat64()) * 10
			if r.IntN(3) == 0 {
				score = float64(1 + r.IntN(3)) // equal scores
			}
			q.Affinities = append(q.Affinities, boost.Affinity{Facet: f.name, Value: value, Score: score})
		}
	}
	r.Shuffle(len(q.Affinities), func(i, j int) { q.Affinities[i], q.Affinities[j] = q.Affinities[j], q.Affinities[i] })
	if r.IntN(2) == 0 {
		q.FieldMap = map[string]string{"brand": mapped}
	}
	if r.IntN(4) == 0 {
		q.Fields = []string{"brand", "color", "tags"}
	}
	if r.IntN(8) == 0 {
		q.Private = map[string]bool{"color": true}
	}
	return q
}

// Longest returns a request with as many affinities as an answer may have, and
// half as many again.
func Longest(engine, mode string) boost.Request {
	q := boost.Request{Engine: engine, Mode: mode, Impact: boost.MaxImpact, Limit: boost.MaxLimit}
	for i := range boost.MaxLimit * 3 / 2 {
		facet := fmt.Sprintf("facet%d", i%5)
		q.Affinities = append(q.Affinities, boost.Affinity{Facet: facet, Value: fmt.Sprintf("Value %d", i),
			Score: float64(1000 - i)})
	}
	return q
}

// Weights returns the weights of an answer by facet and value. It compares each with
// the definition: the score over the sum, over facets, of the strongest score of
// the answer's filters. Answers round weights to a millionth.
func Weights(q boost.Request, a boost.Answer) (map[string]map[string]float64, error) {
	scores := map[boost.Affinity]float64{} // by facet and value
	for _, f := range q.Affinities {
		scores[boost.Affinity{Facet: f.Facet, Value: f.Value}] = f.Score
	}
	strongest := map[string]float64{}
	for _, w := range a.Affinities {
		strongest[w.Facet] = max(strongest[w.Facet], scores[boost.Affinity{Facet: w.Facet, Value: w.Value}])
	}
	sum := 0.0
	for _, score := range strongest {
		sum += score
	}
	weights := map[string]map[string]float64{}
	for _, w := range a.Affinities {
		want := scores[boost.Affinity{Facet: w.Facet, Value: w.Value}] / sum
		if !(math.Abs(w.Weight-want) <= 1e-6) {
			return nil, fmt.Errorf("%s:%s has weight %v, want %v", w.Facet, w.Value, w.Weight, want)
		}
		if weights[w.Facet] == nil {
			weights[w.Facet] = map[string]float64{}
		}
		weights[w.Facet][w.Value] = w.Weight
	}
	return weights, nil
}

// Matched is the sum of the weights that match a document.
func Matched(weights map[string]map[string]float64, d simulate.Document) float64 {
	sum := 0.0
	for facet, values := range weights {
		for _, value := range d.Facets[facet] {
			sum += values[value]
		}
	}
	return sum
}

// Factor is what a product boost multiplies a document's text score with.
func Factor(impact int, weights map[string]map[string]float64, d simulate.Document) float64 {
	return 1 + float64(impact)/100*min(1, Matched(weights, d))
}

// Compare compares the best hits of an engine with the scores that documents
// should have, both within a relative tolerance. Documents whose scores are
// closer than that may stand in any order.
func Compare(got []simulate.Hit, want map[string]float64, top int, tolerance float64) error {
	best := make([]float64, 0, len(want))
	for _, score := range want {
		best = append(best, score)
	}
	slices.Sort(best)
	slices.Reverse(best)
	if len(got) != min(top, len(best)) {
		return fmt.Errorf("%d hits, want %d", len(got), min(top, len(best)))
	}
	seen := map[string]bool{}
	for i, hit := range got {
		score, ok := want[hit.ID]
		switch {
		case !ok || seen[hit.ID]:
			return fmt.Errorf("place %d is %s, which is there twice or does not match", i+1, hit.ID)
		case math.Abs(hit.Score-score) > tolerance*score:
			return fmt.Errorf("place %d: %s has score %v, want %v", i+1, hit.ID, hit.Score, score)
		case math.Abs(score-best[i]) > tolerance*best[i]:
			return fmt.Errorf("place %d: %s with %v, want a document with %v", i+1, hit.ID, score, best[i])
		}
		seen[hit.ID] = true
	}
	return nil
}
