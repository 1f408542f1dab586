package backtest

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// seeds is how many random orders the baseline averages.
const seeds = 20

// Popularity ranks candidates by how many judged events before the cut name
// them. The error is that of ctx.
func (c *Cases) Popularity(ctx context.Context) (*Result, error) {
	scores := make([]float64, len(c.log.objects))
	for o, n := range c.crowd.popularity {
		scores[o] = float64(n)
	}
	return c.judge(ctx, func() ranker { return popular(scores) })
}

// popular are scores that do not depend on the case, by object.
type popular []float64

func (p popular) rank(_ *instant, candidates []int32, scores []float64) {
	for _, o := range candidates {
		scores[o] = p[o]
	}
}

func (popular) ties() []int32 { return nil }

// Pairs ranks candidates by what users turn to after the objects A of the
// user's previous instant: the sum over A of count(A, B) / popularity(A), and
// then by popularity. The error is that of ctx.
func (c *Cases) Pairs(ctx context.Context) (*Result, error) {
	return c.judge(ctx, func() ranker {
		return &paired{crowd: c.crowd, sums: make([]float64, len(c.log.objects))}
	})
}

// paired ranks by pairs.
type paired struct {
	crowd *statistics
	sums  []float64 // by object; all 0 between cases
}

func (p *paired) rank(in *instant, candidates []int32, scores []float64) {
	for _, a := range in.previous {
		for i, b := range p.crowd.pairs[a].objects {
			p.sums[b] += float64(p.crowd.pairs[a].counts[i]) / float64(p.crowd.popularity[a])
		}
	}
	for _, o := range candidates {
		scores[o] = p.sums[o]
	}
	for _, a := range in.previous {
		for _, b := range p.crowd.pairs[a].objects {
			p.sums[b] = 0
		}
	}
}

func (p *paired) ties() []int32 { return p.crowd.rank }

// alone ranks candidates by one kind of links, and then by popularity. s says which events
// are of a session. The error is that of ctx.
func (c *Cases) alone(ctx context.Context, s strategy.Strategy, kind crowd.Kind) (*Result, error) {
	s.Ranking = &strategy.Ranking{Neighbours: strategy.SuggestedRanking().Neighbours} // so that the whole session counts
	compiled := c.compile(s)
	return c.judge(ctx, func() ranker { return &linked{compiled.ranker(), int(kind)} })
}

// linked ranks by one kind of links.
type linked struct {
	*scorer
	kind int
}

func (r *linked) rank(in *instant, candidates []int32, scores []float64) {
	r.walk.to(in)
	r.addSession(in)
	r.addLinks(r.kind, candidates)
	for _, o := range candidates {
		scores[o] = r.scorer.linked[r.kind][o]
	}
	r.clear()
}

func (r *linked) ties() []int32 { return r.cases.crowd.rank }

// Random is the mean of 20 random orders of each case. They depend on the case
// alone. The error is that of ctx.
func (c *Cases) Random(ctx context.Context) (*Result, error) {
	outcomes := make([]outcome, len(c.cases))
	var workers []*shuffler
	err := spread(ctx, len(c.cases), func() func(i int) {
		w := &shuffler{worker: newWorker(c, popular(nil)), shownBy: make([]uint32, len(c.log.objects))}
		workers = append(workers, w)
		return func(i int) { outcomes[i] = w.evaluate(&c.cases[i]) }
	})
	if err != nil {
		return nil, err
	}
	shown := 0
	for o := range c.log.objects {
		orders := uint32(0)
		for _, w := range workers {
			orders |= w.shownBy[o]
		}
		shown += bits.OnesCount32(orders)
	}
	return c.result(outcomes, float64(shown)/(seeds*float64(len(c.log.objects)))), nil
}

// shuffler draws random orders.
type shuffler struct {
	*worker
	shownBy []uint32 // by object: a bit for each seed in whose top lists it was
}

// evaluate averages the outcomes of random orders.
func (s *shuffler) evaluate(in *instant) outcome {
	s.findCandidates(in)
	mark(s.relevant, in.relevant, true)
	defer mark(s.relevant, in.relevant, false)
	var sum outcome
	for seed := range seeds {
		o := s.shuffle(rand.New(rand.NewPCG(uint64(seed), in.key)), len(in.relevant))
		for _, p := range s.top.places {
			s.shownBy[p.object] |= 1 << seed
		}
		sum.ndcg += o.ndcg
		sum.hit += o.hit
		sum.reciprocal += o.reciprocal
	}
	return outcome{ndcg: sum.ndcg / seeds, hit: sum.hit / seeds, reciprocal: sum.reciprocal / seeds}
}

// shuffle draws the top list of a random order and, if no relevant object is on
// it, how far behind it the first one is. The other places do not matter.
func (s *shuffler) shuffle(rng *rand.Rand, relevant int) outcome {
	n := len(s.candidates)
	ahead := n
	s.top.places = s.top.places[:0]
	for i := range min(n, s.top.size) {
		at := i + rng.IntN(n-i)
		s.candidates[i], s.candidates[at] = s.candidates[at], s.candidates[i]
		o := s.candidates[i]
		s.top.places = append(s.top.places, place{object: o})
		if s.relevant[o] {
			ahead = min(ahead, i)
		}
	}
	if ahead == n {
		listed := len(s.top.places)
		ahead = listed + lowest(rng, n-listed, relevant)
	}
	return s.outcome(ahead, relevant)
}

// lowest draws k different numbers below n and returns the lowest. It is the
// algorithm of Floyd: every set of k numbers is equally likely.
func lowest(rng *rand.Rand, n, k int) int {
	var drawn []int
	for j := n - k; j < n; j++ {
		x := rng.IntN(j + 1)
		if slices.Contains(drawn, x) {
			x = j
		}
		drawn = append(drawn, x)
	}
	return slices.Min(drawn)
}
