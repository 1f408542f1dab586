package crowd

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
)

// Event is an event of a user with the objects of one index that it names. The
// objects are those that the catalog holds.
type Event struct {
	Time      int64 // ms
	ObjectIDs []string
}

// Reference computes the statistics of events, which it takes by user and in
// the order of the log. Tests compare every other computation with it, so it
// follows the definition and is not optimized. It returns the decayed counts,
// and each object's events and all of its pairs.
func Reference(users [][]Event, asOf int64, halfLife float64) (counts map[string]float64, objects map[string]Object) {
	counts, objects = map[string]float64{}, map[string]Object{}
	pairs := map[string]map[string]int64{}
	for _, events := range users {
		events = counted(events)
		for _, e := range events {
			for _, a := range e.ObjectIDs {
				counts[a] += math.Exp2(-float64(asOf-e.Time) / halfLife)
				o := objects[a]
				o.Events++
				objects[a] = o
			}
		}
		for _, p := range pairsOf(events) {
			if pairs[p.a] == nil {
				pairs[p.a] = map[string]int64{}
			}
			pairs[p.a][p.b]++
		}
	}
	for a, seconds := range pairs {
		o := objects[a]
		for b, n := range seconds {
			o.Pairs = append(o.Pairs, Pair{b, n})
		}
		slices.SortFunc(o.Pairs, byCount)
		objects[a] = o
	}
	return counts, objects
}

// byCount orders pairs as statistics list them.
func byCount(p, q Pair) int {
	return cmp.Or(cmp.Compare(q.Count, p.Count), strings.Compare(p.ObjectID, q.ObjectID))
}

// counted returns the events of a user without the objects for which they do
// not count.
func counted(events []Event) []Event {
	type dayAndObject struct {
		day    int64
		object string
	}
	earlier := map[dayAndObject]int{}
	var kept []Event
	for _, e := range events {
		k := Event{Time: e.Time}
		for i, a := range e.ObjectIDs {
			if slices.Contains(e.ObjectIDs[:i], a) {
				continue
			}
			key := dayAndObject{dayOf(e.Time), a}
			if earlier[key] < MaxEvents {
				k.ObjectIDs = append(k.ObjectIDs, a)
			}
			earlier[key]++
		}
		kept = append(kept, k)
	}
	return kept
}

type pairOf struct{ a, b string }

// pairsOf returns the pairs of a user that count.
func pairsOf(events []Event) []pairOf {
	var all []pairOf
	ofDay := map[int64]int{}
	for _, e := range events {
		for _, a := range e.ObjectIDs {
			var seconds []string
			for _, f := range events {
				if f.Time < e.Time {
					continue
				}
				if f.Time-e.Time > within.Milliseconds() {
					break
				}
				for _, b := range f.ObjectIDs {
					if b != a && !slices.Contains(seconds, b) && len(seconds) < maxSuccessors {
						seconds = append(seconds, b)
					}
				}
			}
			for _, b := range seconds {
				if ofDay[dayOf(e.Time)] < MaxPairs {
					all = append(all, pairOf{a, b})
				}
				ofDay[dayOf(e.Time)]++
			}
		}
	}
	return all
}

// dayOf returns the number of the day of a time.
func dayOf(ms int64) int64 {
	if ms < 0 {
		return (ms+1)/day - 1
	}
	return ms / day
}

// CountFilters adds the filters of one object to document frequencies, for tests. A
// filter that occurs twice counts once.
func CountFilters(frequencies map[event.Filter]int, filters []event.Filter) {
	for i, f := range filters {
		if !contains(filters[:i], f) {
			frequencies[f]++
		}
	}
}
