package boost_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

// example is a profile of two brands and a color: M = 10 + 8.
func example() []boost.Affinity {
	return []boost.Affinity{{"brand", "Apple", 10}, {"color", "Black", 8}, {"brand", "Sony", 3}}
}

// spoken knows every value.
func spoken(string, string) bool { return true }

func request(engine, mode string, affinities []boost.Affinity) boost.Request {
	return boost.Request{Engine: engine, Mode: mode, Impact: 50, Affinities: affinities, Limit: 20, Spoken: spoken}
}

// render returns an answer, and its query as a client decodes it.
func render(t testing.TB, r boost.Request) (boost.Answer, string) {
	t.Helper()
	answer, err := boost.Render(r)
	if err != nil {
		t.Fatalf("render for %s %s: %v", r.Engine, r.Mode, err)
	}
	query, err := json.Marshal(answer.Query)
	if err != nil {
		t.Fatalf("marshal the query for %s %s: %v", r.Engine, r.Mode, err)
	}
	return answer, string(query)
}

// everyMode runs a test for each mode of each engine.
func everyMode(t *testing.T, test func(t *testing.T, engine, mode string)) {
	t.Helper()
	for _, engine := range boost.Engines() {
		for _, mode := range boost.Modes(engine) {
			t.Run(engine+"."+mode, func(t *testing.T) { test(t, engine, mode) })
		}
	}
}

