package measure

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

func shapes() *rapid.Generator[shape] {
	return rapid.Custom(func(t *rapid.T) shape {
		s := shape{
			users: rapid.IntRange(1, 30).Draw(t, "users"), events: rapid.IntRange(1, 30).Draw(t, "events"),
			facets: rapid.IntRange(1, 10).Draw(t, "facets"), values: rapid.IntRange(1, 5).Draw(t, "values"),
		}
		s.selected = rapid.IntRange(1, s.facets).Draw(t, "selected")
		return s
	})
}

// The events of a user do not depend on earlier calls or on reused memory.
func TestEventsAreReproducible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shapes().Draw(t, "shape")
		one, other := newDataset(s), newDataset(s)
		i := rapid.IntRange(0, s.users-1).Draw(t, "user")
		j := rapid.IntRange(0, s.users-1).Draw(t, "another")
		memory := one.events(j, nil)
		before := slices.Clone(one.events(i, nil))
		if diff := cmp.Diff(before, other.events(i, memory)); diff != "" {
			t.Fatalf("user %d differs in reused memory (-fresh +used):\n%s", i, diff)
		}
		if i != j && cmp.Equal(before, one.events(j, nil)) {
			t.Fatalf("users %d and %d have the same events", i, j)
		}
	})
}

func TestEventsHaveShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := shapes().Draw(t, "shape")
		d := newDataset(s)
		if len(d.strategy.FacetsScoring) != s.selected {
			t.Fatalf("%d facets score, want %d", len(d.strategy.FacetsScoring), s.selected)
		}
		events := d.events(0, nil)
		if len(events) != s.events {
			t.Fatalf("%d events, want %d", len(events), s.events)
		}
		ids := map[string]bool{}
		for i, e := range events {
			if !window.Contains(e.Time) || i > 0 && e.Time < events[i-1].Time {
				t.Fatalf("event %d at %d is outside the window or out of order", i, e.Time)
			}
			if ids[e.ID] {
				t.Fatalf("duplicate id %s", e.ID)
			}
			ids[e.ID] = true
			checkCounts(t, d, e.Counts)
		}
	})
}

func checkCounts(t *rapid.T, d *dataset, counts []affinity.Count) {
	perFacet, seen := map[string]int{}, map[affinity.Count]bool{}
	for _, c := range counts {
		if seen[c] || c.N != 1 {
			t.Fatalf("count %v is repeated or is not 1", c)
		}
		seen[c] = true
		perFacet[c.Facet]++
	}
	for _, name := range d.names {
		if n := perFacet[name]; n < 1 || n > d.values {
			t.Fatalf("%d values of %s, want 1 to %d", n, name, d.values)
		}
	}
	if len(perFacet) != d.facets {
		t.Fatalf("%d facets, want %d", len(perFacet), d.facets)
	}
}

// The data is generated for every run, so results of two versions compare only if
// both generate this data.
func TestDataSetIsStable(t *testing.T) {
	d := newDataset(shape{users: 1000, events: 300, facets: 8, selected: 3, values: 2})
	e := d.events(7, nil)[42]
	got := []any{e.Time, e.ID, string(e.Type), e.Name, e.Counts[0].Value, len(e.Counts)}
	want := []any{int64(1786778911893), "WudEWqc-go8", "click", "Banner Clicked", "brand 94", 12}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event 42 of user 7 (-want +got):\n%s", diff)
	}
}
