package preview_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/preview"
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
	if r.Sampled != 5 || r.Known != 4 || r.Changed != 3 || r.Unchanged != 1 {
		t.Errorf("sampled %d, known %d, changed %d, unchanged %d", r.Sampled, r.Known, r.Changed, r.Unchanged)
	}
	if diff := cmp.Diff(&preview.Correlation{Mean: 0.25, Min: -1, P10: -1}, r.Correlation); diff != "" {
		t.Errorf("correlation (-want +got):\n%s", diff)
	}
	// v0: 5+1+4+6 before, 5+3+8+0 after; v1: 3+2+2, 3+2+4; v2: 3, 1.
	want := []preview.Facet{{Facet: "f", Movers: []preview.Mover{
		{Value: "v1", Before: 7. / 4, After: 9. / 4, Users: 1},
		{Value: "v2", Before: 3. / 4, After: 1. / 4, Users: 1},
		{Value: "v0", Before: 4, After: 4, Users: 3},
	}}}
	if diff := cmp.Diff(want, r.Facets); diff != "" {
		t.Errorf("movers (-want +got):\n%s", diff)
	}
	var users []string
	for _, e := range r.Examples {
		users = append(users, fmt.Sprintf("%s %.0f", e.User, e.RankCorrelation))
	}
	if diff := cmp.Diff([]string{"turned -1", "lost 0", "scaled 1"}, users); diff != "" {
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
		if diff := cmp.Diff(r, again); diff != "" {
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
