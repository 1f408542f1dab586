package vocabulary_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/catalog/vocabulary"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/realdata"
)

// of returns a vocabulary in which value number i of brand is carried by i+1
// objects of its own, so that the last value is the most usual one.
func of(values ...string) *vocabulary.Vocabulary {
	v := vocabulary.New()
	for i, value := range values {
		for range i + 1 {
			v.Add([]event.Filter{{Facet: "brand", Value: value}})
		}
	}
	return v
}

func TestAlikeValuesAreSuggested(t *testing.T) {
	for _, c := range []struct {
		from, to string
		reason   vocabulary.Reason
	}{
		{"Tech &amp; Gadgets", "Tech & Gadgets", vocabulary.Entities},
		{"Tech &amp;amp; Gadgets", "Tech &#38; Gadgets", vocabulary.Entities},
		{"Caf&eacute;", "Cafe\u0301", vocabulary.Unicode},
		{"Чай и\u0306од", "Чай йод", vocabulary.Unicode},
		{"\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국", vocabulary.Unicode},
		{"か\u3099くふ", "がくふ", vocabulary.Unicode},
		{"Hà Nội", "Ha\u0300 No\u0323\u0302i", vocabulary.Unicode},
		{"ｶﾀｶﾅ", "カタカナ", vocabulary.Unicode},
		{"Ｎｉｋｅ", "Nike", vocabulary.Unicode},
		{"new\u00a0balance", "new balance", vocabulary.Unicode},
		{"NIKE", "Nike", vocabulary.Case},
		{"STRASSE", "straße", vocabulary.Case},
		{"ЙОД", "и\u0306од", vocabulary.Case},
		{"ΟΔΟΣ", "οδος", vocabulary.Case},
		{"Tech &amp; Gadgets", "tech gadgets", vocabulary.Separators},
		{"Ha Noi", "Hà Nội", vocabulary.Accents},
		{"Istanbul", "İSTANBUL", vocabulary.Accents},
		{"T-Shirt", "t shirt", vocabulary.Separators},
		{"Levi's", "LEVIS", vocabulary.Separators},
		{"Citroën", "citroen", vocabulary.Accents},
		{"Cafe\u0301", "cafe", vocabulary.Accents},
		{"Shoes", "shoe", vocabulary.Plural},
		{"dress", "Dresses", vocabulary.Plural},
		{"Bodies", "body", vocabulary.Plural},
		{"Addidas", "Adidas", vocabulary.Spelling},
		{"Samsugn", "Samsung", vocabulary.Spelling},
		{"Mercedez", "Mercedes", vocabulary.Spelling},
		{"Mercedez Benz", "mercedes-benz", vocabulary.Spelling},
		{"iPhone 7", "iphone", vocabulary.Digits},
		{"Air Max 90", "AirMax", vocabulary.Digits},
	} {
		got := of(c.from, c.to).Suggest("brand", nil)
		want := []vocabulary.Suggestion{{Facet: "brand", From: c.from, To: c.to, Reason: c.reason, FromObjects: 1, ToObjects: 2}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s and %s (-want +got):\n%s", c.from, c.to, diff)
		}
	}
}

func TestOtherValuesAreNotSuggested(t *testing.T) {
	for _, c := range [][2]string{
		{"Red", "Bed"}, {"Size 40", "Size 41"}, {"iPhone 12", "iPhone 13"}, {"1.5", "15"}, {"1.5 l", "15 l"},
		{"as", "a"}, {"Size", "Size S"}, {"male", "female"}, {"-", "_"}, {"100", "1000"},
		{`LETTER "B" KEY RING`, `LETTER "A" KEY RING`}, {"Red enamel trim mug", "Red enamel trim jug"}, {"Lantern star S", "Lantern star L"},
		{"asdidases", "adidasess"}, {"shot", "shoot"}, {"handles", "andles"}, {"platter", "planter"},
		{"leather trousers", "leathers trouser"},
		{"чай", "чаи"}, {"が", "か"}, {"कि", "कु"}, {"한국", "한굴"}, {"A4", "A"}, {"iPhone 7", "iPhone 8"}, {"7", "iphone"}, {"&amp;", "&"},
	} {
		if got := of(c[0], c[1]).Suggest("brand", nil); len(got) > 0 {
			t.Errorf("%s and %s: suggested %+v", c[0], c[1], got)
		}
	}
}

