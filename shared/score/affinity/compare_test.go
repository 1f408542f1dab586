package affinity_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// vanishing is where float64 begins to lose digits: scores below it are as good
// as zero, and may be listed or not.
const vanishing = 1e-290

// differ says in what two profiles differ by more than a relative error, "" if
// in nothing. It also holds both to the rules every profile keeps.
func differ(got, want affinity.Profile, tolerance float64) string {
	for _, p := range []affinity.Profile{got, want} {
		if fault := malformed(p); fault != "" {
			return fault
		}
	}
	if a, b := facts(got), facts(want); a != b {
		return fmt.Sprintf("got  %s\nwant %s", a, b)
	}
	a, b := scores(got), scores(want)
	for name, x := range a {
		if fault := apart(x, b[name], tolerance); fault != "" {
			return name + ": " + fault
		}
	}
	for name, y := range b {
		if fault := apart(a[name], y, tolerance); fault != "" {
			return name + ": " + fault
		}
	}
	return ""
}

func facts(p affinity.Profile) string {
	return fmt.Sprintf("anchor %d, known %v, last %d, until %d, half-lives %v, version %d, retention %d, total %d",
		p.Anchor, p.Known, p.LastEventAt, p.Until, p.HalfLives, p.StrategyVersion, p.RetentionDays, p.Total)
}

func scores(p affinity.Profile) map[string][]float64 {
	m := make(map[string][]float64, len(p.Affinities))
	for _, a := range p.Affinities {
		m[a.Facet+":"+a.Value] = a.Scores
	}
	return m
}

// apart compares two lists of scores, of which one may be absent.
func apart(x, y []float64, tolerance float64) string {
	n := max(len(x), len(y))
	for i := range n {
		a, b := at(x, i), at(y, i)
		if math.Abs(a-b) > tolerance*max(a, b)+vanishing {
			return fmt.Sprintf("got %v, want %v", x, y)
		}
	}
	return ""
}

func at(scores []float64, i int) float64 {
	if i < len(scores) {
		return scores[i]
	}
	return 0
}

func malformed(p affinity.Profile) string {
	for i, a := range p.Affinities {
		switch {
		case len(a.Scores) != max(1, len(p.HalfLives)):
			return fmt.Sprintf("%s:%s has %d scores under %d half-lives", a.Facet, a.Value, len(a.Scores), len(p.HalfLives))
		case slices.Min(a.Scores) < 0 || math.IsNaN(slices.Max(a.Scores)) || math.IsInf(slices.Max(a.Scores), 0):
			return fmt.Sprintf("%s:%s has the scores %v", a.Facet, a.Value, a.Scores)
		case slices.Max(a.Scores) == 0:
			return fmt.Sprintf("%s:%s is listed with nothing", a.Facet, a.Value)
		}
		if i > 0 && !before(p.Affinities[i-1], a) {
			return fmt.Sprintf("%s:%s is listed after its place", p.Affinities[i-1].Facet, p.Affinities[i-1].Value)
		}
	}
	if p.Total < len(p.Affinities) {
		return fmt.Sprintf("total is %d, and %d are listed", p.Total, len(p.Affinities))
	}
	return ""
}

// misjudged says in what a profile is not one of the bounds, "" if it is. all is
// the profile without bounds.
func misjudged(got, all affinity.Profile, b affinity.Bounds) string {
	bounded := got
	got.Affinities, all.Affinities = nil, slices.Clone(all.Affinities)
	if got.Until < all.Until {
		got.Until = all.Until // the choice may end before: see chosenUntil
	}
	if fault := differ(got, affinity.Profile{
		Anchor: all.Anchor, Known: all.Known, LastEventAt: all.LastEventAt, Until: all.Until, HalfLives: all.HalfLives,
		StrategyVersion: all.StrategyVersion, RetentionDays: all.RetentionDays, Total: all.Total,
	}, 0); fault != "" {
		return fault
	}
	l, listed, want := b.Leeway(bounded, all, all), scores(bounded), scores(all)
	if l.Exceeds() {
		return fmt.Sprintf("%d values are too many or too long", len(bounded.Affinities))
	}
	for _, a := range bounded.Affinities {
		name := a.Facet + ":" + a.Value
		if fault := apart(a.Scores, want[name], 1e-9); fault != "" {
			return name + ": " + fault
		}
		if want[name] != nil && !l.MayList(a.Facet, a.Value) {
			return name + " must not be listed"
		}
	}
	leftOut := map[string][]float64{}
	for _, a := range all.Affinities {
		if listed[a.Facet+":"+a.Value] != nil {
			continue
		}
		if !l.MayMiss(a.Facet, a.Value) {
			return fmt.Sprintf("%s:%s %v is not listed", a.Facet, a.Value, a.Scores)
		}
		most := leftOut[a.Facet]
		if most == nil {
			most = make([]float64, len(a.Scores))
			leftOut[a.Facet] = most
		}
		for k, s := range a.Scores {
			most[k] = max(most[k], s)
		}
	}
	for _, a := range bounded.LeftOut {
		if fault := apart(a.Scores, leftOut[a.Facet], 1e-9); fault != "" {
			return fmt.Sprintf("left out of %s: %s", a.Facet, fault)
		}
		delete(leftOut, a.Facet)
	}
	for facet, most := range leftOut {
		if slices.Max(most) > vanishing {
			return fmt.Sprintf("left out of %s: %v, and the profile does not say so", facet, most)
		}
	}
	return ""
}

// before reports whether a is to be listed before b: they never tie.
func before(a, b affinity.Affinity) bool {
	if a.Scores[0] != b.Scores[0] {
		return a.Scores[0] > b.Scores[0]
	}
	return strings.Compare(a.Facet, b.Facet) < 0 || a.Facet == b.Facet && a.Value < b.Value
}