func TestNothingToSayIsAnEmptyQuery(t *testing.T) {
	everyMode(t, func(t *testing.T, engine, mode string) {
		off, silent := request(engine, mode, example()), request(engine, mode, example())
		off.Impact = 0
		silent.Fields = []string{"size"}
		for name, r := range map[string]boost.Request{
			"an unknown user": request(engine, mode, nil),
			"impact 0":        off,
			"no such facet":   silent,
			"scores that do not count": request(engine, mode, []boost.Affinity{
				{"brand", "zero", 0}, {"brand", "negative", -1}, {"brand", "nan", math.NaN()}, {"brand", "infinite", math.Inf(1)},
			}),
		} {
			answer, _ := render(t, r)
			want := boost.Answer{Mode: mode, Affinities: []boost.Weighted{}, Query: map[string]any{}, Dropped: []boost.Dropped{}}
			if diff := cmp.Diff(want, answer); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestTheFirstModeIsTheDefault(t *testing.T) {
	for _, engine := range boost.Engines() {
		byDefault, _ := render(t, request(engine, "", example()))
		named, _ := render(t, request(engine, boost.Modes(engine)[0], example()))
		if diff := cmp.Diff(named, byDefault); diff != "" {
			t.Errorf("%s (-first mode +default):\n%s", engine, diff)
		}
	}
}

func TestWeights(t *testing.T) {
	answer, _ := render(t, request("elasticsearch", "", example()))
	want := []boost.Weighted{{"brand", "Apple", 0.555556}, {"color", "Black", 0.444444}, {"brand", "Sony", 0.166667}}
	if diff := cmp.Diff(want, answer.Affinities); diff != "" {
		t.Errorf("weights are score / 18 (-want +got):\n%s", diff)
	}
	// What the query leaves out does not count in M.
	r := request("elasticsearch", "", example())
	r.Limit = 1
	answer, _ = render(t, r)
	if diff := cmp.Diff([]boost.Weighted{{"brand", "Apple", 1}}, answer.Affinities); diff != "" {
		t.Errorf("the one affinity of a query (-want +got):\n%s", diff)
	}
}

// Scores that differ by rounding alone are equal: they have the same weight, and facet and
// value decide their order.
func TestRoundingDecidesNoWeight(t *testing.T) {
	third := math.Nextafter(0.3, 1)
	r := request("algolia", "", []boost.Affinity{{"b", "y", third}, {"a", "x", 0.3}})
	got, err := boost.Render(r)
	if err != nil {
		t.Fatal(err)
	}
	if a := got.Affinities; len(a) != 2 || a[0].Facet != "a" || a[0].Weight != a[1].Weight {
		t.Errorf("affinities = %v, want a:x before b:y with the same weight", a)
	}
}

func TestExtremeScores(t *testing.T) {
	for _, scores := range [][]float64{
		{math.MaxFloat64, math.MaxFloat64},
		{math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64},
		{math.MaxFloat64, math.SmallestNonzeroFloat64},
	} {
		answer, _ := render(t, request("elasticsearch", "", []boost.Affinity{{"a", "x", scores[0]}, {"b", "y", scores[1]}}))
		for _, a := range answer.Affinities {
			if !(a.Weight > 0 && a.Weight <= 1) {
				t.Errorf("of scores %g the weight of %s is %g", scores, a.Facet, a.Weight)
			}
		}
		if got := len(answer.Affinities) + len(answer.Dropped); got != 2 {
			t.Errorf("scores %g: %d of 2 affinities are in the answer", scores, got)
		}
	}
}

// Private facets are in no part of an answer, not even among the dropped.
func TestPrivateFacetsStayOut(t *testing.T) {
	everyMode(t, func(t *testing.T, engine, mode string) {
		affinities := append(example(), boost.Affinity{"disease", "secret`<score=9>\x00", 99}, boost.Affinity{"disease", "secret", 0.1})
		r := request(engine, mode, affinities)
		r.Limit = 2
		r.Private = map[string]bool{"disease": true}
		r.FieldMap = map[string]string{"disease": "secret.keyword"}
		answer, query := render(t, r)
		text := fmt.Sprint(answer) + query
		if strings.Contains(text, "secret") || strings.Contains(text, "disease") {
			t.Errorf("a private facet is in %s", text)
		}
		r.Affinities = example()
		without, _ := render(t, r)
		if diff := cmp.Diff(without, answer); diff != "" {
			t.Errorf("a private facet changes the answer (-without +with):\n%s", diff)
		}
	})
}

func TestLimitAndFields(t *testing.T) {
	r := request("elasticsearch", "", example())
	r.Limit = 2
	answer, _ := render(t, r)
	if diff := cmp.Diff([]boost.Dropped{{"brand", "Sony", "beyond the limit"}}, answer.Dropped); diff != "" {
		t.Errorf("dropped at limit 2 (-want +got):\n%s", diff)
	}
	r = request("elasticsearch", "", example())
	r.Fields = []string{"color"}
	answer, _ = render(t, r)
	if diff := cmp.Diff([]boost.Weighted{{"color", "Black", 1}}, answer.Affinities); diff != "" || len(answer.Dropped) != 0 {
		t.Errorf("fields=color: dropped %v, affinities (-want +got):\n%s", answer.Dropped, diff)
	}
}

func TestDroppedIsBounded(t *testing.T) {
	var many []boost.Affinity
	for i := range 1_000 {
		many = append(many, boost.Affinity{Facet: "brand", Value: fmt.Sprint(i), Score: float64(1 + i)})
	}
	answer, _ := render(t, request("elasticsearch", "", many))
	if len(answer.Affinities) != 20 || len(answer.Dropped) != boost.MaxDropped {
		t.Errorf("%d affinities and %d dropped, want 20 and %d", len(answer.Affinities), len(answer.Dropped), boost.MaxDropped)
	}
	if first := answer.Dropped[0].Value; first != "979" {
		t.Errorf("the first dropped value is %s, want 979: the strongest one", first)
	}
}

func TestTheSameFilterCountsOnce(t *testing.T) {
	everyMode(t, func(t *testing.T, engine, mode string) {
		once, _ := render(t, request(engine, mode, example()))
		twice, _ := render(t, request(engine, mode, append(example(), boost.Affinity{"color", "Black", 2})))
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("a repeated filter (-once +twice):\n%s", diff)
		}
	})
}

func TestFieldMap(t *testing.T) {
	r := request("elasticsearch", "", example())
	r.FieldMap = map[string]string{"brand": "brand.keyword", "size": "unused"}
	answer, query := render(t, r)
	if !strings.Contains(query, `{"term":{"brand.keyword":"Apple"}}`) || !strings.Contains(query, `{"term":{"color":"Black"}}`) {
		t.Errorf("query = %s, want brand as brand.keyword", query)
	}
	if answer.Affinities[0].Facet != "brand" {
		t.Errorf("the first affinity names %q, want the facet", answer.Affinities[0].Facet)
	}
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*boost.Request){
		"engine must be one of " + strings.Join(boost.Engines(), ", "):           func(r *boost.Request) { r.Engine = "sphinx" },
		"mode of algolia must be one of optionalFilters, personalizationFilters": func(r *boost.Request) { r.Mode = "x" },
		"impact must be an integer from 0 to 100, got 101":                       func(r *boost.Request) { r.Impact = 101 },
		"impact must be an integer from 0 to 100, got -1":                        func(r *boost.Request) { r.Impact = -1 },
		"limit must be an integer from 1 to 100, got 101":                        func(r *boost.Request) { r.Limit = 101 },
		"limit must be an integer from 1 to 100, got 0":                          func(r *boost.Request) { r.Limit = 0 },
		`fieldMap has no field for the facet "brand"`:                            func(r *boost.Request) { r.FieldMap = map[string]string{"brand": ""} },
		"fieldMap has an entry without a facet":                                  func(r *boost.Request) { r.FieldMap = map[string]string{"": "x"} },
		`fieldMap names the facet "brand", which fields leaves out`: func(r *boost.Request) {
			r.Fields, r.FieldMap = []string{"color"}, map[string]string{"brand": "b"}
		},
	} {
		r := request("algolia", "", example())
		change(&r)
		_, err := boost.Render(r)
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Kind != fault.Invalid || refusal.Message != want {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
}

func TestEnginesAndModes(t *testing.T) {
	if !slices.IsSorted(boost.Engines()) {
		t.Errorf("engines are not sorted: %v", boost.Engines())
	}
	if modes := boost.Modes("sphinx"); modes != nil {
		t.Errorf("modes of an unknown engine = %v", modes)
	}
}

// Each refused value or field of an engine, with its reason.
func TestDropped(t *testing.T) {
	for _, c := range []struct{ engine, mode, facet, value, reason string }{
		{"algolia", "", "brand", "x<score=9>", "<score= has no escape"},
		{"algolia", "", "brand", "x<SCORE=9> ", "<score= has no escape"},
		{"algolia", "", "brand", `\-x`, `a value that begins with \- or with white space and - has no escape`},
		{"algolia", "", "brand", "x<score=9>y", "<score= has no escape"},
		{"algolia", "", "brand", " -x", `a value that begins with \- or with white space and - has no escape`},
		{"algolia", "", "brand", "", "a filter needs a field and a value"},
		{"algolia", "", "a:b", "x", "a field name with a colon has no escape"},
		{"algolia", "", "-a", "x", "a field name that begins with - has no escape"},
		{"algolia", "", "color", "BLACK", "Algolia ignores case, and a stronger affinity differs only by it"},
		{"elasticsearch", "", "brand", "x\xff", "not UTF-8"},
		{"elasticsearch", "", "brand\xff", "x", "not UTF-8"},
		{"elasticsearch", "", "brand", "feeble", "weaker than a millionth of the strongest affinity"},
		{"elasticsearch", "rank_feature", "brand", "Dr. Martens", "names of features cannot contain a dot"},
		{"elasticsearch", "rank_feature", "a.b", "x", "names of features cannot contain a dot"},
		{"elasticsearch", "rank_feature", "a:b", "x", "a field name with a colon: the name of the feature would be ambiguous"},
		{"typesense", "", "brand", "back`tick", "a value with a backtick has no escape"},
		{"typesense", "", "brand", "a\x00b", "Typesense ends a text at a NUL character"},
		{"typesense", "", "brand", strings.Repeat("x", 257), "a value of more than 256 bytes: clauses repeat it"},
		{"typesense", "", "brand", "!!", "a value without a letter or a digit: Typesense compares words, and refuses an empty list of them"},
		{"typesense", "", "brand", "App*", `a value that ends in * or \ may be read as a prefix or an escape`},
		{"typesense", "", "brand", `C:\`, `a value that ends in * or \ may be read as a prefix or an escape`},
		{"typesense", "", "brand", "sad :(", "a value with :( would be read as a position"},
		{"typesense", "", "brand", "x: [ (1, 2", "a value with :( would be read as a position"},
		{"typesense", "", "brand", "smile :)", "a parenthesis without its pair: Typesense up to 29.0 would end the clause there"},
		{"typesense", "", "brand", "some (anno", "a parenthesis without its pair: Typesense up to 29.0 would end the clause there"},
		{"typesense", "", "brand", "x):9000000,(color:=Red", "a parenthesis without its pair: Typesense up to 29.0 would end the clause there"},
		{"typesense", "", "id", "x", "a field name that Typesense reads as something else, and that has no escape"},
		{"typesense", "", "$join", "x", "a field name that Typesense reads as something else, and that has no escape"},
		{"solr", "", "_query_", "*:*", "Solr parses the values of this field as queries"},
		{"solr", "product", "_val_", "rand()", "Solr parses the values of this field as queries"},
		{"solr", "", "OR", "x", "a field name that is an operator"},
		{"solr", "", "a b", "x", "a field name that Solr reads as something else"},
		{"solr", "", "brand", "", "an empty value matches nothing"},
		{"postgres", "", "brand", "a\x00b", "PostgreSQL stores no NUL characters"},
		{"postgres", "", "a\x00b", "x", "a column name with a NUL character"},
		{"postgres", "", strings.Repeat("c", 64), "x", "a column name of more than 63 bytes"},
		{"postgres", "", "", "x", "an empty column name"},
		{"prompt", "", "Shoe size", "42", "a name of a facet that is not one short word: map it to one"},
		{"prompt", "", "brand", " ", "a blank value"},
		{"prompt", "", "brand", strings.Repeat("ü", 61), "a value of more than 60 characters"},
		{"prompt", "", "brand", "a\u2028b", "a value with control, line or invisible characters"},
		{"prompt", "", "brand", "a\U000e0041b", "a value with control, line or invisible characters"},
		{"meilisearch", "", "brand", "a\u202eb", "a value with control, line or invisible characters"},
	} {
		score := 1.0
		if c.value == "feeble" {
			score = 1e-9
		}
		answer, _ := render(t, request(c.engine, c.mode, append(example(), boost.Affinity{c.facet, c.value, score})))
		if diff := cmp.Diff([]boost.Dropped{{c.facet, c.value, c.reason}}, answer.Dropped); diff != "" {
			t.Errorf("%s %s: dropped (-want +got):\n%s", c.engine, c.mode, diff)
		}
		if len(answer.Affinities) != 3 {
			t.Errorf("%s %s: %q takes others with it: %v", c.engine, c.mode, c.value, answer.Affinities)
		}
	}
}

func TestAlgoliaLevels(t *testing.T) {
	for impact, want := range map[int]string{
		100: "brand:Apple<score=20> color:Black<score=16> brand:Sony<score=6>",
		50:  "brand:Apple<score=10> color:Black<score=8> brand:Sony<score=3>",
		5:   "brand:Apple<score=1> color:Black<score=1> brand:Sony<score=1>",
		1:   "brand:Apple<score=1> color:Black<score=1> brand:Sony<score=1>",
	} {
		r := request("algolia", "", example())
		r.Impact = impact
		answer, _ := render(t, r)
		if got := strings.Join(answer.Query["optionalFilters"].([][]string)[0], " "); got != want {
			t.Errorf("impact %d: %s, want %s", impact, got, want)
		}
	}
}

// The factor is bounded by 1 + impact / 100, also for a document with many values
// of a facet.
func TestFactorIsBounded(t *testing.T) {
	for impact := 1; impact <= boost.MaxImpact; impact++ {
		for _, mode := range []string{"function_score", "rescore"} {
			r := request("elasticsearch", mode, example())
			r.Impact = impact
			_, query := render(t, r)
			if want := fmt.Sprintf(`"max_boost":%v}`, float64(100+impact)/100); !strings.Contains(query, want) {
				t.Errorf("%s at impact %d: %s, want %s", mode, impact, query, want)
			}
		}
	}
	_, query := render(t, request("postgres", "", example()))
	if want := "(1 + $1::float8 * least(1, "; !strings.Contains(query, want) {
		t.Errorf("postgres: %s, want %s", query, want)
	}
}

// Only the engines that speak ask what catalogs hold.
func TestSpeaks(t *testing.T) {
	everyMode(t, func(t *testing.T, engine, mode string) {
		asked := false
		r := request(engine, mode, example())
		r.Spoken = func(string, string) bool { asked = true; return true }
		render(t, r)
		if got := boost.Speaks(engine); got != asked {
			t.Errorf("%s speaks: %v, asked: %v", engine, got, asked)
		}
	})
}