func TestValuesOfTheSameObjectsAreSuggested(t *testing.T) {
	v := vocabulary.New()
	for i := range 10 {
		filters := []event.Filter{{Facet: "color", Value: "Red"}, {Facet: "color", Value: "Red"}, {Facet: "color", Value: "Warm"}}
		if i > 0 {
			filters = append(filters, event.Filter{Facet: "color", Value: "Rouge"})
		}
		v.Add(filters)
	}
	for range 5 { // Warm stands on others, too
		v.Add([]event.Filter{{Facet: "color", Value: "Warm"}})
	}
	want := []vocabulary.Suggestion{{
		Facet: "color", From: "Rouge", To: "Red", Reason: vocabulary.Objects, FromObjects: 9, ToObjects: 10, SharedObjects: 9,
	}}
	if diff := cmp.Diff(want, v.Suggest("color", nil)); diff != "" {
		t.Errorf("suggestions (-want +got):\n%s", diff)
	}
}

// A value with digits counts as the one without, however many objects carry it, and after
// all surer suggestions.
func TestDigitsAreTheLastReason(t *testing.T) {
	got := of("iphone", "iPhone", "iPhone 7").Suggest("brand", nil)
	want := []vocabulary.Suggestion{
		{Facet: "brand", From: "iphone", To: "iPhone", Reason: vocabulary.Case, FromObjects: 1, ToObjects: 2},
		{Facet: "brand", From: "iPhone 7", To: "iPhone", Reason: vocabulary.Digits, FromObjects: 3, ToObjects: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("suggestions (-want +got):\n%s", diff)
	}
	got = of("iphone", "iPhone 7").Suggest("brand", nil)
	if len(got) != 1 || got[0].From != "iPhone 7" || got[0].To != "iphone" || !got[0].Reason.Doubtful() || vocabulary.Spelling.Doubtful() {
		t.Errorf("suggestions %+v", got)
	}
}

func TestAliasesOfTheStrategyAreKept(t *testing.T) {
	// NIKE is the target of an alias, and so the target of the rarer Nike, although
	// more objects carry Nike. nike has its alias already.
	got := of("nike", "NIKE", "Nike").Suggest("brand", map[string]string{"nike": "NIKE"})
	want := []vocabulary.Suggestion{{Facet: "brand", From: "Nike", To: "NIKE", Reason: vocabulary.Case, FromObjects: 3, ToObjects: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("suggestions (-want +got):\n%s", diff)
	}
	if got := of("NIKE", "Nike").Suggest("brand", map[string]string{"a": "NIKE", "b": "Nike"}); len(got) > 0 {
		t.Errorf("two targets of aliases: suggested %+v", got)
	}
}

// TestSuggestionsAreAliasesOfOneStep checks random vocabularies of few letters,
// which are full of alike values.
func TestSuggestionsAreAliasesOfOneStep(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		v := vocabulary.New()
		for range 200 {
			v.Add([]event.Filter{{Facet: "tag", Value: word(r)}, {Facet: "tag", Value: word(r)}})
		}
		merged := map[string]string{"aaaaaa": "bbbbbb", "aaaaab": "bbbbbb"}
		found := v.Suggest("tag", merged)
		if diff := cmp.Diff(found, v.Suggest("tag", merged)); diff != "" {
			t.Fatalf("seed %d: two answers:\n%s", seed, diff)
		}
		for _, s := range found {
			if _, ok := merged[s.From]; ok {
				t.Fatalf("seed %d: %s has two aliases", seed, s.From)
			}
			merged[s.From] = s.To
		}
		for from, to := range merged {
			if _, ok := merged[to]; ok {
				t.Fatalf("seed %d: %s -> %s -> %s is a chain", seed, from, to, merged[to])
			}
		}
	}
}

func word(r *rand.Rand) string {
	text := make([]byte, 5+r.IntN(3))
	for i := range text {
		text[i] = "aabAB-s"[r.IntN(7)]
	}
	return string(text)
}

// TestRealVocabularies prints what the catalogs of real shops have.
func TestRealVocabularies(t *testing.T) {
	for _, set := range realdata.With(t, realdata.ObjectsFile) {
		v := vocabulary.New()
		for _, o := range realdata.Objects(t, set) {
			v.Add(o.Filters)
		}
		for _, facet := range v.Facets() {
			found := v.Suggest(facet, nil)
			t.Logf("%s: %s has %d values, %d suggestions", set, facet, v.Values(facet), len(found))
			for _, s := range found[:min(len(found), 20)] {
				t.Logf("  %s -> %s: %s (%d, %d, %d)", s.From, s.To, s.Reason, s.FromObjects, s.ToObjects, s.SharedObjects)
			}
		}
	}
}

// BenchmarkSuggest has 28,000 values, of four words each, on three objects.
func BenchmarkSuggest(b *testing.B) {
	for _, n := range []int{7_000, 28_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			v := vocabulary.New()
			for range n {
				value := ""
				for range 4 {
					value += word(r) + " "
				}
				for range 3 {
					v.Add([]event.Filter{{Facet: "tag", Value: value}})
				}
			}
			for b.Loop() {
				v.Suggest("tag", nil)
			}
		})
	}
}
