package simulate_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/boosttest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/simulate"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

// phones are four documents in the order of their text.
var phones = []simulate.Document{
	{ID: "1", Text: 4, Facets: map[string][]string{"brand": {"Nokia"}, "color": {"Black"}}},
	{ID: "2", Text: 3, Facets: map[string][]string{"brand": {"Apple"}, "color": {"White"}}},
	{ID: "3", Text: 2, Facets: map[string][]string{"brand": {"Apple"}, "color": {"White", "Black"}}},
	{ID: "4", Text: 1, Facets: map[string][]string{"brand": {"Sony"}}},
}

type simulator = func([]simulate.Document, []byte) ([]simulate.Hit, error)

// Each order follows from the documentation of the engine.
func TestDocumentedOrders(t *testing.T) {
	tests := []struct {
		name, query string
		engine      simulator
		want        string
	}{
		{"no filters", `{}`, simulate.Algolia, "1:0 2:0 3:0 4:0"},
		{"alternatives count by the highest", `{"optionalFilters":[["brand:Apple<score=2>","color:Black<score=3>"]]}`, simulate.Algolia, "1:3 3:3 2:2 4:0"},
		{"alternatives are added up", `{"optionalFilters":[["brand:Apple<score=2>","color:Black<score=3>"]],"sumOrFiltersScores":true}`, simulate.Algolia, "3:5 1:3 2:2 4:0"},
		{"a filter without a score, in any case", `{"optionalFilters":["brand:sony"]}`, simulate.Algolia, "4:1 1:0 2:0 3:0"},
		{"a negated filter buries", `{"optionalFilters":["brand:-Nokia"]}`, simulate.Algolia, "2:1 3:1 4:1 1:0"},
		{"an escaped minus", `{"optionalFilters":["brand:\\-Nokia"]}`, simulate.Algolia, "1:0 2:0 3:0 4:0"},
		{"no sort_by", `{}`, simulate.Typesense, "1:0 2:0 3:0 4:0"},
		{"the first clause wins", "{\"sort_by\":\"_eval([(brand:=`Apple`):2,(color:=Black):5]):desc,_text_match:desc\"}", simulate.Typesense, "1:5 2:2 3:2 4:0"},
		{"conjunctions first", "{\"sort_by\":\"_eval([(brand:=`Apple` && color:=`Black`):7,(brand:=`Apple`):2,(color:=Black):5]):desc,_text_match:desc\"}", simulate.Typesense, "3:7 1:5 2:2 4:0"},
		{"neither case nor punctuation", "{\"sort_by\":\"_eval([(brand:=`ap-PLE!`):2]):desc,_text_match:desc\"}", simulate.Typesense, "2:2 3:2 1:0 4:0"},
		{"text in two buckets", "{\"sort_by\":\"_text_match(buckets: 2):desc,_eval([(brand:=Sony || brand:=[Apple,`x`]):2]):desc\"}", simulate.Typesense, "2:2 1:0 3:2 4:2"},
		{"a parenthesis in backticks", "{\"sort_by\":\"_eval([(color:=`x):9,(brand:=Nokia`):2,(brand:=`(Sony)`):3]):desc\"}", simulate.Typesense, "4:3 1:0 2:0 3:0"},
		{"a parenthesis in backticks, before 30", "{\"sort_by\":\"_eval([(color:=`x):9,(brand:=Nokia`):2,(brand:=`(Sony)`):3]):desc\"}", simulate.Typesense29, "4:3 1:2 2:0 3:0"},
		{"more buckets than documents", "{\"sort_by\":\"_text_match(buckets: 5):desc,_eval([(brand:=Sony):2]):desc\"}", simulate.Typesense, "1:0 2:0 3:0 4:2"},
		{"a sum of weights", `{"function_score":{"query":{"match_all":{}},"functions":[{"weight":1},{"filter":{"term":{"brand":"Apple"}},"weight":1},
			{"filter":{"term":{"color":{"value":"Black"}}},"weight":0.5}],"score_mode":"sum","boost_mode":"multiply"}}`, simulate.FunctionScore, "1:6 2:6 3:5 4:1"},
		{"at most max_boost", `{"function_score":{"functions":[{"weight":1},{"filter":{"term":{"brand":"Apple"}},"weight":9}],
			"score_mode":"sum","boost_mode":"multiply","max_boost":2}}`, simulate.FunctionScore, "2:6 1:4 3:4 4:1"},
		{"without the function of weight 1 a match buries", `{"function_score":{"functions":[{"filter":{"term":{"brand":"Nokia"}},"weight":0.1}],"score_mode":"sum"}}`,
			simulate.FunctionScore, "2:3 3:2 4:1 1:0.4"},
		{"keywords have a case", `{"function_score":{"functions":[{"filter":{"term":{"brand":"apple"}},"weight":9}],"score_mode":"sum"}}`, simulate.FunctionScore, "1:4 2:3 3:2 4:1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			hits, err := test.engine(phones, []byte(test.query))
			must.Succeed(t, err)
			var got []string
			for _, h := range hits {
				score, err := json.Marshal(h.Score)
				must.Succeed(t, err)
				got = append(got, h.ID+":"+string(score))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("order %s, want %s", strings.Join(got, " "), test.want)
			}
		})
	}
}

