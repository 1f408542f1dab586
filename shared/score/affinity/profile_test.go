package affinity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func profileOf(halfLives []strategy.HalfLife, affinities ...affinity.Affinity) affinity.Profile {
	return affinity.Profile{Anchor: now, Known: true, Until: now + 90*dayMS, HalfLives: halfLives, Affinities: affinities, Total: len(affinities)}
}

func one(facet, value string, scores ...float64) affinity.Affinity {
	return affinity.Affinity{Facet: facet, Value: value, Scores: scores}
}

func TestAt(t *testing.T) {
	tests := map[string]struct {
		profile affinity.Profile
		after   int64 // ms
		want    []affinity.Affinity
	}{
		"each score by its half-life": {
			profile: profileOf(strategy.InDays(1, 2), one("f", "a", 8, 8), one("f", "b", 4, 16)),
			after:   2 * dayMS,
			want:    []affinity.Affinity{one("f", "a", 2, 4), one("f", "b", 1, 8)},
		},
		"a plain sum stays": {
			profile: profileOf(nil, one("f", "a", 8)),
			after:   2 * dayMS,
			want:    []affinity.Affinity{one("f", "a", 8)},
		},
		"the past is the anchor": {
			profile: profileOf(strategy.InDays(1), one("f", "a", 8)),
			after:   -2 * dayMS,
			want:    []affinity.Affinity{one("f", "a", 8)},
		},
		"what vanishes under one half-life only is kept": {
			profile: profileOf(strategy.InDays(1, 1000), one("f", "a", 8, 8)),
			after:   2000 * dayMS,
			want:    []affinity.Affinity{one("f", "a", 0, 2)},
		},
		"what vanishes altogether is dropped": {
			profile: profileOf(strategy.InDays(1), one("f", "a", 1e300), one("f", "b", 1e-300)),
			after:   1000 * dayMS,
			want:    []affinity.Affinity{one("f", "a", 1e300/0x1p1000)},
		},
		"scores that become equal are listed by name": {
			profile: profileOf(strategy.InDays(1, 1000), one("g", "b", 4, 8), one("g", "a", 2, 16), one("f", "z", 1, 4)),
			after:   2000 * dayMS,
			want:    []affinity.Affinity{one("f", "z", 0, 1), one("g", "a", 0, 4), one("g", "b", 0, 2)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := cmp.Diff(nil, test.profile)
			got := test.profile.At(now + test.after)
			want := profileOf(test.profile.HalfLives, test.want...)
			want.Anchor, want.Total = max(now, now+test.after), test.profile.Total
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if cmp.Diff(nil, test.profile) != before {
				t.Error("At changed the profile it was called on")
			}
		})
	}
}

// TestAtPartialProfile: a profile of which only the best were decoded keeps its total.
func TestAtPartialProfile(t *testing.T) {
	b := profileOf(strategy.InDays(1), one("f", "a", 4), one("f", "b", 2), one("f", "c", 1)).AppendBinary(nil)
	p, err := affinity.ParseProfile(b, 1)
	if err != nil {
		t.Fatal(err)
	}
	p = p.At(now + dayMS)
	if diff := cmp.Diff([]affinity.Affinity{one("f", "a", 2)}, p.Affinities); diff != "" || p.Total != 3 {
		t.Errorf("total %d, want 3; (-want +got):\n%s", p.Total, diff)
	}
}

