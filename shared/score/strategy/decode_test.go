package strategy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestDecodeScenarios(t *testing.T) {
	datadriven.RunTest(t, "testdata/decode.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "decode" {
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
		}
		s, err := strategy.Decode([]byte(d.Input))
		if err != nil {
			return fmt.Sprintf("%s %s\n", kind(t, err), err)
		}
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		return string(b) + "\n"
	})
}

// kind is the kind of a refusal.
func kind(t testing.TB, err error) fault.Kind {
	t.Helper()
	var refusal *fault.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("error is a %T, want *fault.Error: %v", err, err)
	}
	return refusal.Kind
}

// sizeLimits grow one thing each to any size.
var sizeLimits = map[string]struct {
	grow    func(t *testing.T, n int) strategy.Strategy
	most    int
	message string // of most+1
}{
	"events": {
		grow: func(_ *testing.T, n int) strategy.Strategy {
			var s strategy.Strategy
			for i := range n {
				s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventName: fmt.Sprint(i), EventType: event.View})
			}
			return s
		},
		most:    100,
		message: "eventsScoring must have at most 100 entries, got 101",
	},
	"facets": {
		grow: func(_ *testing.T, n int) strategy.Strategy {
			var s strategy.Strategy
			for i := range n {
				s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: fmt.Sprint(i)})
			}
			return s
		},
		most:    100,
		message: "facetsScoring must have at most 100 entries, got 101",
	},
	"aliases over all facets": {
		grow: func(t *testing.T, n int) strategy.Strategy {
			first, second := map[string]string{}, map[string]string{}
			for i := range n / 2 {
				first[fmt.Sprint(i)] = "x"
			}
			for i := n / 2; i < n; i++ {
				second[fmt.Sprint(i)] = "x"
			}
			return strategy.Strategy{Aliases: map[string]map[string]string{"a": first, "b": second}}
		},
		most:    5_000,
		message: "aliases must have at most 5000 pairs in all, got 5001",
	},
	"ignored values": {
		grow: func(_ *testing.T, n int) strategy.Strategy { return strategy.Strategy{IgnoredValues: numbered(n)} },
		most: 100, message: "ignoredValues must have at most 100 values, got 101",
	},
	"allowed values over all facets": {
		grow: func(_ *testing.T, n int) strategy.Strategy {
			values := numbered(n)
			return strategy.Strategy{AllowedValues: map[string]strategy.ValueSet{
				"a": strategy.SetOf(values[:n/2]...), "b": strategy.SetOf(values[n/2:]...),
			}}
		},
		most: 5_000, message: "allowedValues must have at most 5000 values in all, got 5001",
	},
	"bytes of an ignored value": {
		grow: func(_ *testing.T, n int) strategy.Strategy {
			return strategy.Strategy{IgnoredValues: []string{strings.Repeat("n", n)}}
		},
		most: 500, message: "ignoredValues[0] must have at most 500 bytes, got 501",
	},
	"bytes of an allowed value": {
		grow: func(_ *testing.T, n int) strategy.Strategy {
			return strategy.Strategy{AllowedValues: map[string]strategy.ValueSet{"tags": strategy.SetOf(strings.Repeat("n", n))}}
		},
		most: 500, message: `a value in allowedValues["tags"] must have at most 500 bytes, got 501`,
	},
	"bytes of a name": {
		grow: func(t *testing.T, n int) strategy.Strategy {
			return strategy.Strategy{FacetsScoring: []strategy.FacetScore{{FacetName: strings.Repeat("n", n)}}}
		},
		most:    500,
		message: "facetsScoring[0].facetName must have at most 500 bytes, got 501",
	},
	"bytes of an alias": {
		grow: func(t *testing.T, n int) strategy.Strategy {
			return strategy.Strategy{Aliases: map[string]map[string]string{"color": {"a": strings.Repeat("n", n)}}}
		},
		most:    500,
		message: `aliases["color"]["a"] must have at most 500 bytes, got 501`,
	},
	"bytes of it all": {
		grow: func(t *testing.T, n int) strategy.Strategy {
			s := strategy.Strategy{Aliases: map[string]map[string]string{"color": {}}}
			for i := range 1_000 {
				s.Aliases["color"][fmt.Sprintf("%06d", i)] = strings.Repeat("n", 487)
			}
			s.FacetsScoring = []strategy.FacetScore{{FacetName: "a"}, {FacetName: "b"}}
			rest := n - len(mustMarshal(t, s))
			s.FacetsScoring[0].FacetName += strings.Repeat("n", rest/2)
			s.FacetsScoring[1].FacetName += strings.Repeat("n", rest-rest/2)
			return s
		},
		most:    500_000,
		message: "the strategy must have at most 500000 bytes as JSON, got 500001",
	},
}

