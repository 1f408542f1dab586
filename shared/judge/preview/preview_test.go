package preview_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/preview"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// known returns a profile of values of two facets: v0, v1 ... of f, then w of
// g.
func known(scores ...float64) affinity.Profile {
	l := list(scores...)
	return affinity.Profile{Known: true, Affinities: l, Total: len(l)}
}

func TestReport(t *testing.T) {
	p := preview.New()
	p.Add("same", known(5, 3), known(5, 3))
	p.Add("nobody", affinity.Profile{}, affinity.Profile{})
	p.Add("turned", known(1, 2, 3), known(3, 2, 1))
	p.Add("scaled", known(4, 2), known(8, 4))
	p.Add("lost", known(6), known())

	r := p.Report()
	if r.Sampled != 5 || r.Known != 4 || r.Changed != 2 || r.Unchanged != 2 {
		t.Errorf("sampled %d, known %d, changed %d, unchanged %d", r.Sampled, r.Known, r.Changed, r.Unchanged)
	}
	if want := (preview.Orders{Changed: 2, TopFive: 2, TopTen: 2, TopOne: 2, Compared: 4}); r.Values != want {
		t.Errorf("orders %+v, want %+v", r.Values, want)
	}
	if r.Scale == nil || *r.Scale != 26./26 {
		t.Errorf("scale %v", r.Scale)
	}
	if diff := cmp.Diff(&preview.Correlation{Mean: 0.25, Min: -1, P10: -1}, r.Correlation); diff != "" {
		t.Errorf("correlation (-want +got):\n%s", diff)
	}
	// Of v0: 5/8, 1/6, 4/6 and 1 before, 5/8, 3/6, 8/12 and 0 after.
	want := []preview.Facet{{Facet: "f", Movers: []preview.Mover{
		{Value: "v0", ShareBefore: (5./8 + 1./6 + 4./6 + 1) / 4, ShareAfter: (5./8 + 3./6 + 8./12) / 4, Before: 4, After: 4, Users: 2},
		{Value: "v2", ShareBefore: 3. / 6 / 4, ShareAfter: 1. / 6 / 4, Before: 3. / 4, After: 1. / 4, Users: 1},
	}}}
	if diff := cmp.Diff(want, r.Facets, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("movers (-want +got):\n%s", diff)
	}
	var users []string
	for _, e := range r.Examples {
		users = append(users, fmt.Sprintf("%s %.0f", e.User, e.RankCorrelation))
	}
	if diff := cmp.Diff([]string{"turned -1", "lost 0"}, users); diff != "" {
		t.Errorf("examples (-want +got):\n%s", diff)
	}
	if e := r.Examples[1]; len(e.Before) != 1 || len(e.After) != 0 {
		t.Errorf("example %+v", e)
	}
}

func TestReportWithoutUsers(t *testing.T) {
	p := preview.New()
	p.Add("nobody", affinity.Profile{}, affinity.Profile{})
	if r := p.Report(); r.Sampled != 1 || r.Known != 0 || r.Correlation != nil || len(r.Facets) != 0 || len(r.Examples) != 0 {
		t.Errorf("%+v", r)
	}
}

// A report is bounded and does not depend on the order of the users.
func TestReportIsBoundedInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type user struct {
			name          string
			before, after affinity.Profile
		}
		scores := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 9), func(i int) float64 { return float64(i) }), 0, 14)
		users := make([]user, rapid.IntRange(0, 12).Draw(t, "users"))
		for i := range users {
			users[i] = user{fmt.Sprint("u", i), known(scores.Draw(t, "before")...), known(scores.Draw(t, "after")...)}
		}
		report := func(users []user) preview.Report {
			p := preview.New()
			for _, u := range users {
				p.Add(u.name, u.before, u.after)
			}
			return p.Report()
		}
		r, again := report(users), report(rapid.Permutation(users).Draw(t, "order"))
		if diff := cmp.Diff(r, again, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Fatalf("the order of users counts:\n%s", diff)
		}
		if r.Changed+r.Unchanged != r.Known || len(r.Examples) != min(5, r.Changed) {
			t.Fatalf("%d changed, %d unchanged, %d known, %d examples", r.Changed, r.Unchanged, r.Known, len(r.Examples))
		}
		for _, f := range r.Facets {
			if len(f.Movers) > 5 {
				t.Fatalf("%d movers", len(f.Movers))
			}
		}
		for _, e := range r.Examples {
			if len(e.Before) > 10 || len(e.After) > 10 {
				t.Fatalf("an example of %d and %d", len(e.Before), len(e.After))
			}
		}
	})
}

// A strategy that counts in another unit changes nothing that a ranker sees.
func TestOtherUnitChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 50), func(i int) float64 { return float64(i) }), 0, 14).Draw(t, "scores")
		unit := rapid.SampledFrom([]float64{0.5, 3, 1e-60, 0.1, 7}).Draw(t, "unit")
		scaled := make([]float64, len(scores))
		for i, s := range scores {
			scaled[i] = s * unit
		}
		p := preview.New()
		p.Add("ann", known(scores...), known(scaled...))
		if r := p.Report(); r.Changed != 0 || r.Values.Changed != 0 || len(r.Facets) != 0 || len(r.Examples) != 0 {
			t.Fatalf("%v in units of %v: %+v", scores, unit, r)
		}
	})
}

func TestOrdersOfObjects(t *testing.T) {
	of := func(color, brand int) strategy.Strategy {
		return strategy.Strategy{
			EventsScoring:         []strategy.EventScore{{EventName: "Seen", EventType: "view", Score: 1}},
			FacetsScoring:         []strategy.FacetScore{{FacetName: "color", Score: color}, {FacetName: "brand", Score: brand}},
			PersonalizationImpact: 100,
		}
	}
	profileOf := func(red, acme float64) affinity.Profile {
		return affinity.Profile{Known: true, Total: 2, Affinities: []affinity.Affinity{
			{Facet: "color", Value: "Red", Scores: []float64{red}}, {Facet: "brand", Value: "Acme", Scores: []float64{acme}},
		}}
	}
	object := func(id, facet, value string) ranking.Candidate {
		return ranking.Candidate{ObjectID: id, Object: ranking.Compile([]event.Filter{{Facet: facet, Value: value}})}
	}
	r := preview.NewRanked(of(90, 10), of(10, 90), []ranking.Candidate{
		object("red", "color", "Red"), object("acme", "brand", "Acme"), object("other", "brand", "Other"),
	})
	r.Add(profileOf(90, 10), profileOf(10, 90)) // red before acme, and then acme before red
	r.Add(profileOf(90, 10), profileOf(45, 5))
	r.Add(affinity.Profile{}, affinity.Profile{})
	if got, want := r.Orders(), (preview.Orders{Changed: 1, TopFive: 1, TopTen: 1, TopOne: 1, Compared: 2}); got != want {
		t.Errorf("orders %+v, want %+v", got, want)
	}
	none := preview.NewRanked(of(1, 1), of(1, 1), nil)
	if none.Add(profileOf(1, 2), profileOf(2, 1)); none.Orders().Compared != 0 {
		t.Errorf("orders %+v of no objects", none.Orders())
	}
}
