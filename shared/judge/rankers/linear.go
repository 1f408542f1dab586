package rankers

import (
	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// linear is EASE (Steck, Embarrassingly shallow autoencoders for sparse data, WWW 2019): with X the
// matrix of users and the objects that they turned to, 1 or 0,
//
//	P = (X^T X + lambda I)^-1,   weight(A, B) = -P[A][B] / P[B][B] for A not B, else 0
//
// An object scores the sum of the weights from the objects of the history, each times its recency.
type linear struct {
	recency
	place []int32 // by object: its row; -1: nobody turned to it before the cut
	of    []int32 // by row: its object
	inner []float64
}

// newLinear returns nil if more than most objects have been turned to: memory goes by their
// square, and time by their cube.
func newLinear(t *training, lambda float64, most int) *linear {
	l := &linear{place: make([]int32, t.objects)}
	for o := range l.place {
		if l.place[o] = -1; t.turned[o] > 0 {
			l.place[o] = int32(len(l.of))
			l.of = append(l.of, int32(o))
		}
	}
	n := len(l.of)
	if n > most {
		return nil
	}
	gram := make([]float64, n*n)
	both := t.together()
	for i, a := range l.of {
		for b, x := range both.row(int(a)) {
			gram[i*n+int(l.place[b])] = x
		}
		gram[i*n+i] = float64(t.turned[a]) + lambda
	}
	invert(gram, n)
	for i := range n {
		for j := range n {
			if i != j {
				gram[i*n+j] /= -gram[j*n+j]
			}
		}
	}
	for i := range n {
		gram[i*n+i] = 0
	}
	l.inner = gram
	return l
}

// with returns the same weights for another recency.
func (l *linear) with(r recency) *linear {
	other := *l
	other.recency = r
	return &other
}

// Score implements backtest.Order.
func (l *linear) Score(history []backtest.Step, scores []float64) {
	n := len(l.of)
	l.each(history, func(a int32, weight float64) {
		if l.place[a] < 0 {
			return
		}
		for j, x := range l.inner[int(l.place[a])*n:][:n] {
			scores[l.of[j]] += weight * x
		}
	})
}