func TestScaled(t *testing.T) {
	weights := strategy.Strategy{FacetsScoring: []strategy.FacetScore{
		{FacetName: "color", Score: 50}, {FacetName: "brand", Score: 100}, {FacetName: "size", Score: 0},
	}}
	tests := map[string]struct {
		profile affinity.Profile
		want    map[string]map[string]int
	}{
		"nothing": {profile: profileOf(nil)},
		"the weight of the facet is taken out": {
			profile: profileOf(nil, one("brand", "Apple", 1000), one("color", "Red", 500), one("color", "Blue", 250)),
			want:    map[string]map[string]int{"brand": {"Apple": 20}, "color": {"Red": 20, "Blue": 10}},
		},
		"rounded half up, and never below 1": {
			profile: profileOf(nil, one("brand", "a", 1000), one("brand", "b", 525), one("brand", "c", 524), one("brand", "d", 0.001)),
			want:    map[string]map[string]int{"brand": {"a": 20, "b": 11, "c": 10, "d": 1}},
		},
		"facets that do not score are left out, and do not set the scale": {
			profile: profileOf(nil, one("size", "42", 5000), one("gone", "x", 4000), one("color", "Red", 1)),
			want:    map[string]map[string]int{"color": {"Red": 20}},
		},
		"by the first half-life": {
			profile: profileOf(strategy.InDays(30, 180), one("brand", "a", 4, 1), one("brand", "b", 2, 8), one("brand", "c", 0, 8)),
			want:    map[string]map[string]int{"brand": {"a": 20, "b": 10}},
		},
		"however small": {
			profile: profileOf(strategy.InDays(30), one("brand", "a", 4e-300), one("brand", "b", 2e-300)),
			want:    map[string]map[string]int{"brand": {"a": 20, "b": 10}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.profile.Scaled(weights)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" || got == nil {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompiledPairsAndFacets(t *testing.T) {
	c := affinity.Compile(strategy.Strategy{
		EventsScoring: []strategy.EventScore{
			{EventName: "b", EventType: "view", Score: 1}, {EventName: "none", EventType: "view", Score: 0}, {EventName: "a", EventType: "click", Score: 2},
		},
		FacetsScoring: []strategy.FacetScore{{FacetName: "g", Score: 1}, {FacetName: "none", Score: 0}, {FacetName: "f", Score: 1}},
	})
	if diff := cmp.Diff([]affinity.Pair{{Type: "view", Name: "b"}, {Type: "click", Name: "a"}}, c.Pairs()); diff != "" {
		t.Errorf("pairs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"g", "f"}, c.Facets()); diff != "" {
		t.Errorf("facets (-want +got):\n%s", diff)
	}
	sc := affinity.NewScorer(c, affinity.Window{Now: now})
	for name, test := range map[string]struct {
		section affinity.Section
		want    bool
	}{
		"all score":            {sc.Section("view", "b", "f"), true},
		"event of weight 0":    {sc.Section("view", "none", "f"), false},
		"facet of weight 0":    {sc.Section("view", "b", "none"), false},
		"event not named":      {sc.Section("view", "a", "f"), false},
		"facet not named":      {sc.Section("view", "b", "h"), false},
		"section never looked": {affinity.Section{}, false},
	} {
		if test.section.OK() != test.want {
			t.Errorf("%s: got %v, want %v", name, test.section.OK(), test.want)
		}
	}
}

// TestSectionsOutliveScorers: a section may be kept for all scorers of a compiled
// strategy, and a scorer goes on after it has given a profile.
func TestSectionsOutliveScorers(t *testing.T) {
	c := affinity.Compile(benchStrategy())
	first := affinity.NewScorer(c, affinity.Window{Now: now})
	sec := first.Section("view", "Product viewed", "facet1")
	for _, sc := range []*affinity.Scorer{first, affinity.NewScorer(c, affinity.Window{Now: now})} {
		sc.Begin(now)
		sc.Add(sec, []byte("x"), 1)
		early := sc.Profile()
		sc.Begin(now + 1) // outside: must not count
		sc.Add(sec, []byte("x"), 1)
		sc.Begin(now)
		sc.Add(sec, []byte("x"), 2)
		if diff := cmp.Diff([]affinity.Affinity{one("facet1", "x", 1_000)}, early.Affinities); diff != "" {
			t.Errorf("early (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]affinity.Affinity{one("facet1", "x", 3_000)}, sc.Profile().Affinities); diff != "" {
			t.Errorf("late (-want +got):\n%s", diff)
		}
	}
}
