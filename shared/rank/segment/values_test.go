package segment_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// A part lists each filter once with its number of holders, whatever its value is, and
// has one posting list for each.
func TestValuesOfAPart(t *testing.T) {
	p := segment.NewPacker(segment.Scoring{}, 0)
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00")), 1, 24, -1)
		values := rapid.SliceOfNDistinct(value, 1, 200, rapid.ID).Draw(rt, "values")
		w, want := world{profiles: map[string]affinity.Profile{}}, map[event.Filter]int{}
		for i := range rapid.IntRange(1, 5).Draw(rt, "users") {
			profile := affinity.Profile{Until: t0, Known: true}
			for _, v := range values[i%len(values):] {
				f := event.Filter{Facet: fmt.Sprint("f", len(v)%2), Value: v}
				profile.Affinities = append(profile.Affinities, affinity.Affinity{Facet: f.Facet, Value: f.Value, Scores: []float64{1}})
				want[f]++
			}
			profile.Total = len(profile.Affinities)
			user := fmt.Sprint("u", i)
			w.users, w.profiles[user] = append(w.users, user), profile
		}
		part := pack(t, p, w, w.users, false, t0)
		got := map[event.Filter]int{}
		var order []event.Filter
		for _, cells := range part.rows[segment.Values] {
			err := segment.EachValue(cells[0].Value, func(facet, value string, holders int) error {
				f := event.Filter{Facet: facet, Value: value}
				got[f] += holders
				order = append(order, f)
				return nil
			})
			if err != nil {
				rt.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(part.lists) != len(want) {
			rt.Fatalf("%d lists for %d values; holders (-want +got):\n%s", len(part.lists), len(want), diff)
		}
		if !slices.IsSortedFunc(order, func(a, b event.Filter) int {
			return slices.Compare([]string{a.Facet, a.Value}, []string{b.Facet, b.Value})
		}) {
			rt.Fatalf("the values are not sorted: %q", order)
		}
	})
}
