package rankers

import (
	"cmp"
	"slices"

	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// rules are sequential rules (Ludewig and Jannach, Evaluation of session-based recommendation
// algorithms, UMUAI 28, 2018): after A comes B. With the steps of a user numbered in their order,
//
//	weight(A, B) = the sum of 1 / (j - i) over the steps i < j <= i + reach of all users, A in i and
//	               B in j, A not B, divided by the number of users who turned to A
//
// An object scores the sum of the weights from the objects of the history's last step.
type rules struct {
	after []weighted // by object A
}

// weighted are objects with weights, the highest first; of equal ones the lower number.
type weighted struct {
	objects []int32
	weights []float64
}

// kept is how many objects a method keeps of each object.
const kept = 200

func newRules(t *training, reach int) *rules {
	sums := newSparse(t.objects)
	for _, steps := range t.users {
		for i := range steps {
			for j := i + 1; j < len(steps) && j <= i+reach; j++ {
				for _, a := range steps[i].Objects {
					for _, b := range steps[j].Objects {
						if a != b {
							sums.add(a, b, 1/float64(j-i))
						}
					}
				}
			}
		}
	}
	r := &rules{after: make([]weighted, t.objects)}
	for a := range r.after {
		r.after[a] = best(sums.row(a), func(w float64, _ int32) float64 { return w / float64(t.turned[a]) })
	}
	return r
}

// Score implements backtest.Order.
func (r *rules) Score(history []backtest.Step, scores []float64) {
	for _, a := range history[len(history)-1].Objects {
		r.after[a].addTo(scores, 1)
	}
}

func (w weighted) addTo(scores []float64, factor float64) {
	for i, o := range w.objects {
		scores[o] += w.weights[i] * factor
	}
}

// sparse is a matrix of few entries.
type sparse struct{ rows []map[int32]float64 }

func newSparse(n int) *sparse { return &sparse{make([]map[int32]float64, n)} }

func (s *sparse) add(a, b int32, x float64) {
	if s.rows[a] == nil {
		s.rows[a] = map[int32]float64{}
	}
	s.rows[a][b] += x
}

func (s *sparse) row(a int) map[int32]float64 { return s.rows[a] }

// best returns the kept entries of a row that weigh most.
func best(row map[int32]float64, weight func(x float64, b int32) float64) weighted {
	all := make([]int32, 0, len(row))
	weights := make(map[int32]float64, len(row))
	for b, x := range row {
		all, weights[b] = append(all, b), weight(x, b)
	}
	slices.SortFunc(all, func(a, b int32) int { return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b)) })
	all = all[:min(len(all), kept)]
	w := weighted{objects: all}
	for _, b := range all {
		w.weights = append(w.weights, weights[b])
	}
	return w
}
