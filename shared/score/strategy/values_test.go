package strategy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// TestValuesThatMeanNothing has the values that peers document, and some that only look
// like them.
func TestValuesThatMeanNothing(t *testing.T) {
	ignored := []string{"not-set", "(not set)", "{}", "Unknown", "unknown", "***", "-", "None", "none", "N/A", "n/a", "NULL", "null"}
	counted := []string{"Red", "Nonesuch", "N", "NA", "--", "****", "not set", " none", "null ", "0", "false"}
	var s strategy.Strategy
	for _, v := range ignored {
		if !s.Ignores(v) {
			t.Errorf("%q is not ignored", v)
		}
	}
	for _, v := range counted {
		if s.Ignores(v) {
			t.Errorf("%q is ignored", v)
		}
	}
	s.IgnoredValues = []string{}
	if s.Ignores("N/A") {
		t.Error("an empty list ignores N/A")
	}
	s.IgnoredValues = []string{"Senza Marca", "ÜBRIG", "k"}
	for v, want := range map[string]bool{"N/A": false, "senza marca": true, "übrig": true, "\u212a": true, "Senza": false} {
		if s.Ignores(v) != want {
			t.Errorf("%q is ignored: %v, want %v", v, !want, want)
		}
	}
}

func TestAllowedValuesMatchExactly(t *testing.T) {
	s := strategy.Strategy{AllowedValues: map[string]strategy.ValueSet{"tags": strategy.SetOf("News", "N/A"), "brand": {}}}
	for _, c := range []struct {
		facet, value string
		want         bool
	}{{"tags", "News", true}, {"tags", "news", false}, {"tags", "", false}, {"color", "Red", true}, {"brand", "Nike", true}} {
		if got := s.Allows(c.facet, c.value); got != c.want {
			t.Errorf("%s:%s is allowed: %v, want %v", c.facet, c.value, got, c.want)
		}
	}
	if rule := s.Rule("tags"); rule.Scores("N/A") {
		t.Error("an ignored value scores because it is allowed")
	}
}

// A rule decides as the strategy does, and without memory of its own for values that are
// not allowed.
func TestRulesEqualTheStrategy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom([]string{"N/A", "none", "News", "K", "k", "\u212a", "\u017f", "S", "(Not Set)"}),
			rapid.StringN(1, 40, 100))
		var s strategy.Strategy
		if rapid.Bool().Draw(t, "ignores") {
			s.IgnoredValues = rapid.SliceOfN(text, 0, 4).Draw(t, "ignored")
		}
		if rapid.Bool().Draw(t, "allows") {
			s.AllowedValues = map[string]strategy.ValueSet{"tags": strategy.SetOf(rapid.SliceOfN(text, 0, 4).Draw(t, "allowed")...)}
		}
		rule, value := s.Rule("tags"), text.Draw(t, "value")
		want := !s.Ignores(value) && s.Allows("tags", value)
		if rule.Scores(value) != want || rule.ScoresBytes([]byte(value)) != want {
			t.Fatalf("%q scores by the rule: %v and %v, want %v", value, rule.Scores(value), rule.ScoresBytes([]byte(value)), want)
		}
	})
	s := strategy.Strategy{AllowedValues: map[string]strategy.ValueSet{"tags": strategy.SetOf("News")}}
	rule, value := s.Rule("tags"), []byte("a value of more bytes than fit a small buffer on the stack")
	if n := testing.AllocsPerRun(100, func() { rule.ScoresBytes(value) }); n > 0 {
		t.Errorf("%v allocations for a value that is not allowed", n)
	}
}
