package ranking

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// work is the memory of one ranking. Requests take it from a pool, so that a
// ranking allocates its result alone.
type work struct {
	r          *Ranker
	q          *Query
	impact     float64
	relevancy  scale
	logHighest float64 // log(1 + the query's highest count), 0 if that is not positive

	terms table
	links linkTable
	// linkParts are the parts of these, made when an answer explains the first.
	linkParts map[string][kinds][]Part

	// By candidate. Excluded ones are 0.
	affinity, session []float64
	linked            [][kinds]float64
	// The highest of each.
	topAffinity, topSession float64
	topLinked               [kinds]float64

	order   []ranked
	spread  []ranked // the order, by score alone
	ends    []int32  // in spread
	greedy  greedy
	fetched uint64
}

// ranked is a candidate while the order is sorted.
type ranked struct {
	score     float64
	candidate int32
}

var pool = sync.Pool{New: func() any { return &work{} }}

// Rank ranks the candidates of a query. It does not change or keep the query.
func (r *Ranker) Rank(q *Query) Result {
	w := pool.Get().(*work)
	defer w.release()
	w.r, w.q, w.relevancy = r, q, relevancyScale(q)
	w.impact = impact(r.strategy, q, w.relevancy)
	w.logHighest = 0
	if positive(q.HighestCount) {
		w.logHighest = math.Log1p(q.HighestCount)
	}
	personal := w.terms.fill(r, q)
	w.links.fill(r, q)
	w.match()

	result := Result{Items: w.items(w.best())}
	if !personal && len(w.links.sums) == 0 {
		if result.Fallback = Catalog; r.weights.popularity > 0 && w.logHighest > 0 {
			result.Fallback = Popularity
		}
	}
	return result
}

func (w *work) release() {
	w.terms.reset(0) // the strings belong to the request
	w.greedy.reset()
	w.r, w.q, w.linkParts = nil, nil, nil
	pool.Put(w)
}

// match computes the features that are divided by the highest among the
// candidates.
func (w *work) match() {
	n := len(w.q.Candidates)
	w.affinity, w.session, w.linked = zeros(w.affinity, n), zeros(w.session, n), zeros(w.linked, n)
	w.topAffinity, w.topSession, w.topLinked = 0, 0, [kinds]float64{}
	w.fetch()
	for i := range w.q.Candidates {
		c := &w.q.Candidates[i]
		if excluded(w.q, c) {
			continue
		}
		if c.Object != nil && len(w.terms.terms) > 0 {
			w.affinity[i], w.session[i] = w.matchObject(c.Object)
			w.topAffinity, w.topSession = max(w.topAffinity, w.affinity[i]), max(w.topSession, w.session[i])
		}
		if of := w.links.of(c.ObjectID); of != nil {
			for kind := range of {
				w.linked[i][kind] = of[kind].value()
				w.topLinked[kind] = max(w.topLinked[kind], w.linked[i][kind])
			}
		}
	}
}

// fetch reads a part of each object before matchObject reads them one after the
// other. These reads depend on nothing, so the processor waits for many of them at
// the same time, and a ranking of objects that its cache does not hold takes half
// as long.
func (w *work) fetch() {
	sum := uint64(0)
	for i := range w.q.Candidates {
		if o := w.q.Candidates[i].Object; o != nil && len(o.text) > 0 {
			sum += o.facets[0].hash + o.facets[len(o.facets)-1].hash + o.values[0].hash + o.values[len(o.values)-1].hash +
				uint64(o.text[0]) + uint64(o.text[len(o.text)-1])
		}
	}
	w.fetched = sum // or the compiler would leave out the reads
}

func (w *work) matchObject(o *Object) (_, _ float64) {
	var profile, session sum
	scored, start := 0, int32(0)
	for i := range o.facets {
		f := &o.facets[i]
		if facet := w.r.facets.find(f.hash, f.name.of(o.text)); facet >= 0 {
			scored += int(f.until - start)
			for j := start; j < f.until; j++ {
				if k := w.terms.find(o.values[j].hash, facet, o.values[j].name.of(o.text)); k != nil {
					e := &w.terms.terms[k.term]
					profile.add(e.profile)
					session.add(e.session)
				}
			}
		}
		start = f.until
	}
	if scored == 0 {
		return 0, 0
	}
	root := math.Sqrt(float64(scored))
	return (profile.high + profile.low) / root, (session.high + session.low) / root
}