func TestUnknownQueriesAreRefused(t *testing.T) {
	clause := "(" + strings.Repeat("brand:=a || ", 101) + "brand:=a):1"
	tests := []struct {
		query  string
		engine simulator
	}{
		{`{"filters":"a:b"}`, simulate.Algolia},
		{`{"optionalFilters":["brand"]}`, simulate.Algolia},
		{`{"optionalFilters":[["brand:a<score=65536>"]]}`, simulate.Algolia},
		{`{"optionalFilters":[["brand:a<score=1.5>"]]}`, simulate.Algolia},
		{`{"optionalFilters":[{"brand":"a"}]}`, simulate.Algolia},
		{`{"optionalFilters":["a:` + strings.Repeat(`b","a:`, 1000) + `b"]}`, simulate.Algolia},
		{`{} {}`, simulate.Algolia},
		{`{"sort_by":"price:desc"}`, simulate.Typesense},
		{`{"sort_by":"_text_match:asc"}`, simulate.Typesense},
		{`{"sort_by":"_text_match(buckets: 0):desc"}`, simulate.Typesense},
		{`{"sort_by":"_eval([(a:=b):1]):desc,_eval([(a:=b):1]):desc"}`, simulate.Typesense},
		{`{"sort_by":"_text_match:desc,_text_match:desc,_text_match:desc,_text_match:desc"}`, simulate.Typesense},
		{`{"sort_by":"_eval([(a:=b):1.5]):desc"}`, simulate.Typesense},
		{"{\"sort_by\":\"_eval([(a:=`b):1]):desc\"}", simulate.Typesense},
		{"{\"sort_by\":\"_eval([(a:=`-`):1]):desc\"}", simulate.Typesense},
		{"{\"sort_by\":\"_eval([(a:=`b`c`):1]):desc\"}", simulate.Typesense},
		{`{"sort_by":"_eval([(a:=b):1]):desc, "}`, simulate.Typesense},
		{`{"sort_by":"_eval([]):desc"}`, simulate.Typesense},
		{`{"sort_by":"_eval([(a:=b c:=d):1]):desc"}`, simulate.Typesense},
		{"{\"sort_by\":\"_eval([(a:=`1) b` && a:=`c`):1]):desc\"}", simulate.Typesense29},
		{"{\"sort_by\":\"_eval([(a:=`some (b`):1]):desc\"}", simulate.Typesense29},
		{`{"sort_by":"_eval([` + clause + `]):desc"}`, simulate.Typesense},
		{`{"sort_by":"_eval([` + strings.Repeat("(", 1_000_000) + `"}`, simulate.Typesense},
		{`{}`, simulate.FunctionScore},
		{`{"function_score":{"functions":[{"filter":{"match":{"a":"b"}},"weight":1}]}}`, simulate.FunctionScore},
		{`{"function_score":{"functions":[{"filter":{"term":{"a":1}},"weight":1}]}}`, simulate.FunctionScore},
		{`{"function_score":{"functions":[{"filter":{"term":{"a":"b","c":"d"}},"weight":1}]}}`, simulate.FunctionScore},
		{`{"function_score":{"functions":[{"weight":-1}]}}`, simulate.FunctionScore},
		{`{"function_score":{"functions":[{}]}}`, simulate.FunctionScore},
		{`{"function_score":{"functions":[{"weight":1}],"score_mode":"first"}}`, simulate.FunctionScore},
		{`{"function_score":{"functions":[{"weight":1}],"boost_mode":"avg"}}`, simulate.FunctionScore},
	}
	for _, test := range tests {
		if hits, err := test.engine(phones, []byte(test.query)); err == nil {
			t.Errorf("%.80s: %v, want an error", test.query, hits)
		}
	}
}

