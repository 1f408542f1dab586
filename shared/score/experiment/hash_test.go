package experiment

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// The first five are vectors of GrowthBook's specification. Of the others each is what GrowthBook's SDK for Go answers
// (github.com/growthbook/growthbook-golang v0.7.0). A program outside this repository has compared both on 1,000,000
// random ids and seeds: all were equal.
func TestHashIsThatOfGrowthBook(t *testing.T) {
	for _, v := range []struct {
		seed, unit string
		want       float64
	}{
		{"seed", "a", 0.0505},
		{"seed", "b", 0.2696},
		{"foo", "ab", 0.2575},
		{"foo", "def", 0.2019},
		{"89123klj", "8952klfjas09ujkasdf", 0.124},
		{"q4", "user-1", 0.9602},
		{"q4", "user-2", 0.1115},
		{"holdout", "anonymous-5f3c9a7e-1b2d", 0.8185},
		{"été 2026", "user-1", 0.2745},
		{"Жук", "AbC=+/_-", 0.5243},
		{"中文", "u", 0.9525},
		{"😀𝒳", "user-1", 0.0459},
		{"", "user-1", 0.8703},
		{"seed", "", 0.4286},
	} {
		if got := hash(v.seed, v.unit); got != v.want {
			t.Errorf("hash(%q, %q) = %v, want %v", v.seed, v.unit, got, v.want)
		}
	}
}

// A user who is held out stays so under a larger share, and nobody else leaves under a smaller one.
func TestHoldoutMovesThoseWhoMustMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0, MaxHoldout)
		h := Holdout{Share: share.Draw(t, "share"), Seed: rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "seed")}
		larger := h
		larger.Share = max(h.Share, share.Draw(t, "other"))
		unit := rapid.StringMatching(`[A-Za-z0-9_-]{1,40}`).Draw(t, "unit")
		n := hash(h.Seed, unit)
		if h.Has(unit) && !larger.Has(unit) {
			t.Fatalf("%v holds %s out, and %v does not", h, unit, larger)
		}
		if moves := h.Has(unit) != larger.Has(unit); moves != (h.Share <= n && n < larger.Share) {
			t.Fatalf("%s, of %v, moves between %v and %v: %t", unit, n, h, larger, moves)
		}
	})
}

func TestHoldoutShare(t *testing.T) {
	const users = 20_000
	h, held, both := Holdout{Share: 0.1, Seed: "q4"}, 0, 0
	other := Holdout{Share: 0.1, Seed: "next"}
	for i := range users {
		if unit := fmt.Sprint("user-", i); h.Has(unit) {
			if held++; other.Has(unit) {
				both++
			}
		}
	}
	// Four standard deviations: 170 of 2,000, and 54 of 200.
	if held < 1830 || held > 2170 || both < 146 || both > 254 {
		t.Errorf("%d of %d users are held out, want about 2000; %d of them under another seed, want about 200", held, users,
			both)
	}
}

func TestHoldoutCheck(t *testing.T) {
	for _, c := range []struct {
		Holdout
		want string
	}{
		{Holdout{}, ""},
		{Holdout{0.2, "s"}, ""},
		{Holdout{0.0001, "été 2026"}, ""},
		{Holdout{1, "s"}, "holdout: share 1: must be from 0 to 0.2: who is held out gets no personalization"},
		{Holdout{-0.1, "s"}, "holdout: share -0.1: must be from 0 to 0.2: who is held out gets no personalization"},
		{Holdout{0.00001, "s"}, "holdout: share 1e-05: must be 0, or at least 0.0001"},
		{Holdout{0.1, ""}, `holdout: seed "": want 1 to 64 bytes of printable text`},
		{Holdout{0.1, "a\n"}, `holdout: seed "a\n": want 1 to 64 bytes of printable text`},
	} {
		got := ""
		if err := c.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.Holdout, got, c.want)
		}
	}
}