// weighted are the features of a candidate with their weights, in the order of
// names.
type weighted [9]float64

var names = [len(weighted{})]string{Relevancy, Affinity, Session, Popularity, Pairs, Sequence, Related, Freshness,
	seenBefore}

func (w *work) features(i int32) (f weighted) {
	c, r := &w.q.Candidates[i], &w.r.ranking
	f[0] = (1 - w.impact) * w.relevancy.of(c)
	f[1] = w.impact * share(w.affinity[i], w.topAffinity)
	f[2] = w.impact * w.r.weights.session * share(w.session[i], w.topSession)
	if r.Popularity.Weight > 0 && w.logHighest > 0 && positive(c.Count) {
		f[3] = w.r.weights.popularity * min(math.Log1p(c.Count)/w.logHighest, 1)
	}
	for kind, top := range w.topLinked {
		f[4+kind] = w.r.weights.linked[kind] * share(w.linked[i][kind], top)
	}
	if r.Freshness.Weight > 0 && c.Dated {
		f[7] = w.r.weights.freshness * FreshnessOf(w.q.Now, c.Published, r.Freshness.HalfLife.Millis())
	}
	if c.Seen && w.q.Seen == Demote {
		f[8] = -w.impact * demotion
	}
	return f
}

// sum adds up the features, in the order of the formula.
func (f *weighted) sum() float64 { return f[0] + f[1] + f[2] + f[3] + f[4] + f[5] + f[6] + f[7] + f[8] }

// best returns the candidates that the query asks for, in order.
func (w *work) best() []ranked {
	w.order = w.order[:0]
	for i := range w.q.Candidates {
		if excluded(w.q, &w.q.Candidates[i]) {
			continue
		}
		f := w.features(int32(i))
		w.order = append(w.order, ranked{f.sum(), int32(i)})
	}
	n := limited(w.q, len(w.order))
	if w.q.Diversity != nil {
		roundAll(w.order)
		return w.diversify(n)
	}
	best := w.first(n)
	roundAll(best)
	return best
}

func roundAll(order []ranked) {
	for i := range order {
		order[i].score = affinity.Rounded(order[i].score)
	}
}

// first returns the best n of the order, sorted.
func (w *work) first(n int) []ranked {
	if n < len(w.order) {
		w.selectBest(n)
	}
	return w.sorted(w.order[:n])
}

// selectBest moves the best n candidates, in any order, to the front: a heap of
// n with the worst of them on top.
func (w *work) selectBest(n int) {
	top := w.order[:n]
	for i := n/2 - 1; i >= 0; i-- {
		w.sink(top, i)
	}
	for i := n; i < len(w.order); i++ {
		if w.compare(w.order[i], top[0]) < 0 {
			top[0] = w.order[i]
			w.sink(top, 0)
		}
	}
}

func (w *work) sink(heap []ranked, i int) {
	for child := 2*i + 1; child < len(heap); child = 2*i + 1 {
		if child+1 < len(heap) && w.compare(heap[child+1], heap[child]) > 0 {
			child++
		}
		if w.compare(heap[child], heap[i]) <= 0 {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// near is a bit more than the largest part of a score between it and the next rounded
// one.
const near = 1.1e-11

// compare orders two candidates by their rounded scores, but rounds only those that are
// near each other: the order of others is the same without.
func (w *work) compare(a, b ranked) int {
	if math.Abs(a.score-b.score) <= near*math.Abs(a.score) {
		a.score, b.score = affinity.Rounded(a.score), affinity.Rounded(b.score)
	}
	switch {
	case a.score > b.score:
		return -1
	case a.score < b.score:
		return 1
	}
	return cmp.Or(
		strings.Compare(w.q.Candidates[a.candidate].ObjectID, w.q.Candidates[b.candidate].ObjectID),
		cmp.Compare(a.candidate, b.candidate))
}

func (w *work) items(order []ranked) []Item {
	items := make([]Item, len(order))
	for i, o := range order {
		items[i] = Item{ObjectID: w.q.Candidates[o.candidate].ObjectID, Candidate: int(o.candidate), Score: o.score}
		if w.q.Explain {
			items[i].Features = w.explain(o.candidate)
			if w.q.Diversity == nil {
				continue
			}
			if f := w.greedy.explain(w.q, i, o.candidate); f.Value != 0 {
				items[i].Features = append(items[i].Features, f)
			}
		}
	}
	return items
}

// zeros returns n zeros in the memory of s if it is large enough.
func zeros[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
