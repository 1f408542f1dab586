package recommend_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/rank/recommend"
)

// drawNeighbours returns the links of some objects to others.
func drawNeighbours(t *rapid.T) []ranking.Neighbours {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ranking.Neighbours {
		n := ranking.Neighbours{
			Past:   ranking.Past{ObjectID: "a", Last: rapid.Bool().Draw(t, "last"), Age: rapid.IntRange(0, 5).Draw(t, "age")},
			Events: float64(rapid.IntRange(0, 3).Draw(t, "events")),
		}
		lists := n.Lists()
		for _, list := range append(lists[:], &n.Bought) {
			for _, id := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"b", "c", "d", "e"}), rapid.ID).Draw(t, "ids") {
				*list = append(*list, ranking.Pair{ObjectID: id, Count: float64(rapid.IntRange(0, 3).Draw(t, "count"))})
			}
		}
		return n
	}), 0, 4).Draw(t, "neighbours")
}

// TestLinkedEqualsDefinition reads the definition of a score as it stands.
func TestLinkedEqualsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := drawNeighbours(t)
		for m, kinds := range map[recommend.Model][]int{recommend.Next: {1}, recommend.Related: {1, 2}, recommend.ForYou: {0, 1, 2}, recommend.Together: {3}} {
			sum := func(kind int, id string) (sum float64) {
				for _, a := range of {
					counts := []float64{0, 0, math.Exp2(-float64(a.Age) / 3), 0}
					if a.Last && a.Events > 0 {
						counts[0], counts[1], counts[3] = 1/a.Events, 1/a.Events, 1/a.Events
					}
					for _, p := range [][]ranking.Pair{a.Pairs, a.Sequence, a.Related, a.Bought}[kind] {
						if p.ObjectID == id {
							sum += counts[kind] * p.Count
						}
					}
				}
				return sum
			}
			ids := []string{"b", "c", "d", "e"}
			score := map[string]float64{}
			for _, id := range ids {
				for _, kind := range kinds {
					top := sum(kind, slices.MaxFunc(ids, func(x, y string) int { return cmp.Compare(sum(kind, x), sum(kind, y)) }))
					if top > 0 {
						score[id] += sum(kind, id) / top / float64(len(kinds))
					}
				}
			}
			got := recommend.Linked(m, of)
			for i, e := range got {
				if math.Abs(e.Score-score[e.ObjectID]) > 1e-12 || e.Source == "" {
					t.Fatalf("%s: %+v, want a score of %v", m, e, score[e.ObjectID])
				}
				if i > 0 && (e.Score > got[i-1].Score || e.Score == got[i-1].Score && e.ObjectID < got[i-1].ObjectID) {
					t.Fatalf("%s: %+v stands behind %+v", m, e, got[i-1])
				}
				delete(score, e.ObjectID)
			}
			for id, missing := range score {
				if missing > 0 {
					t.Fatalf("%s: %s is missing, its score is %v", m, id, missing)
				}
			}
		}
	})
}

func TestPool(t *testing.T) {
	p := recommend.NewPool([]string{"a"}, []string{"b"})
	p.Add(2, recommend.From("x", []string{"a", "c", "c"})...)
	p.Add(3, recommend.From("y", []string{"c", "b", "d", "e", "f"})...)
	if got := fmt.Sprint(p.Entries); got != "[{c 0 x} {d 0 y} {e 0 y}]" {
		t.Error(got)
	}
}
