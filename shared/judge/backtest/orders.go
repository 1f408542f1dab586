package backtest

import (
	"context"
	"slices"
)

// Step is what a user turned to at one instant.
type Step struct {
	Time    int64   // ms
	Objects []int32 // by number, sorted: an object's number is its place among all IDs
}

// Order is an order that knows of users only what they turned to. It is used by one goroutine.
type Order interface {
	// Score sets the score of each object, by number; all are 0 before. history holds the user's
	// steps before the case, oldest first. Of objects with equal scores that with the lower ID is
	// shown first.
	Score(history []Step, scores []float64)
}

// Steps returns, by user, what they turned to before the cut, oldest first: the judged events, which
// name a known object, grouped by time.
func (c *Cases) Steps() [][]Step {
	all := make([][]Step, len(c.log.users))
	for user := range all {
		all[user] = c.stepsBefore(int32(user), c.cut)
	}
	return all
}

// stepsBefore returns the steps of a user before a time.
func (c *Cases) stepsBefore(user int32, before int64) (steps []Step) {
	l := c.log
	for i := l.first[user]; i < l.first[user+1] && l.events[i].time < before; i++ {
		if !c.crowd.judged[i] {
			continue
		}
		if e := &l.events[i]; len(steps) == 0 || steps[len(steps)-1].Time != e.time {
			steps = append(steps, Step{Time: e.time})
		}
		last := &steps[len(steps)-1]
		last.Objects = append(last.Objects, l.objectsOf(&l.events[i])...)
	}
	for i := range steps {
		slices.Sort(steps[i].Objects)
		steps[i].Objects = slices.Compact(steps[i].Objects)
	}
	return steps
}

// JudgeOrder ranks the candidates of all cases by an order; newOrder makes one for each goroutine. The
// error is that of ctx.
func (c *Cases) JudgeOrder(ctx context.Context, newOrder func() Order) (*Result, error) {
	return c.judge(ctx, func() ranker {
		return &ordered{cases: c, order: newOrder(), sums: make([]float64, c.Candidates())}
	})
}

type ordered struct {
	cases *Cases
	order Order
	sums  []float64
}

func (o *ordered) rank(in *instant, candidates []int32, scores []float64) {
	clear(o.sums)
	o.order.Score(o.cases.stepsBefore(in.user, in.time), o.sums)
	for _, c := range candidates {
		scores[c] = o.sums[c]
	}
}

func (*ordered) ties() []int32 { return nil }
