package crowd

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
)

// Event is an event of a user with the objects of one index that it names. The
// objects are those that the catalog holds.
type Event struct {
	Time      int64 // ms
	Bought    bool  // a conversion
	ObjectIDs []string
}

// Reference computes the statistics of events, which it takes by user and in
// the order of the log. Tests compare every other computation with it, so it
// follows the definition and is not optimized. It returns the decayed counts,
// and each object's events and all of its links.
func Reference(users [][]Event, asOf int64, halfLife float64) (counts map[string]float64, objects map[string]Object) {
	counts, objects = map[string]float64{}, map[string]Object{}
	links, own := [Kinds]map[linkOf]int64{{}, {}, {}, {}}, map[string]int64{}
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
			links[Follows][p]++
		}
		sequencesOf(events, links[Sequence])
		setsOf(events, links[Together], own)
		basketsOf(events, links[Bought])
	}
	for kind := range links {
		for l, n := range links[kind] {
			o := objects[l.a]
			if kind == int(Together) {
				n = Weight(n, own[l.a], own[l.b])
			}
			if n > 0 {
				o.Links[kind] = append(o.Links[kind], Pair{l.b, n})
			}
			objects[l.a] = o
		}
	}
	for _, o := range objects {
		for kind := range o.Links {
			slices.SortFunc(o.Links[kind], byCount)
		}
	}
	return counts, objects
}

// sequencesOf adds the sequences of a user.
func sequencesOf(events []Event, to map[linkOf]int64) {
	var steps [][]string
	ofDay := map[int64]int{}
	for i, e := range events {
		if len(e.ObjectIDs) == 0 {
			continue
		}
		same := func(f Event) bool { return f.Time == e.Time && len(f.ObjectIDs) > 0 }
		if slices.IndexFunc(events, same) == i {
			steps = append(steps, nil)
		}
		newest := len(steps) - 1
		for _, b := range e.ObjectIDs {
			if slices.Contains(steps[newest], b) || len(steps[newest]) == maxStep {
				continue
			}
			for back := 0; back <= reach && back <= newest; back++ {
				for _, a := range steps[newest-back] {
					if a == b || ofDay[dayOf(e.Time)] == maxMoves {
						continue
					}
					ofDay[dayOf(e.Time)]++
					to[linkOf{a, b}] += int64(moves / max(back, 1))
					if back == 0 {
						to[linkOf{b, a}] += moves
					}
				}
			}
			steps[newest] = append(steps[newest], b)
		}
	}
}

// setsOf adds what the sets of a user count.
func setsOf(events []Event, to map[linkOf]int64, own map[string]int64) {
	var sets [][]string
	for _, e := range events {
		for _, b := range e.ObjectIDs {
			newest := len(sets) - 1
			switch {
			case newest < 0 || len(sets[newest]) == maxSet:
				sets = append(sets, []string{b})
			case !slices.Contains(sets[newest], b):
				sets[newest] = append(sets[newest], b)
			}
		}
	}
	for _, set := range sets {
		n := int64(wholeSet / len(set))
		for _, a := range set {
			own[a] += n
			for _, b := range set {
				if a != b {
					to[linkOf{a, b}] += n
				}
			}
		}
	}
}

// basketsOf adds the baskets of a user.
func basketsOf(events []Event, to map[linkOf]int64) {
	baskets, ofDay := map[int64][]string{}, map[int64]int{} // by time, and by day
	for _, e := range events {
		for _, b := range e.ObjectIDs {
			if basket := baskets[e.Time]; e.Bought && len(basket) < maxStep && !slices.Contains(basket, b) {
				baskets[e.Time] = append(basket, b)
			}
		}
	}
	for _, time := range slices.Sorted(maps.Keys(baskets)) {
		if ofDay[dayOf(time)]++; ofDay[dayOf(time)] > maxBaskets {
			continue
		}
		for _, a := range baskets[time] {
			for _, b := range baskets[time] {
				if a != b {
					to[linkOf{a, b}]++
				}
			}
		}
	}
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
		k := Event{Time: e.Time, Bought: e.Bought}
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

type linkOf struct{ a, b string }

// pairsOf returns the pairs of a user that count.
func pairsOf(events []Event) []linkOf {
	var all []linkOf
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
					all = append(all, linkOf{a, b})
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
