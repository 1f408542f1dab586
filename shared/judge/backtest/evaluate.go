package backtest

import (
	"context"
	"math"
	"slices"
)

// ranker orders the candidates of cases. It is used by one goroutine.
type ranker interface {
	// rank sets the score of each candidate, by object. A candidate with a higher
	// score is shown first; of equal ones, that with the lower tie.
	rank(in *instant, candidates []int32, scores []float64)
	ties() []int32 // by object; nil: the order of the IDs
}

// outcome is how a ranker did on one case.
type outcome struct {
	ndcg       float64
	hit        float64 // 1 if a relevant object is in the top list
	reciprocal float64 // 1 / the place of the first relevant object, from 1
}

// judge ranks all cases. The error is that of ctx.
func (c *Cases) judge(ctx context.Context, newRanker func() ranker) (*Result, error) {
	outcomes := make([]outcome, len(c.cases))
	var workers []*worker
	err := spread(ctx, len(c.cases), func() func(i int) {
		w := newWorker(c, newRanker())
		workers = append(workers, w)
		return func(i int) { outcomes[i] = w.evaluate(&c.cases[i]) }
	})
	if err != nil {
		return nil, err
	}
	shown := 0
	for o := range c.log.objects {
		if slices.ContainsFunc(workers, func(w *worker) bool { return w.shown[o] }) {
			shown++
		}
	}
	return c.result(outcomes, float64(shown)/float64(len(c.log.objects))), nil
}

// worker evaluates one case after the other, without allocating memory.
type worker struct {
	cases      *Cases
	ranker     ranker
	ties       []int32
	candidates []int32
	scores     []float64 // by object, of the candidates
	excluded   []bool    // by object; all false between cases
	relevant   []bool    // by object; all false between cases
	shown      []bool    // by object: it was in a top list
	top        topList
}

func newWorker(c *Cases, r ranker) *worker {
	n := len(c.log.objects)
	return &worker{
		cases: c, ranker: r, ties: r.ties(), candidates: make([]int32, 0, n), scores: make([]float64, n),
		excluded: make([]bool, n), relevant: make([]bool, n), shown: make([]bool, n), top: topList{size: c.options.At},
	}
}

// evaluate ranks the candidates of a case and scores the order.
func (w *worker) evaluate(in *instant) outcome {
	w.findCandidates(in)
	w.ranker.rank(in, w.candidates, w.scores)
	mark(w.relevant, in.relevant, true)
	defer mark(w.relevant, in.relevant, false)

	first := w.place(in.relevant[0])
	for _, o := range in.relevant[1:] {
		if p := w.place(o); p.before(first) {
			first = p
		}
	}
	ahead, least := 0, math.Inf(-1) // score of the last place of a full list
	w.top.places = w.top.places[:0]
	for _, o := range w.candidates {
		score := w.scores[o]
		if score < least && score < first.score {
			continue
		}
		p := w.place(o)
		if p.before(first) {
			ahead++
		}
		least = w.top.add(p)
	}
	return w.outcome(ahead, len(in.relevant))
}

// outcome scores the top list, given how many candidates are ahead of the first
// relevant one.
func (w *worker) outcome(ahead, relevant int) outcome {
	gain, ideal := 0.0, 0.0
	for i, p := range w.top.places {
		w.shown[p.object] = true
		if w.relevant[p.object] {
			gain += discount(i)
		}
	}
	for i := range min(relevant, w.top.size) {
		ideal += discount(i)
	}
	o := outcome{ndcg: gain / ideal, reciprocal: 1 / float64(ahead+1)}
	if ahead < w.top.size {
		o.hit = 1
	}
	return o
}

// discount is what a relevant object is worth at a place of the list, from 0.
func discount(place int) float64 {
	if place < len(discounts) {
		return discounts[place]
	}
	return 1 / math.Log2(float64(place+2))
}

var discounts = func() (d [DefaultAt]float64) {
	for i := range d {
		d[i] = 1 / math.Log2(float64(i+2))
	}
	return d
}()

// findCandidates lists the objects that the user had not turned to before, in
// the order of their IDs.
func (w *worker) findCandidates(in *instant) {
	seen := w.cases.history[in.seenStart:in.seenEnd]
	mark(w.excluded, seen, true)
	w.candidates = w.candidates[:0]
	if f := w.cases.within; f != nil {
		w.candidates = f.sharing(in.objects, w.excluded, w.relevant, w.candidates)
	} else {
		for o, excluded := range w.excluded {
			if !excluded {
				w.candidates = append(w.candidates, int32(o))
			}
		}
	}
	mark(w.excluded, seen, false)
}

func mark[T any](set []T, objects []int32, value T) {
	for _, o := range objects {
		set[o] = value
	}
}

// place is a candidate with what determines its place in the order.
type place struct {
	score       float64
	tie, object int32
}

func (w *worker) place(object int32) place {
	tie := object
	if w.ties != nil {
		tie = w.ties[object]
	}
	return place{w.scores[object], tie, object}
}

func (p place) before(o place) bool { return p.score > o.score || p.score == o.score && p.tie < o.tie }

// topList keeps the first candidates of an order.
type topList struct {
	size   int
	places []place // in order
}

// add adds a candidate if it is one of the first. It returns the lowest score
// that a candidate needs to be.
func (t *topList) add(p place) float64 {
	if len(t.places) == t.size {
		if last := t.places[t.size-1]; !p.before(last) {
			return last.score
		}
		t.places = t.places[:t.size-1]
	}
	at := len(t.places)
	for at > 0 && p.before(t.places[at-1]) {
		at--
	}
	t.places = slices.Insert(t.places, at, p)
	if len(t.places) < t.size {
		return math.Inf(-1)
	}
	return t.places[t.size-1].score
}
