package backtest

import (
	"cmp"
	"context"
	"math"
	"slices"

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

// recent ranks candidates by how many judged events before the case's instant
// name them, each with its decay: the best sellers that a shop could show at
// that very moment. It knows more than popularity and the strategies, whose
// crowd statistics end at the cut, so it is the harder list to beat. Unlike the
// statistics of package crowd it has no caps for single users.
func (c *Cases) recent(ctx context.Context, r recency) (*Result, error) {
	timeline := c.crowd.timeline(c.log)
	order := make([]int32, len(c.cases))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(c.cases[a].time, c.cases[b].time) })
	return c.judgeIn(ctx, order, func() ranker {
		return &decaying{log: c.log, timeline: timeline, halfLife: r.halfLife, sums: make([]float64, len(c.log.objects))}
	})
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

// timeline returns the judged events by time, as places in Log.events.
func (c *statistics) timeline(l *Log) []int32 {
	c.once.Do(func() {
		for i := range l.events {
			if c.judged[i] {
				c.byTime = append(c.byTime, int32(i))
			}
		}
		slices.SortFunc(c.byTime, func(a, b int32) int { return cmp.Compare(l.events[a].time, l.events[b].time) })
	})
	return c.byTime
}

// decaying ranks by decayed counts. Its cases must come in the order of their
// times.
type decaying struct {
	log      *Log
	timeline []int32
	halfLife float64 // ms; 0: events do not age
	next     int     // the first event of the timeline that is not added
	ref      float64 // ms
	sums     []float64
}

func (d *decaying) rank(in *instant, candidates []int32, scores []float64) {
	for ; d.next < len(d.timeline); d.next++ {
		e := &d.log.events[d.timeline[d.next]]
		if e.time >= in.time {
			break
		}
		weight := d.weight(e.time)
		for _, o := range d.log.objectsOf(e) {
			d.sums[o] += weight
		}
	}
	factor := 1.0
	if d.halfLife > 0 {
		factor = math.Exp2((d.ref - float64(in.time)) / d.halfLife)
	}
	for _, o := range candidates {
		scores[o] = affinity.Rounded(d.sums[o] * factor)
	}
}

func (*decaying) ties() []int32 { return nil }

// weight returns what an event counts as of ref, which it moves by whole
// half-lives if the event lies far ahead: that changes the sums by powers of 2.
func (d *decaying) weight(time int64) float64 {
	if d.halfLife == 0 {
		return 1
	}
	if d.next == 0 {
		d.ref = float64(time)
	}
	ahead := (float64(time) - d.ref) / d.halfLife
	if ahead > maxAhead {
		whole := math.Floor(ahead)
		d.ref += whole * d.halfLife
		for o := range d.sums {
			d.sums[o] = math.Ldexp(d.sums[o], -exponent(whole))
		}
		ahead = (float64(time) - d.ref) / d.halfLife
	}
	return math.Exp2(ahead)
}
