package algolia

import (
	"cmp"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/preview"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Comparison is how the profiles of one user differ.
type Comparison struct {
	UserToken string `json:"userToken"`
	// Algolia and Engine report where the user is known.
	Algolia bool `json:"algolia"`
	Engine  bool `json:"engine"`
	// Common are how many values both profiles have. Missing are those that the engine's
	// lacks, New those that Algolia's lacks.
	Common  int      `json:"common"`
	Missing []string `json:"missing"`
	New     []string `json:"new"`
	// Order is Kendall's tau-b between the two orders: 1 the same, -1 the reverse.
	Order float64 `json:"order"`
	// First are the values that score most, of which several may score the same.
	First       []string `json:"first"`
	EngineFirst []string `json:"engineFirst"`
}

// SameFirst reports whether a value scores most in both profiles, or both are empty.
func (c Comparison) SameFirst() bool {
	if len(c.First)+len(c.EngineFirst) == 0 {
		return true
	}
	return slices.ContainsFunc(c.First, func(value string) bool { return slices.Contains(c.EngineFirst, value) })
}

// Compare compares the scores of a user's profile at Algolia with those of the engine's.
func Compare(theirs, ours api.PersonalizationProfile) Comparison {
	c := Comparison{Missing: []string{}, New: []string{}}
	before, after := affinities(theirs), affinities(ours)
	c.Order = preview.RankCorrelation(before, after)
	c.First, c.EngineFirst = highest(before), highest(after)
	scored := map[string]bool{}
	for _, a := range after {
		scored[name(a)] = true
	}
	for _, a := range before {
		if value := name(a); scored[value] {
			c.Common++
			delete(scored, value)
		} else {
			c.Missing = append(c.Missing, value)
		}
	}
	for _, a := range after {
		if scored[name(a)] {
			c.New = append(c.New, name(a))
		}
	}
	return c
}

func name(a affinity.Affinity) string { return a.Facet + ":" + a.Value }

// affinities are the scores of a profile, the highest first.
func affinities(p api.PersonalizationProfile) []affinity.Affinity {
	var all []affinity.Affinity
	for facet, values := range p.Scores {
		for value, score := range values {
			all = append(all, affinity.Affinity{Facet: facet, Value: value, Scores: []float64{float64(score)}})
		}
	}
	slices.SortFunc(all, func(a, b affinity.Affinity) int {
		return cmp.Or(cmp.Compare(b.Scores[0], a.Scores[0]), cmp.Compare(name(a), name(b)))
	})
	return all
}

// highest are the values that score as much as the first one.
func highest(sorted []affinity.Affinity) []string {
	names := []string{}
	for _, a := range sorted {
		if a.Scores[0] < sorted[0].Scores[0] {
			break
		}
		names = append(names, name(a))
	}
	return names
}