// Only the first 250 documents are put into buckets.
func TestTypesenseBucketsEnd(t *testing.T) {
	var docs []simulate.Document
	for i := range 300 {
		docs = append(docs, simulate.Document{ID: string(rune('a' + i)), Text: float64(300 - i)})
	}
	docs[249].Facets = map[string][]string{"brand": {"Apple"}}
	docs[299].Facets = docs[249].Facets
	hits, err := simulate.Typesense(docs, []byte(`{"sort_by":"_text_match(buckets:1):desc,_eval([(brand:=Apple):1]):desc"}`))
	must.Succeed(t, err)
	if hits[0].ID != docs[249].ID || hits[299].ID != docs[299].ID {
		t.Errorf("first %q and last %q, want the documents 249 and 299", hits[0].ID, hits[299].ID)
	}
}

// random are documents in the order of their IDs, and byText in that of their text.
var (
	random = boosttest.Plain(boosttest.Documents(rand.New(rand.NewPCG(1, 1)), 120))
	byText = slices.SortedFunc(slices.Values(random), func(a, b simulate.Document) int { return cmp.Compare(b.Text, a.Text) })
)

var profiles = flag.Int("profiles", race.Or(2000, 200), "how many random profiles each engine is tested with")

// randomly compares the order of an engine with the one that an answer
// promises, by keys of each document, the most important first.
func randomly(t *testing.T, engine simulator, request func(*rand.Rand) boost.Request,
	keys func(*testing.T, boost.Request, boost.Answer) func(simulate.Document) []float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	docs := random
	for i := range *profiles {
		q := request(r)
		a, err := boost.Render(q)
		must.Succeed(t, err)
		query, err := json.Marshal(a.Query)
		must.Succeed(t, err)
		if q.Engine == "elasticsearch" {
			query = []byte(strings.TrimSuffix(strings.TrimPrefix(string(query), `{"query":`), "}"))
		}
		if len(a.Query) == 0 {
			continue
		}
		hits, err := engine(docs, query)
		if err != nil {
			t.Fatalf("profile %d: %v in %s", i, err, query)
		}
		of := map[string][]float64{}
		rank := keys(t, q, a)
		for _, d := range docs {
			of[d.ID] = rank(d)
		}
		want := slices.Clone(docs)
		slices.SortFunc(want, func(a, b simulate.Document) int {
			return cmp.Or(slices.Compare(of[b.ID], of[a.ID]), strings.Compare(a.ID, b.ID))
		})
		for at, h := range hits {
			if h.ID != want[at].ID && !near(of[h.ID], of[want[at].ID]) {
				t.Fatalf("profile %d: place %d is %s with %v, want %s with %v: %s %+v", i, at+1, h.ID, of[h.ID], want[at].ID, of[want[at].ID], query, hits[:3])
			}
		}
	}
}

// near reports whether keys differ by no more than the rounding of sums.
func near(a, b []float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-12*math.Abs(a[i]) {
			return false
		}
	}
	return true
}

