package backtest

import (
	"math/rand/v2"
	"slices"
)

// RandomRelevant returns the cases with other relevant objects: of each case as
// many, drawn uniformly from its candidates. By chance alone one order does
// better on them than another, so they show how often chance passes for a gain.
func (c *Cases) RandomRelevant(seed uint64) *Cases {
	drawn := *c
	drawn.cases = slices.Clone(c.cases)
	w := newWorker(c, popular(nil))
	for i := range drawn.cases {
		in := &drawn.cases[i]
		w.findCandidates(in)
		rng := rand.New(rand.NewPCG(seed, in.key))
		n := len(in.relevant)
		for k := range n {
			at := k + rng.IntN(len(w.candidates)-k)
			w.candidates[k], w.candidates[at] = w.candidates[at], w.candidates[k]
		}
		in.relevant = slices.Sorted(slices.Values(w.candidates[:n]))
	}
	return &drawn
}
