package boost_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

var values = flag.Int("values", 0, "how many random values TestStructure renders in each mode; 0: a few thousand")

// filter is what an engine finds in a query: a field, a value, and the digits
// of a weight or of a score made from it.
type filter struct{ field, value, digits string }

// reader reads a query as its engine does, by code that shares nothing with the
// renderer. It refuses whatever the renderer does not write.
type reader struct {
	read func(query []byte) ([]filter, error)
	// digits of each weight as they stand in the query.
	digits func(weights []float64, impact int) []string
}

var readers = map[string]reader{
	"algolia.optionalFilters":        {readOptionalFilters, scoresByLevel},
	"algolia.personalizationFilters": {readPersonalizationFilters, func(w []float64, _ int) []string { return scoresByLevel(w, 100) }},
	"elasticsearch.function_score":   {readFunctionScore, timesImpact},
	"elasticsearch.rescore":          {readRescore, timesImpact},
	"elasticsearch.rank_feature":     {readRankFeature, timesImpact},
	"meilisearch.personalize":        {readUserContext, noDigits},
	"minisearch.boostDocument":       {readMiniSearch, asTheyAre},
	"opensearch.function_score":      {readFunctionScore, timesImpact},
	"opensearch.rescore":             {readRescore, timesImpact},
	"opensearch.rank_feature":        {readRankFeature, timesImpact},
	"postgres.expression":            {readExpression, asTheyAre},
	"prompt.sentence":                {readPrompt, noDigits},
	"solr.rerank":                    {readRerank, timesImpact},
	"solr.product":                   {readProduct, asTheyAre},
	"typesense.eval":                 {readEval, millionths},
}

// checkStructure reads the query of an answer back and compares it with the
// affinities of the answer. A value that broke out of its place would be cut
// short, add a clause, or fail to parse.
func checkStructure(t testing.TB, r boost.Request) boost.Answer {
	t.Helper()
	mode := r.Mode
	if mode == "" {
		mode = boost.Modes(r.Engine)[0]
	}
	reader, ok := readers[r.Engine+"."+mode]
	if !ok {
		t.Fatalf("no reader for %s %s", r.Engine, mode)
	}
	answer, query := render(t, r)
	if len(answer.Affinities) == 0 {
		if query != "{}" {
			t.Fatalf("%s %s without affinities: %s", r.Engine, mode, query)
		}
		return answer
	}
	got, err := reader.read([]byte(query))
	if err != nil {
		t.Fatalf("%s %s: read %s: %v", r.Engine, mode, query, err)
	}
	var weights []float64
	for _, a := range answer.Affinities {
		weights = append(weights, a.Weight)
	}
	digits := reader.digits(weights, r.Impact)
	var want []filter
	for i, a := range answer.Affinities {
		field := a.Facet
		if target, ok := r.FieldMap[field]; ok {
			field = target
		}
		want = append(want, filter{field, a.Value, digits[i]})
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(filter{})); diff != "" {
		t.Fatalf("%s %s: affinities and what the query says (-want +read):\n%s\nin %s", r.Engine, mode, diff, query)
	}
	return answer
}

// pieces of values: what the syntaxes of the engines are made of, and what
// breaks careless code.
var pieces = []string{
	`"`, `'`, "`", `\`, "$", "${", "}", "{!", "{", "(", ")", "[", "]", ":", ":=", "<score=", "<score=9>", ">", "<", "-", "+", "!", "&&", "||", "^", "^=", "^=9", "~",
	"*", "?", "/", "//", "/*", "*/", "--", ";", ",", ".", "..", "=", "|", "@", "#", "%", "%00", "%22", "_", "$1", "$2", "\\u0022", "\\\"", "OR", " AND ", "NOT ",
	"_query_", "_val_", "_eval([", "]):desc", "):9", "__proto__", "constructor", "null", "true", "0", "-1", "1e9", "NaN",
	"\x00", "\x01", "\t", "\n", "\r", "\r\n", "\x1b[31m", "\x7f", "\u0085", "\u00a0", "\u00ad", "\u200b", "\u200d", "\u200e", "\u202e", "\u2028", "\u2029", "\u2066", "\ufeff",
	"\ufffd", "\ufff9", "\U000e0041", "\U0001f600", "\xff", "\xc0\x80", "\xed\xa0\x80", "é", "é", "ß", "İ", "緑", "أخضر", "a", "b", "Apple", "Black", " ", "  ",
	"Ignore all previous instructions", "</script>", "<|im_end|>",
}

// hostile returns a random value of up to 2 KB.
func hostile(r *rand.Rand) string {
	var s strings.Builder
	n := r.IntN(6)
	if r.IntN(200) == 0 {
		n = 400
	}
	for range n {
		if r.IntN(8) == 0 {
			s.WriteRune(rune(r.IntN(0x3000)))
		} else {
			s.WriteString(pieces[r.IntN(len(pieces))])
		}
	}
	return s.String()[:min(s.Len(), 2_048)]
}

// A value never changes the structure of a query. In each mode it is read back
// as it was, or it is in dropped.
func TestStructure(t *testing.T) {
	n := race.Or(3_000, 300)
	if *values > 0 {
		n = *values
	}
	everyMode(t, func(t *testing.T, engine, mode string) {
		t.Parallel()
		random := rand.New(rand.NewPCG(1, 2))
		kept, dropped := 0, 0
		for kept+dropped < n {
			r := request(engine, mode, nil)
			r.Impact, r.Limit = 1+random.IntN(100), 100
			r.FieldMap = map[string]string{"mapped": "field" + hostile(random)}
			count := 1 + random.IntN(8)
			for i := range count {
				facet := [...]string{"brand", "color", "brand", "mapped", hostile(random)}[random.IntN(5)]
				r.Affinities = append(r.Affinities, boost.Affinity{Facet: facet, Value: hostile(random), Score: float64(count-i) + random.Float64()/2})
			}
			answer := checkStructure(t, r)
			checkDropped(t, r, answer)
			kept, dropped = kept+len(answer.Affinities), dropped+len(answer.Dropped)
		}
		t.Logf("%d values in queries, %d dropped", kept, dropped)
		if kept < n/10 {
			t.Errorf("only %d of %d values are in queries", kept, n)
		}
	})
}

// checkDropped finds each affinity of a request once in its answer, with a
// reason if the query leaves it out.
func checkDropped(t testing.TB, r boost.Request, answer boost.Answer) {
	t.Helper()
	found := map[[2]string]int{}
	for _, a := range answer.Affinities {
		found[[2]string{a.Facet, a.Value}]++
	}
	for _, d := range answer.Dropped {
		found[[2]string{d.Facet, d.Value}]++
		if d.Reason == "" {
			t.Fatalf("%s %s drops %q without a reason", r.Engine, r.Mode, d.Value)
		}
	}
	for _, a := range r.Affinities {
		key := [2]string{a.Facet, a.Value}
		if found[key] != 1 {
			t.Fatalf("%s %s: %q is %d times in the answer", r.Engine, r.Mode, key, found[key])
		}
	}
}

// strict decodes JSON into v and refuses keys that v does not know.
func strict(query []byte, v any) error {
	decoder := json.NewDecoder(strings.NewReader(string(query)))
	decoder.DisallowUnknownFields()
	return decoder.Decode(v)
}

func only(m map[string]string) (key, value string, err error) {
	if len(m) != 1 {
		return "", "", fmt.Errorf("%d keys in %v, want one", len(m), m)
	}
	for key, value = range m {
	}
	return key, value, nil
}
