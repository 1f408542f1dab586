package backtest

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/ranking"
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

	// Contrast goes by the objects that occur before the cut. The catalog is that
	// of today, and what users turned to later must not tell on it.
	objects   int
	frequency []int32 // by filter: of these objects, those that carry it

	// The features of rankings count what package crowd counts.
	times [][]int64             // by object: of the events that count for it, ms
	links [crowd.Ranked][]pairs // by object A

	judged []bool // by place in Log.events
}

// pairs are the objects that users turn to with an object or soon after it, the
// most frequent first.
type pairs struct {
	objects []int32
	counts  []int64
}

// newStatistics counts what users did before the cut. The error is that of ctx.
func newStatistics(ctx context.Context, l *Log, judged []bool, cut int64) (*statistics, error) {
	n := len(l.objects)
	c := &statistics{popularity: make([]int32, n), rank: make([]int32, n), pairs: make([]pairs, n),
		judged: judged}
	named := make([][]int32, n) // by object: the counted events that name it
	for i := range l.events {
		if e := &l.events[i]; judged[i] && e.time < cut {
			for _, o := range l.objectsOf(e) {
				named[o] = append(named[o], int32(i))
				c.popularity[o]++
			}
		}
	}
	c.addFrequencies(l)
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
	err := spread(ctx, n, func() func(a int) {
		tally := tally{counts: make([]int64, n)}
		return func(a int) {
			l.followers(named[a], judged, cut, tally.add)
			c.pairs[a] = tally.best(int32(a))
		}
	})
	if err != nil {
		return nil, err
	}
	c.addLinks(ctx, l, judged, cut)
	return c, ctx.Err()
}

// addFrequencies counts the objects that an event names.
func (c *statistics) addFrequencies(l *Log) {
	c.frequency = make([]int32, len(l.filters))
	for o, events := range c.popularity {
		if events == 0 {
			continue
		}
		c.objects++
		for _, f := range l.carried.at(int32(o)) {
			c.frequency[f]++
		}
	}
}

// addLinks counts for the features of rankings, unless ctx ends.
func (c *statistics) addLinks(ctx context.Context, l *Log, judged []bool, cut int64) {
	n := len(l.objects)
	sink := newSink(n)
	counter := crowd.NewCounter(sink)
	var objects []uint32
	for user := range l.users {
		if ctx.Err() != nil {
			return
		}
		for i := l.first[user]; i < l.first[user+1]; i++ {
			e := &l.events[i]
			if !judged[i] || e.time >= cut {
				continue
			}
			objects = objects[:0]
			for _, o := range l.objectsOf(e) {
				objects = append(objects, uint32(o))
			}
			counter.Add(e.time, false, objects)
		}
		counter.End()
	}
	c.times = sink.times
	tally := tally{counts: make([]int64, n)}
	for kind := range c.links {
		c.links[kind] = make([]pairs, n)
		for a := range c.links[kind] {
			p := &sink.links[kind].of[a]
			sink.links[kind].merge(p)
			for i, b := range p.objects {
				count := p.counts[i]
				if kind == int(crowd.Together) {
					count = crowd.Weight(count, sink.own[a], sink.own[b])
				}
				tally.add(p.objects[i:i+1], count)
			}
			c.links[kind][a] = tally.best(int32(a))
		}
		sink.links[kind] = nil
	}
}

// sink keeps what a counter of package crowd counts.
type sink struct {
	times [][]int64 // by object, ms
	own   []int64   // by object
	links [crowd.Ranked]*pairCounts
}

func newSink(objects int) *sink {
	s := &sink{times: make([][]int64, objects), own: make([]int64, objects)}
	for kind := range s.links {
		s.links[kind] = newPairCounts(objects, maxPairs/len(s.links))
	}
	return s
}

func (s *sink) Event(object uint32, time int64) { s.times[object] = append(s.times[object], time) }

func (s *sink) Own(object, n uint32) { s.own[object] += int64(n) }

func (s *sink) Link(kind crowd.Kind, first, second, n uint32) {
	s.links[kind].add(first, second, n)
}

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

// followers counts the pairs of an object, which the given events name: places
// in l.events, sorted. It calls add with the objects of each judged event before
// the cut, and with how many of the given events of the same user are at its time
// or up to half an hour earlier.
//
// It walks the events of a user once for the object, and not once for each event
// that names it: of a robot or an import without precise times, thousands may lie
// within half an hour.
func (l *Log) followers(named []int32, judged []bool, cut int64, add func(objects []int32, n int64)) {
	for first := 0; first < len(named); {
		e := &l.events[named[first]]
		j, end := named[first], l.first[e.user+1]
		for j > l.first[e.user] && l.events[j-1].time == e.time {
			j-- // to the start of the instant
		}
		from, to := first, first // of the named events that the half hour holds
		for ; j < end && l.events[j].time < cut; j++ {
			if !judged[j] {
				continue
			}
			t := l.events[j].time
			for to < len(named) && named[to] < end && l.events[named[to]].time <= t {
				to++
			}
			for from < to && t-l.events[named[from]].time > pairWindow {
				from++
			}
			if from == to {
				break
			}
			add(l.objectsOf(&l.events[j]), int64(to-from))
		}
		first = to
	}
}

// tally counts the pairs of one object.
type tally struct {
	counts  []int64 // by object
	touched []int32
}

// add counts a pair with each of some objects n times.
func (c *tally) add(objects []int32, n int64) {
	for _, o := range objects {
		if c.counts[o] == 0 {
			c.touched = append(c.touched, o)
		}
		c.counts[o] += n
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
	best := pairs{objects: slices.Clone(list), counts: make([]int64, len(list))}
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
