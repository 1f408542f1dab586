package history_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const (
	now   = affinitytest.Now
	dayMS = affinitytest.DayMS
)

// benchStrategy scores ten kinds of events and three of the eight facets of a
// crowd.
func benchStrategy(halfLives ...int) strategy.Strategy {
	s := strategy.Strategy{HalfLives: strategy.InDays(halfLives...)}
	for i := range 10 {
		s.EventsScoring = append(s.EventsScoring, strategy.EventScore{
			EventName: fmt.Sprintf("Event number %d", i), EventType: []event.Type{event.View, event.Click, event.Conversion}[i%3], Score: 10 + i,
		})
	}
	for _, facet := range []int{1, 4, 6} {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: fmt.Sprintf("facet%d", facet), Score: 20 * facet})
	}
	return s
}

var benchWindow = affinity.Window{Now: now, RetentionDays: 90}

// zipf draws from 0 to 99, the i-th in proportion to 1/(i+1)^1.1.
func zipf(r *rand.Rand) func() int {
	var sums [100]float64
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -1.1)
		sums[i] = sum
	}
	return func() int {
		i, _ := slices.BinarySearch(sums[:], r.Float64()*sum)
		return min(i, 99)
	}
}

// crowd makes users of events over 90 days, each with one or two values of
// every facet from a vocabulary of 100.
func crowd(users, events int) [][]affinity.Event {
	r := rand.New(rand.NewPCG(42, 1))
	value := zipf(r)
	kinds := benchStrategy().EventsScoring
	logs := make([][]affinity.Event, users)
	for u := range logs {
		shift := r.IntN(100) // every user likes something else best
		for range events {
			kind := kinds[r.IntN(len(kinds))]
			e := affinity.Event{Time: now - r.Int64N(90*dayMS), Type: kind.EventType, Name: kind.EventName}
			for facet := range 8 {
				for range 1 + r.IntN(2) {
					e.Counts = append(e.Counts, affinity.Count{
						Facet: fmt.Sprintf("facet%d", facet), Value: fmt.Sprintf("value %d of %d", (value()+shift)%100, facet), N: 1,
					})
				}
			}
			logs[u] = append(logs[u], e)
		}
		slices.SortFunc(logs[u], func(a, b affinity.Event) int { return int(a.Time - b.Time) })
	}
	return logs
}

// pack builds the blocks of a log.
func pack(b *history.Builder, events []affinity.Event) [][]byte {
	var blocks [][]byte
	for _, e := range events {
		if !b.Add(e) {
			blocks = append(blocks, b.AppendBlock(nil))
			b.Add(e)
		}
	}
	if b.Len() > 0 {
		blocks = append(blocks, b.AppendBlock(nil))
	}
	return blocks
}

func packAll(b *history.Builder, logs [][]affinity.Event) (blocks [][][]byte, size int) {
	for _, events := range logs {
		blocks = append(blocks, pack(b, events))
		for _, block := range blocks[len(blocks)-1] {
			size += len(block)
		}
	}
	return blocks, size
}

// perCore reports how many events a second of the processor is enough for.
func perCore(b *testing.B, events int, before time.Duration) {
	b.ReportMetric(float64(events)/(cpu.Time()-before).Seconds(), "events/s")
}

// BenchmarkScore is what a recompute does with the bytes of blocks: user after
// user into one scorer.
func BenchmarkScore(b *testing.B) {
	for _, halfLives := range [][]int{{30}, {7, 30, 180}, nil} {
		for _, n := range []int{5, 50, 500, 5000} {
			logs := crowd(max(10, min(2000, 100_000/n)), n)
			for _, l := range layouts(logs) {
				b.Run(fmt.Sprintf("halfLives=%d/events=%d/%s", len(halfLives), n, l.name), func(b *testing.B) {
					l.score(b, benchStrategy(halfLives...), logs, func(*affinity.Scorer) {})
				})
			}
		}
	}
}

// score scores the users, one after the other.
func (l layout) score(b *testing.B, s strategy.Strategy, logs [][]affinity.Event, then func(*affinity.Scorer)) {
	blocks, size := packAll(l.Builder, logs)
	c := affinity.Compile(s)
	r, sc := history.NewReader(c, l.Dictionaries), affinity.NewScorer(c, benchWindow)
	b.ReportAllocs()
	events, i := 0, 0
	before := cpu.Time()
	for b.Loop() {
		sc.Reset(benchWindow)
		for _, block := range blocks[i] {
			n, err := r.Score(block, sc)
			must.Succeed(b, err)
			events += n
		}
		then(sc)
		if i++; i == len(blocks) {
			i = 0
		}
	}
	perCore(b, events, before)
	b.ReportMetric(float64(size)/float64(len(logs)*len(logs[0])), "B/event")
}

// BenchmarkRecomputeUser is all that a recompute does for a user between the
// bytes of blocks and those of the profile.
func BenchmarkRecomputeUser(b *testing.B) {
	for _, n := range []int{300, 500} {
		logs := crowd(200, n)
		for _, l := range layouts(logs) {
			b.Run(fmt.Sprintf("events=%d/%s", n, l.name), func(b *testing.B) {
				var stored []byte
				l.score(b, benchStrategy(30), logs, func(sc *affinity.Scorer) { stored = sc.AppendProfile(stored[:0], 1) })
				b.ReportMetric(float64(len(stored)), "B/profile")
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{5, 200, 5000} {
		logs := crowd(10, n)
		for _, l := range layouts(logs) {
			b.Run(fmt.Sprintf("events=%d/%s", n, l.name), func(b *testing.B) {
				var block []byte
				b.ReportAllocs()
				events, i := 0, 0
				before := cpu.Time()
				for b.Loop() {
					for _, e := range logs[i] {
						if !l.Add(e) {
							block = l.AppendBlock(block[:0])
							l.Add(e)
						}
					}
					block = l.AppendBlock(block[:0])
					events += len(logs[i])
					if i++; i == len(logs) {
						i = 0
					}
				}
				perCore(b, events, before)
			})
		}
	}
}

// BenchmarkBuildOne is a block by a builder of its own, as a refresh may build
// one.
func BenchmarkBuildOne(b *testing.B) {
	events := crowd(1, 40)[0]
	b.ReportAllocs()
	n, before := 0, cpu.Time()
	for b.Loop() {
		builder := history.NewBuilder()
		for _, e := range events {
			builder.Add(e)
		}
		builder.AppendBlock(nil)
		n += len(events)
	}
	perCore(b, n, before)
}

func BenchmarkEvents(b *testing.B) {
	logs := crowd(10, 300)
	for _, l := range layouts(logs) {
		b.Run(l.name, func(b *testing.B) {
			blocks, _ := packAll(l.Builder, logs)
			b.ReportAllocs()
			events, i := 0, 0
			before := cpu.Time()
			for b.Loop() {
				for _, block := range blocks[i] {
					for _, err := range history.Events(block, l.Dictionaries) {
						must.Succeed(b, err)
						events++
					}
				}
				if i++; i == len(blocks) {
					i = 0
				}
			}
			perCore(b, events, before)
		})
	}
}
