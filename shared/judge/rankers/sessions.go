package rankers

import (
	"cmp"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// sessions are the neighbours of users, with the weights of rare objects (S-KNN with idf: Ludewig and
// Jannach, as for rules). With H the objects of the history, V those of another user before the cut,
// and idf(A) = log(users / users who turned to A),
//
//	likeness(V) = the sum of idf(A) x the recency of A in the history over A in H and V, / sqrt(|V|),
//	              x 2^-(age of V's last step / half-life)
//
// The neighbours are the size users of the highest likeness. An object scores the sum of the likeness
// of the neighbours who turned to it.
type sessions struct {
	*training
	recency
	size     int
	halfLife float64 // ms; 0: users do not age
	sets     [][]int32
	turnedBy [][]int32 // by object: users, by place in sets
	factor   []float64 // by user
	idf      []float64 // by object

	likeness []float64 // by user; all 0 between cases
}

func newSessions(t *training, r recency, size int, halfLife float64) *sessions {
	s := &sessions{training: t, recency: r, size: size, halfLife: halfLife,
		turnedBy: make([][]int32, t.objects), idf: make([]float64, t.objects)}
	for _, steps := range t.users {
		if len(steps) == 0 {
			continue
		}
		set, age := objectsOf(steps), 1.0
		if halfLife > 0 {
			age = math.Exp2(-float64(t.cut-steps[len(steps)-1].Time) / halfLife)
		}
		for _, o := range set {
			s.turnedBy[o] = append(s.turnedBy[o], int32(len(s.sets)))
		}
		s.sets, s.factor = append(s.sets, set), append(s.factor, age/math.Sqrt(float64(len(set))))
	}
	for o, users := range s.turnedBy {
		if len(users) > 0 {
			s.idf[o] = math.Log(float64(len(s.sets)) / float64(len(users)))
		}
	}
	return s
}

// order returns an order for one goroutine.
func (s *sessions) order() backtest.Order {
	own := *s
	own.likeness = make([]float64, len(s.sets))
	return &own
}

// Score implements backtest.Order.
func (s *sessions) Score(history []backtest.Step, scores []float64) {
	var near []int32
	s.each(history, func(a int32, weight float64) {
		for _, v := range s.turnedBy[a] {
			if s.likeness[v] == 0 {
				near = append(near, v)
			}
			s.likeness[v] += weight * s.idf[a] * s.factor[v]
		}
	})
	slices.Sort(near)
	near = slices.Compact(near)
	slices.SortFunc(near, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.likeness[b], s.likeness[a]), cmp.Compare(a, b))
	})
	for _, v := range near[:min(len(near), s.size)] {
		for _, o := range s.sets[v] {
			scores[o] += s.likeness[v]
		}
	}
	for _, v := range near {
		s.likeness[v] = 0
	}
}
