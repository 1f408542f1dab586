package crowd_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/crowd"
)

// While the lists fit the memory they equal brute force. When they do not, each lists the best
// of all objects but Bound, and the filters that most objects carry stay.
func TestLikes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, objects := range []int{0, 1, 50, 3_000} {
		exact, bounded := crowd.NewLikes(1<<30), crowd.NewLikes(60_000)
		want := map[event.Filter][]crowd.Scored{}
		for i := range objects {
			id, count := fmt.Sprintf("o%05d", rnd.IntN(1<<30)), float64(rnd.IntN(40))
			tag := event.Filter{Facet: "tag", Value: fmt.Sprint(rnd.IntN(8))}
			filters := []event.Filter{{Facet: "id", Value: fmt.Sprint(i)}, tag, {Facet: "long", Value: strings.Repeat("x", 1100)}, tag}
			for _, f := range filters[:2] {
				if count > 0 {
					want[f] = append(want[f], crowd.Scored{ObjectID: id, Score: count})
				}
			}
			exact.Add(id, count, filters)
			bounded.Add(id, count, filters)
		}
		for f, all := range want {
			slices.SortFunc(all, func(a, b crowd.Scored) int {
				return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ObjectID, b.ObjectID))
			})
			want[f] = all[:min(len(all), crowd.MaxLiked)]
		}
		got := map[event.Filter][]crowd.Scored{}
		for f, all := range exact.All() {
			stored, err := crowd.ParseLiked(crowd.AppendLiked(nil, all))
			if err != nil {
				t.Fatal(err)
			}
			got[f] = stored
		}
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || exact.Bound() != 0 {
			t.Errorf("%d objects, bound %d (-brute force +lists):\n%s", objects, exact.Bound(), diff)
		}
		kept, tags := 0, 0
		for f, all := range bounded.All() {
			if kept++; f.Facet == "tag" {
				tags++
			}
			if diff := gocmp.Diff(want[f], all); diff != "" {
				t.Errorf("%d objects, %v (-brute force +lists of little memory):\n%s", objects, f, diff)
			}
		}
		if (bounded.Bound() > 0) != (objects == 3_000) || objects == 3_000 && (tags != 8 || kept > 500) {
			t.Errorf("%d objects: bound %d, %d lists, %d of tags", objects, bounded.Bound(), kept, tags)
		}
	}
}
