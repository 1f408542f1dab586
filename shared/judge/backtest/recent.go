package backtest

import (
	"context"
	"math"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// recency is a half-life of recent best sellers.
type recency struct {
	name     string
	halfLife float64 // ms; 0: events do not age
}

const day = 24 * 60 * 60 * 1000 // ms

// recencies are those that a shop may try.
var recencies = []recency{{"none", 0}, {"30d", 30 * day}, {"7d", 7 * day}, {"1d", day}}

// recent ranks candidates by how many judged events before the cut name them, each
// with its decay. It knows what the strategies know of all users, whose statistics
// end at the cut too. Unlike those it has no caps for single users.
func (c *Cases) recent(ctx context.Context, r recency) (*Result, error) {
	scores := make([]float64, len(c.log.objects))
	for i := range c.log.events {
		e := &c.log.events[i]
		if !c.crowd.judged[i] || e.time >= c.cut {
			continue
		}
		weight := 1.0
		if r.halfLife > 0 {
			weight = math.Exp2(-float64(c.cut-e.time) / r.halfLife)
		}
		for _, o := range c.log.objectsOf(e) {
			scores[o] += weight
		}
	}
	for o := range scores {
		scores[o] = affinity.Rounded(scores[o]) // whatever the order of the events
	}
	return c.judge(ctx, func() ranker { return popular(scores) })
}

// chooseRecency returns the half-life with which recent best sellers rank best on
// the cases, the longest of equal ones.
func (c *Cases) chooseRecency(ctx context.Context) (recency, error) {
	var best recency
	highest := math.Inf(-1)
	for _, r := range recencies {
		result, err := c.recent(ctx, r)
		if err != nil {
			return best, err
		}
		if result.NDCG > highest {
			best, highest = r, result.NDCG
		}
	}
	return best, nil
}
