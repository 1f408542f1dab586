package audit

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// marks are hashes of the positions of a user's events, 8 bytes each, by which
// a further reading recognizes the events of the first.
type marks []uint64

var seed = maphash.MakeSeed()

func mark(p history.Pos) uint64 { return maphash.Comparable(seed, p) }

// collector collects the log of one user. In a repeated reading it
// distinguishes the events of the first reading, which must count by now, from
// newer events, which may count.
type collector struct {
	run      *run
	window   affinity.Window
	optedOut event.Types // whose events do not count
	view     *consent.View
	first    marks // of the first reading, sorted
	repeated bool  // this is not the first reading

	events   int
	damage   error // of the first row that does not decode
	seen     marks // of this reading, if it is the first
	all, old accumulator
	texts    map[string]string // one copy of each
}

func (k *collector) add(row store.LogRow) error {
	e, err := row.Event()
	if err != nil {
		if k.damage == nil {
			k.damage = err
		}
		return nil
	}
	counts, kept := k.view.Counts(e, row.Receipt())
	if k.optedOut.Has(e.Type) || !kept {
		return nil
	}
	e.Counts = counts
	k.events++
	if !k.repeated {
		k.seen = append(k.seen, mark(row.Pos))
	}
	// The store reuses the row's memory, so keep copies of its texts. A user's
	// log has few different texts.
	e.Type, e.Name = event.Type(k.text(string(e.Type))), k.text(e.Name)
	for i := range e.Counts {
		c := &e.Counts[i]
		c.Facet, c.Value = k.text(c.Facet), k.text(c.Value)
	}
	k.all.add(e)
	if k.repeated {
		if _, known := slices.BinarySearch(k.first, mark(row.Pos)); known {
			k.old.add(e)
		}
	}
	return nil
}

// maxTexts bounds the texts that a collector keeps once each. It copies each
// occurrence of a further text.
const maxTexts = 100_000

func (k *collector) text(s string) string {
	if kept, ok := k.texts[s]; ok {
		return kept
	}
	s = strings.Clone(s)
	if k.texts == nil {
		k.texts = map[string]string{}
	}
	if len(k.texts) < maxTexts {
		k.texts[s] = s
	}
	return s
}

// bounds returns the least and the most that a client may see, by the formula
// over the log. Both are the same in the first reading, and if no event is
// newer.
func (k *collector) bounds() (low, high affinity.Profile) {
	high = k.all.profile()
	if !k.repeated || k.old.n == k.all.n {
		slices.Sort(k.seen)
		return high, high
	}
	return k.old.profile(), high
}

// accumulator applies the formula to some events of a user: by the reference,
// or by a scorer once there are too many to hold.
type accumulator struct {
	run    *run
	window affinity.Window
	n      int
	events []affinity.Event
	bytes  int // of events
	scorer *affinity.Scorer
}

// maxBytes bounds the filters of the events that an accumulator holds, and held the
// values that its scorer holds. A user with more values is not compared.
const maxBytes = 16 << 20

var held = affinity.Hold{Values: 100_000, Bytes: 16 << 20}

func (a *accumulator) add(e affinity.Event) {
	a.n++
	switch {
	case a.scorer != nil:
		a.scorer.AddEvent(e)
	case len(a.events) < a.run.maxEvents && a.bytes < maxBytes:
		a.events = append(a.events, e)
		for _, c := range e.Counts {
			a.bytes += countBytes + len(c.Value)
		}
	default:
		a.scorer = affinity.NewScorer(a.run.unbound, a.window)
		a.scorer.Hold(a.run.memory.Share())
		for _, held := range a.events {
			a.scorer.AddEvent(held)
		}
		a.events = nil
		a.scorer.AddEvent(e)
	}
}

// countBytes is the size of a filter without its value.
const countBytes = 48

// full reports whether the events have more values than the accumulator holds.
func (a *accumulator) full() bool { return a.scorer != nil && a.scorer.Full() }

// profile returns all values, also those that the bounds of profiles leave out.
func (a *accumulator) profile() affinity.Profile {
	if a.scorer != nil {
		return a.scorer.Profile()
	}
	return affinity.Bounds{}.Reference(a.events, a.run.app.Strategy, a.window)
}