// Filter scores are whole levels, from 1 to 20 times the impact, in proportion to
// the weights and rounded up, unless only the last digit of a weight is above a
// level. Their sum comes before the text.
func TestAlgoliaOrdersByLevels(t *testing.T) {
	t.Parallel()
	request := func(r *rand.Rand) boost.Request { return boosttest.Request(r, "algolia", "") }
	randomly(t, simulate.Algolia, request, func(_ *testing.T, q boost.Request, a boost.Answer) func(simulate.Document) []float64 {
		levels := max(1, (20*q.Impact+50)/100)
		parts := func(w boost.Weighted) int { return int(math.Round(w.Weight * 1e6)) }
		score := map[string]int{}
		for _, w := range a.Affinities {
			score[w.Facet+":"+w.Value] = max(1, (levels*(parts(w)-1)+parts(a.Affinities[0])-1)/parts(a.Affinities[0]))
		}
		return func(d simulate.Document) []float64 {
			sum := 0
			for facet, values := range d.Facets {
				for _, v := range values {
					sum += score[facet+":"+v]
				}
			}
			return []float64{float64(sum), d.Text}
		}
	})
}

func TestFunctionScoreIsTheProduct(t *testing.T) {
	t.Parallel()
	request := func(r *rand.Rand) boost.Request { return boosttest.Request(r, "elasticsearch", "") }
	randomly(t, simulate.FunctionScore, request, func(t *testing.T, q boost.Request, a boost.Answer) func(simulate.Document) []float64 {
		weights, err := boosttest.Weights(q, a)
		must.Succeed(t, err)
		return func(d simulate.Document) []float64 {
			return []float64{d.Text * boosttest.Factor(q.Impact, weights, d)}
		}
	})
}

// everyTypesense is the order of Typesense, which must not depend on its version.
func everyTypesense(docs []simulate.Document, query []byte) ([]simulate.Hit, error) {
	hits, err := simulate.Typesense(docs, query)
	older, before := simulate.Typesense29(docs, query)
	if err == nil && (before != nil || !slices.Equal(hits, older)) {
		return nil, fmt.Errorf("up to 29.0 the order is another one: %+v, %w", older, before)
	}
	return hits, err
}

// Typesense has one score for each document: the highest sum of one combined value
// a facet, or the weight of one value that stands alone. The strongest
// affinities combine while all clauses are at most 64. The score decides within a
// bucket of the text, and at impact 100 before the text.
func TestTypesenseOrdersByTheBestCombination(t *testing.T) {
	t.Parallel()
	request := func(r *rand.Rand) boost.Request { return boosttest.Request(r, "typesense", "") }
	randomly(t, everyTypesense, request, func(t *testing.T, q boost.Request, a boost.Answer) func(simulate.Document) []float64 {
		weights, err := boosttest.Weights(q, a)
		must.Succeed(t, err)
		combined := combine(a.Affinities)
		value := func(d simulate.Document) float64 {
			sum, alone := 0.0, 0.0
			for facet, values := range d.Facets {
				strongest := 0.0
				for _, v := range values {
					if combined[facet+":"+v] {
						strongest = max(strongest, weights[facet][v])
					} else {
						alone = max(alone, weights[facet][v])
					}
				}
				sum += strongest
			}
			return math.Round(1e6 * max(sum, alone))
		}
		if q.Impact == boost.MaxImpact {
			return func(d simulate.Document) []float64 { return []float64{value(d), d.Text} }
		}
		return func(d simulate.Document) []float64 { return []float64{bucket(d, q.Impact, value), value(d)} }
	})
}

// combine returns the strongest filters that 64 clauses can combine: there are
// as many combinations as the product over facets of their values and none.
func combine(strongest []boost.Weighted) map[string]bool {
	combined, of := map[string]bool{}, map[string]int{}
	for i, w := range strongest {
		of[w.Facet]++
		clauses := 1
		for _, n := range of {
			clauses *= n + 1
		}
		if clauses-1+len(strongest)-i-1 > 64 {
			break
		}
		combined[w.Facet+":"+w.Value] = true
	}
	return combined
}

// bucket is the text score of the first document of the one's bucket.
func bucket(d simulate.Document, impact int, value func(simulate.Document) float64) float64 {
	buckets := 50
	if impact >= 63 {
		buckets = 10
	} else if impact >= 38 {
		buckets = 20
	}
	better := 0
	for _, other := range byText {
		if other.Text > d.Text || other.Text == d.Text && (value(other) > value(d) || value(other) == value(d) && other.ID < d.ID) {
			better++
		}
	}
	size := len(byText) / buckets
	return byText[better-better%size].Text
}