func numbered(n int) (values []string) {
	for i := range n {
		values = append(values, fmt.Sprint(i))
	}
	return values
}

func TestSizeLimits(t *testing.T) {
	for name, test := range sizeLimits {
		t.Run(name, func(t *testing.T) {
			if _, err := strategy.Decode(mustMarshal(t, test.grow(t, test.most))); err != nil {
				t.Errorf("%d are refused: %v", test.most, err)
			}
			_, err := strategy.Decode(mustMarshal(t, test.grow(t, test.most+1)))
			if err == nil {
				t.Fatalf("%d are accepted", test.most+1)
			}
			if kind(t, err) != fault.Invalid || err.Error() != test.message {
				t.Errorf("got %s %s\nwant invalid %s", kind(t, err), err, test.message)
			}
		})
	}
}

func TestMessagesStayShort(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	for name, body := range map[string]string{
		"unknown field": fmt.Sprintf(`{%q:1}`, long),
		"number":        `{"personalizationImpact":1` + strings.Repeat("0", 100_000) + `}`,
		"event type":    fmt.Sprintf(`{"eventsScoring":[{"eventName":"a","eventType":%q,"score":1}],"facetsScoring":[],"personalizationImpact":0}`, long),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := strategy.Decode([]byte(body))
			if err == nil || len(err.Error()) > 300 {
				t.Errorf("want a refusal of at most 300 bytes, got %.400v", err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"eventsScoring":[{"eventName":"a","eventType":"view","score":10}],"facetsScoring":[{"facetName":"color","score":5}],"personalizationImpact":1}`))
	f.Add([]byte(`{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0,"halfLives":[1,30],"aliases":{"color":{"Rouge":"Red"}}}`))
	f.Add([]byte(`{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0,"ignoredValues":[],"allowedValues":{"tags":["a","b"]}}`))
	f.Add([]byte(`{"eventScoring":[]}`))
	f.Add([]byte(`{"aliases":{"a":{"b":"c","c":"b"}}}`))
	f.Add([]byte(`[1.5,1e2,null]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := strategy.Decode(body)
		if err != nil {
			if kind(t, err) == fault.Malformed && json.Valid(body) && !strings.Contains(err.Error(), "UTF-8") && !strings.Contains(err.Error(), "surrogate") {
				t.Errorf("valid JSON called a syntax error: %v", err)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Errorf("decoded, but not valid: %v", err)
		}
		again, err := strategy.Decode(mustMarshal(t, s))
		if err != nil || !again.Equal(s) {
			t.Errorf("not given back as set (%v):\n%+v\n%+v", err, s, again)
		}
	})
}

func mustMarshal(t testing.TB, s strategy.Strategy) []byte {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	return b
}

// A strategy is refused with all its faults, one for each field.
func TestAllFaultsAreReported(t *testing.T) {
	_, err := strategy.Decode([]byte(`{
		"eventsScoring":[{"eventName":"Seen","eventType":"vieww","score":500},{"eventType":"view","score":1},{"eventName":"Seen","eventType":"click","score":1},{"eventName":"Seen","eventType":"click","score":2}],
		"facetsScoring":[{"facetName":"","score":-1}],
		"personalizationImpact":150, "halfLives":[7,"soon",7],
		"aliases":{"color":{"a":"a","b":null,"c":"d","d":"e"}}, "ignoredValues":["",null], "allowedValues":{"tags":[],"brand":["a","a"]},
		"ranking":{"contrast":"none","session":{"weight":1000},"freshness":{"attribute":""}}}`))
	refusal, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Fatalf("error %v", err)
	}
	var fields []string
	for _, message := range append([]string{refusal.Message}, refusal.Others...) {
		field, _, _ := strings.Cut(message, " ")
		fields = append(fields, field)
	}
	want := []string{
		"eventsScoring[1].eventName", "halfLives[1]", "ranking.freshness.attribute", `aliases["color"]["b"]`,
		"ignoredValues[1]", `allowedValues["brand"][1]`, `allowedValues["tags"]`,
		"eventsScoring[0].eventType", "eventsScoring[0].score", "eventsScoring[3]", "facetsScoring[0].facetName", "facetsScoring[0].score",
		"personalizationImpact", "halfLives[2]", `aliases["color"]["a"]`, `aliases["color"]["c"]`, "ignoredValues[0]", "ranking.session.weight",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
