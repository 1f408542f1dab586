package segment_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Users are in the order of the keys of their rows, in which a comma follows the token.
func TestTokenOrderIsThatOfKeys(t *testing.T) {
	token := rapid.StringMatching(`[+\-/=_0a]{0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := token.Draw(t, "a"), token.Draw(t, "b")
		want := strings.Compare(a+",", b+",")
		if a == "" || b == "" {
			want = strings.Compare(a, b) // "" is where the first user begins
		}
		if got := segment.TokenOrder(a, b); got != want {
			t.Errorf("%q and %q: %d, want %d", a, b, got, want)
		}
	})
}

// A part takes users in that order, finds them, and covers those in its range.
func TestTokensWithPlus(t *testing.T) {
	users := []string{"+", "a+", "a+b", "a", "a-", "b"}
	p := segment.NewPacker(segment.Scoring{Version: 1}, 0)
	p.Begin(1, false, 1)
	for _, user := range users {
		if err := p.Add(user, affinity.Profile{StrategyVersion: 1, Until: 5}.AppendBinary(nil)); err != nil {
			t.Fatal(err)
		}
	}
	var tokens segment.TokenRow
	var index segment.TokenIndex
	if _, err := p.Finish(1, func(r segment.Row) (err error) {
		switch r.Kind {
		case segment.Tokens:
			tokens, err = segment.ParseTokens(r.Cells[0].Value)
		case segment.Index:
			index, err = segment.ParseIndex(r.Cells[0].Value)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i, user := range users {
		if place, found := tokens.Find(user); place != i || !found || index.Row(user) != 0 {
			t.Errorf("%s: place %d, found %t, row %d", user, place, found, index.Row(user))
		}
	}
	of := segment.Part{From: "a+b", To: "a-"}
	for user, want := range map[string]bool{"a+": false, "a+b": true, "a": true, "a-": false, "b": false} {
		if of.Covers(user) != want {
			t.Errorf("the part from a+b to a- covers %s: %t", user, !want)
		}
	}
}
