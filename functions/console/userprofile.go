package console

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
)

const (
	// barsShown is how many values of a facet are shown before a person asks for all, and
	// facetsShown how many facets with that many: of the others the best value is.
	barsShown   = 5
	facetsShown = 12
)

// facetBars are the values of one facet, the best first.
type facetBars struct {
	Facet  string
	ID     string // of the element
	Values []valueBar
	// Known is how many values the page knows, and All whether it shows them all.
	Known   int
	All     bool
	AllPath string
}

// valueBar is a value of a facet. Share is its part in the sum of the facet's scores, 0 to 1.
type valueBar struct {
	Value        string
	Score, Share float64
	WhyPath      string
	Why          *why // loaded with the page; nil: on demand
}

// byFacet groups affinities. The facets are in the order of their best values. all is the
// facet whose values are all shown.
func byFacet(path string, profile api.Profile, halfLife, all string) []facetBars {
	var facets []facetBars
	position, sums := map[string]int{}, map[string]float64{}
	for _, a := range profile.Affinities {
		i, seen := position[a.Facet]
		if !seen {
			i = len(facets)
			position[a.Facet] = i
			facets = append(facets, facetBars{Facet: a.Facet, ID: fmt.Sprintf("facet-%d", i), All: a.Facet == all,
				AllPath: allPath(path, a.Facet, halfLife, i)})
		}
		f := &facets[i]
		f.Known++
		sums[a.Facet] += a.Score
		most := barsShown
		if i >= facetsShown {
			most = 1
		}
		if f.All || len(f.Values) < most {
			f.Values = append(f.Values, valueBar{Value: a.Value, Score: a.Score,
				WhyPath: whyPath(path, a.Facet, a.Value, halfLife)})
		}
	}
	for _, f := range facets {
		for i := range f.Values {
			if sum := sums[f.Facet]; sum > 0 {
				f.Values[i].Share = f.Values[i].Score / sum
			}
		}
	}
	return facets
}

// Hidden is how many values are not shown.
func (f facetBars) Hidden() int { return f.Known - len(f.Values) }

// Bars are the values that are shown as bars, and Rest those of a list of all below them.
func (f facetBars) Bars() []valueBar { return f.Values[:min(barsShown, len(f.Values))] }

// Rest is empty unless all values are shown.
func (f facetBars) Rest() []valueBar { return f.Values[min(barsShown, len(f.Values)):] }

func withHalfLife(query url.Values, halfLife string) url.Values {
	if halfLife != "" {
		query.Set("halfLife", halfLife)
	}
	return query
}

func allPath(path, facet, halfLife string, i int) string {
	return path + "?" + withHalfLife(url.Values{"all": {facet}}, halfLife).Encode() + fmt.Sprintf("#facet-%d", i)
}

func whyPath(path, facet, value, halfLife string) string {
	return path + "/why?" + withHalfLife(url.Values{"facet": {facet}, "value": {value}}, halfLife).Encode()
}

// words say in a sentence what a user likes.
type words struct {
	Mostly []string // values that have most of the facet in which the user's taste is strongest
	Likes  []string // the values that stand out in other facets
}

const (
	// A value stands for its facet from half of the facet's scores on, alone or with the next.
	mostly = 0.5
	// A value stands out among those of its facet from a third of the scores on.
	standsOut = 1.0 / 3
	// mostLikes is how many facets a sentence names beside the strongest.
	mostLikes = 3
)

// inWords says what stands out in a profile.
func inWords(facets []facetBars) words {
	var w words
	for i, f := range facets {
		best := f.Values[0]
		switch {
		case i > 0 && best.Share >= standsOut && len(w.Likes) < mostLikes:
			w.Likes = append(w.Likes, best.Value)
		case i > 0:
		case best.Share >= mostly:
			w.Mostly = []string{best.Value}
		case len(f.Values) > 1 && best.Share+f.Values[1].Share >= mostly:
			w.Mostly = []string{best.Value, f.Values[1].Value}
		}
	}
	return w
}

// halfLivesOf returns the half-lives to choose from: none unless there are several. The
// session may not have the permission to read the strategy; the scores name the half-lives too.
func halfLivesOf(v *visit, path string, profile api.Profile, chosen string) ([]choice, error) {
	if len(profile.Affinities) == 0 || len(profile.Affinities[0].Scores) < 2 {
		return nil, nil
	}
	scores := profile.Affinities[0].Scores
	names := slices.SortedFunc(maps.Keys(scores), byLength)
	first := ""
	for _, name := range names {
		if first == "" && chosen == "" && scores[name] == profile.Affinities[0].Score {
			first = name
		}
	}
	if v.may(auth.Recommendation) {
		s, err := v.engine.Strategies().Get(v.Context())
		if err != nil {
			return nil, fmt.Errorf("read the strategy: %w", err)
		}
		if len(s.HalfLives) > 0 {
			first = s.HalfLives[0].String()
		}
	}
	var list []choice
	for _, name := range names {
		to := path + "?" + url.Values{"halfLife": {name}}.Encode()
		list = append(list, choice{Text: span(name), Path: to, Current: name == chosen || chosen == "" && name == first})
	}
	return list, nil
}

// byLength orders half-lives, the shortest first.
func byLength(a, b string) int {
	length := func(text string) float64 {
		h, err := strategy.ParseHalfLife(text)
		if err != nil {
			return 0
		}
		return h.Millis()
	}
	switch la, lb := length(a), length(b); {
	case la < lb:
		return -1
	case la > lb:
		return 1
	}
	return 0
}
