package console

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

// maxReasons is how many reasons a card shows beside the terms of the score.
const maxReasons = 3

// reason says in words why an object stands where it does.
type simReason struct {
	Text, Of string // Of is a text from outside
	Weight   float64
}

// Adds is what the reason adds to the score.
func (r simReason) Adds() string { return signed(r.Weight) }

// simTerm is a part of a score, with what it is made of.
type simTerm struct {
	Name  string
	Value float64
	Parts []simPart
	More  int
}

// Adds is what the term adds to the score.
func (t simTerm) Adds() string { return signed(t.Value) }

type simPart struct {
	Name  string
	Value float64
}

// Adds is what the part adds to the score.
func (p simPart) Adds() string { return signed(p.Value) }

// signed writes a part of a score with its sign.
func signed(x float64) string {
	switch {
	case math.Abs(x) < 0.0005:
		return "0.000"
	case x < 0:
		return "−" + strconv.FormatFloat(-x, 'f', 3, 64)
	}
	return "+" + strconv.FormatFloat(x, 'f', 3, 64)
}

// termNames are the names of the features of a score.
var termNames = map[string]string{
	"relevancy": "Place today", "affinity": "Profile", "session": "Last visit", "popularity": "Popularity",
	"pairs": "Seen together", "sequence": "Seen next", "neighbours": "Same people",
	"freshness": "New", "seen": "Seen before", "diversity": "Too alike",
}

// reasonsOf are the parts of a score in words, the largest first.
func reasonsOf(features []api.RankFeature, shown map[string]product) []simReason {
	var all []simReason
	liked := map[string]bool{}
	for _, f := range features {
		switch f.Name {
		case "affinity":
			for _, p := range f.Parts[:min(2, len(f.Parts))] {
				liked[p.Name] = true
				all = append(all, simReason{"likes", p.Name, p.Value})
			}
		case "session":
			if len(f.Parts) > 0 && !liked[f.Parts[0].Name] {
				all = append(all, simReason{"lately", f.Parts[0].Name, f.Parts[0].Value})
			}
		case "pairs":
			for _, p := range f.Parts[:min(1, len(f.Parts))] {
				all = append(all, simReason{"often follows what they saw last:", nameOf(p.Name, shown), f.Value})
			}
		case "sequence":
			for _, p := range f.Parts[:min(1, len(f.Parts))] {
				all = append(all, simReason{"people went on to it from", nameOf(p.Name, shown), f.Value})
			}
		case "neighbours":
			for _, p := range f.Parts[:min(1, len(f.Parts))] {
				all = append(all, simReason{"chosen by those who chose", nameOf(p.Name, shown), f.Value})
			}
		case "diversity":
			r := simReason{"behind the places that differ", "", f.Value}
			if len(f.Parts) > 0 {
				r.Text, r.Of = "too like", nameOf(f.Parts[0].Name, shown)
			}
			all = append(all, r)
		case "popularity":
			all = append(all, simReason{"popular with many", "", f.Value})
		case "freshness":
			all = append(all, simReason{"new", "", f.Value})
		case "seen":
			all = append(all, simReason{"seen before", "", f.Value})
		}
	}
	slices.SortStableFunc(all, func(a, b simReason) int { return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight)) })
	all = slices.DeleteFunc(all, func(r simReason) bool { return math.Abs(r.Weight) < 0.0005 })
	return all
}

// byDifference leaves out what all cards have as a reason, which explains no place, and of the others all but
// the largest.
func byDifference(cards []simCard) {
	type what struct{ text, of string }
	cardsWith := map[what]int{}
	for _, c := range cards {
		seen := map[what]bool{}
		for _, r := range c.Reasons {
			if w := (what{r.Text, r.Of}); !seen[w] {
				seen[w] = true
				cardsWith[w]++
			}
		}
	}
	for i := range cards {
		if len(cards) > 1 {
			cards[i].Reasons = slices.DeleteFunc(cards[i].Reasons, func(r simReason) bool {
				return cardsWith[what{r.Text, r.Of}] == len(cards)
			})
		}
		cards[i].Reasons = cards[i].Reasons[:min(maxReasons, len(cards[i].Reasons))]
	}
}

// termsOf are all parts of a score.
func termsOf(features []api.RankFeature, shown map[string]product) []simTerm {
	var all []simTerm
	for _, f := range features {
		t := simTerm{Name: cmp.Or(termNames[f.Name], f.Name), Value: f.Value}
		for _, p := range f.Parts[:min(4, len(f.Parts))] {
			t.Parts = append(t.Parts, simPart{nameOf(p.Name, shown), p.Value})
		}
		t.More = len(f.Parts) - len(t.Parts)
		all = append(all, t)
	}
	return all
}

// nameOf is the name of an object if the page knows it. Parts that are filters stay as they are.
func nameOf(name string, shown map[string]product) string {
	return cmp.Or(shown[name].Name, name)
}
