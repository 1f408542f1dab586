package backtest

import (
	"cmp"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/crowd"
	"github.com/affinityengine/affinity/shared/ranking"
)

const (
	pairWindow = 30 * 60 * 1000 // ms from an event to the last that pairs with it
	pairsKept  = 50             // of each object
)

// statistics hold what all users did before the cut, from the judged events.
type statistics struct {
	// The baselines count without caps.
	popularity []int32 // by object: the events that name it
	rank       []int32 // by object: its place by popularity
	pairs      []pairs // by object A

	// The features of rankings count what package crowd counts.
	times  [][]int64 // by object: of the events that count for it, ms
	capped []pairs   // by object A
}

// pairs are the objects that users turn to with an object or soon after it, the
// most frequent first.
type pairs struct {
	objects []int32
	counts  []int32
}

func newStatistics(l *Log, judged []bool, cut int64) *statistics {
	n := len(l.objects)
	c := &statistics{popularity: make([]int32, n), rank: make([]int32, n), pairs: make([]pairs, n)}
	named := make([][]int32, n) // by object: the counted events that name it
	for i := range l.events {
		if e := &l.events[i]; judged[i] && e.time < cut {
			for _, o := range l.objectsOf(e) {
				named[o] = append(named[o], int32(i))
				c.popularity[o]++
			}
		}
	}
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.popularity[b], c.popularity[a]), cmp.Compare(a, b))
	})
	for place, o := range order {
		c.rank[o] = int32(place)
	}
	spread(n, func() func(a int) {
		tally := tally{counts: make([]int32, n)}
		return func(a int) {
			for _, i := range named[a] {
				l.followers(i, judged, cut, tally.add)
			}
			c.pairs[a] = tally.best(int32(a))
		}
	})
	c.addCapped(l, judged, cut)
	return c
}

// addCapped counts for the features of rankings.
func (c *statistics) addCapped(l *Log, judged []bool, cut int64) {
	n := len(l.objects)
	sink := &sink{times: make([][]int64, n), pairs: make([][]int32, n)}
	counter := crowd.NewCounter(sink)
	var objects []uint32
	for user := range l.users {
		for i := l.first[user]; i < l.first[user+1]; i++ {
			e := &l.events[i]
			if !judged[i] || e.time >= cut {
				continue
			}
			objects = objects[:0]
			for _, o := range l.objectsOf(e) {
				objects = append(objects, uint32(o))
			}
			counter.Add(e.time, objects)
		}
		counter.End()
	}
	c.times, c.capped = sink.times, make([]pairs, n)
	spread(n, func() func(a int) {
		tally := tally{counts: make([]int32, n)}
		return func(a int) {
			tally.add(sink.pairs[a])
			c.capped[a] = tally.best(int32(a))
		}
	})
}

// sink keeps what a counter of package crowd counts.
type sink struct {
	times [][]int64 // by object, ms
	pairs [][]int32 // by first object: the second ones
}

func (s *sink) Event(object uint32, time int64) { s.times[object] = append(s.times[object], time) }
func (s *sink) Pair(first, second uint32)       { s.pairs[first] = append(s.pairs[first], int32(second)) }

// counts returns the decayed count of each object at the cut, and the highest.
func (c *statistics) counts(cut int64, halfLife float64) (counts []float64, highest float64) {
	counts = make([]float64, len(c.times))
	for o, times := range c.times {
		for _, t := range times {
			counts[o] += math.Exp2(-float64(cut-t) / halfLife)
		}
		highest = max(highest, counts[o])
	}
	return counts, highest
}

// decayed returns the popularity of each object at the cut, from 0 to 1.
func (c *statistics) decayed(cut int64, halfLife float64) []float64 {
	counts, highest := c.counts(cut, halfLife)
	for o, n := range counts {
		counts[o] = ranking.PopularityOf(n, highest)
	}
	return counts
}

// followers calls add with the objects of each judged event of the user of
// event i that is at the same time, event i itself included, or up to half an
// hour later, and before the cut.
func (l *Log) followers(i int32, judged []bool, cut int64, add func(objects []int32)) {
	user, t := l.events[i].user, l.events[i].time
	from := i
	for from > l.first[user] && l.events[from-1].time == t {
		from--
	}
	until := min(t+pairWindow, cut-1)
	for j := from; j < l.first[user+1] && l.events[j].time <= until; j++ {
		if judged[j] {
			add(l.objectsOf(&l.events[j]))
		}
	}
}

// tally counts the pairs of one object.
type tally struct {
	counts  []int32 // by object
	touched []int32
}

func (c *tally) add(objects []int32) {
	for _, o := range objects {
		if c.counts[o] == 0 {
			c.touched = append(c.touched, o)
		}
		c.counts[o]++
	}
}

// best returns the most frequent objects but a, and starts again.
func (c *tally) best(a int32) pairs {
	c.counts[a] = 0
	var list []int32
	for _, o := range c.touched {
		n := c.counts[o]
		if n == 0 || len(list) == pairsKept && !c.before(o, list[pairsKept-1]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, o, func(x, o int32) int {
			return cmp.Or(cmp.Compare(c.counts[o], c.counts[x]), cmp.Compare(x, o))
		})
		list = slices.Insert(list, at, o)
		list = list[:min(len(list), pairsKept)]
	}
	best := pairs{objects: slices.Clone(list), counts: make([]int32, len(list))}
	for i, o := range list {
		best.counts[i] = c.counts[o]
	}
	for _, o := range c.touched {
		c.counts[o] = 0
	}
	c.touched = c.touched[:0]
	return best
}

// before reports whether x comes before y: it is more frequent, or as frequent
// with a lower ID.
func (c *tally) before(x, y int32) bool {
	return c.counts[x] > c.counts[y] || c.counts[x] == c.counts[y] && x < y
}
