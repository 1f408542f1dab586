package segment_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func nested(depth int, inner string) string {
	for range depth {
		inner = `{"and":[` + inner + `]}`
	}
	return inner
}

func TestParseRefuses(t *testing.T) {
	filter := `{"filter":"brand:Nike"}`
	for where, want := range map[string]string{
		`5`:                                "where must be an object, got a number",
		`null`:                             "where must be an object, got null",
		``:                                 "where must be an object, got nothing",
		`{"filter":"b`:                     "where is not valid JSON",
		`{}`:                               "where must have exactly one of filter, and, or, not, got none",
		`{"filter":"brand:Nike","and":[]}`: "where must have exactly one of filter, and, or, not, got filter and and",
		`{"and":[` + filter + `,{"filter":"brand:Nike","atLeast":5}]}`: `Unknown field "atLeast" in where.and[1]`,
		`{"Filter":"brand:Nike"}`:                                      `Unknown field "Filter" in where`,
		`{"filter":"brand:Nike","filter":"brand:Puma"}`:                `Duplicate field "filter" in where`,
		`{"filter":"brand"}`:                                           `where.filter is no filter such as "brand:Nike"`,
		`{"filter":7}`:                                                 `where.filter must be a string such as "brand:Nike", got a number`,
		`{"filter":"brand:Nike","above":-1}`:                           "where.above must be a number of 0 or more, got -1",
		`{"filter":"brand:Nike","above":null}`:                         "where.above must be a number of 0 or more, got null",
		`{"filter":"brand:Nike","above":"5"}`:                          `where.above must be a number of 0 or more, got "5"`,
		`{"filter":"brand:Nike","above":1e999}`:                        "where.above must be a number of 0 or more, got 1e999",
		`{"filter":"brand:Nike","halfLife":"soon"}`:                    `where.halfLife must be one of the strategy's halfLives, got "soon"`,
		`{"and":[]}`:                         "where.and must have at least one condition",
		`{"and":` + filter + `}`:             "where.and must be a list of conditions, got an object",
		`{"and":[` + filter + `],"above":5}`: "where must not have halfLife or above beside and",
		`{"and":[` + filter + strings.Repeat(","+filter, 8) + `]}`: "where must have at most 8 filters, got 9",
		nested(4, filter):                                                       "where.and[0].and[0].and[0].and[0] is deeper than 4 levels, counting the filter itself",
		`{"not":` + filter + `}`:                                                "where must be bounded by a filter that holds",
		`{"or":[` + filter + `,{"not":` + filter + `}]}`:                        "where must be bounded by a filter that holds",
		`{"and":[{"not":` + filter + `},{"not":` + filter + `}]}`:               "where must be bounded by a filter that holds",
		`{"not":{"or":[` + filter + `,{"not":{"filter":"brand:Puma"}}]}} trail`: "where is not valid JSON",
	} {
		_, err := segment.Parse([]byte(where))
		var refusal *fault.Error
		if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Message, want) {
			t.Errorf("%s: %v, want %q", where, err, want)
		}
	}
}

func TestParseAccepts(t *testing.T) {
	filter := `{"filter":"brand:Nike"}`
	for _, where := range []string{
		filter,
		nested(3, filter),
		`{"and":[` + filter + `,{"or":[` + filter + `,{"not":` + filter + `}]}]}`,
		`{"not":{"not":` + filter + `}}`,
		`{"not":{"or":[{"not":` + filter + `},` + filter + `]}}`,
		` {"filter":"brand:100%25","halfLife":"12h","above":0.5} `,
	} {
		c, err := segment.Parse([]byte(where))
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		text, err := json.Marshal(c)
		must.Succeed(t, err)
		again, err := segment.Parse(text)
		if diff := cmp.Diff(c, again, cmp.Comparer(strategy.HalfLife.Equal)); diff != "" || err != nil {
			t.Errorf("%s is written as %s (-first +again): %s, %v", where, text, diff, err)
		}
	}
}

func TestCompile(t *testing.T) {
	s := strategy.Strategy{HalfLives: strategy.InDays(30, 180), Aliases: map[string]map[string]string{"brand": {"nike": "Nike"}}}
	c, err := segment.Parse([]byte(`{"and":[{"not":{"filter":"color:Red"}},{"filter":"brand:nike","halfLife":180,"above":5},{"or":[{"filter":"a:b"},{"filter":"a:c"}]}]}`))
	must.Succeed(t, err)
	q, err := c.Compile(s)
	must.Succeed(t, err)
	want := segment.Term{Filter: event.Filter{Facet: "brand", Value: "Nike"}, HalfLife: 1, Decay: segment.DecayOf(strategy.Days(180)), Above: 5}
	if diff := cmp.Diff(want, q.Terms[q.First], cmpopts.EquateComparable(segment.Decay{})); diff != "" || q.Whole {
		t.Errorf("the first term (-want +got), whole %v:\n%s", q.Whole, diff)
	}
	for where, want := range map[string]string{
		`{"and":[{"filter":"a:b"},{"filter":"brand:nike","halfLife":90}]}`: "where.and[1].halfLife must be one of the strategy's halfLives: 30, 180",
		`{"filter":"brand:nike","halfLife":"2e"}`:                          "where.halfLife must be a time, got 2e",
	} {
		c, err := segment.Parse([]byte(where))
		must.Succeed(t, err)
		if _, err := c.Compile(s); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", where, err, want)
		}
	}
}

// Without the first filter a user may belong to the segment in these.
func TestWholeLists(t *testing.T) {
	for where, want := range map[string]bool{
		`{"filter":"a:b"}`:                           false,
		`{"or":[{"filter":"a:b"},{"filter":"a:c"}]}`: true,
		`{"and":[{"or":[{"filter":"a:b"},{"filter":"a:c"}]},{"filter":"a:d"}]}`: true,
		`{"and":[{"filter":"a:d"},{"or":[{"filter":"a:b"},{"filter":"a:c"}]}]}`: false,
	} {
		if got := compile(t, where, nil).Whole; got != want {
			t.Errorf("%s: %v, want %v", where, got, want)
		}
	}
}

func TestHoldsComparesStrictly(t *testing.T) {
	p := affinity.Profile{Affinities: []affinity.Affinity{{Facet: "a", Value: "b", Scores: []float64{5}}, {Facet: "a", Value: "tiny", Scores: []float64{1e-251}}}}
	for where, want := range map[string]bool{
		`{"filter":"a:b","above":5}`:      false,
		`{"filter":"a:b","above":4.9999}`: true,
		`{"filter":"a:c"}`:                false,
		`{"filter":"a:tiny"}`:             false,
	} {
		if _, ok := compile(t, where, nil).Holds(p); ok != want {
			t.Errorf("%s: %v, want %v", where, ok, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, where := range conditions {
		f.Add([]byte(where))
	}
	f.Add([]byte(`{"not":{"not":{"filter":"a%3Ab","halfLife":"12h","above":1e3}}}`))
	f.Fuzz(func(t *testing.T, where []byte) {
		c, err := segment.Parse(where)
		if err != nil {
			var refusal *fault.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("%q: %v is no refusal", where, err)
			}
			return
		}
		text, err := json.Marshal(c)
		must.Succeed(t, err)
		again, err := segment.Parse(text)
		if diff := cmp.Diff(c, again, cmp.Comparer(strategy.HalfLife.Equal)); diff != "" || err != nil {
			t.Fatalf("%q is written as %s: %s, %v", where, text, diff, err)
		}
	})
}
