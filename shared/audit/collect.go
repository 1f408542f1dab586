package audit

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// marks are hashes of the positions of a user's events, 8 bytes each, by which
// a further reading recognizes the events of the first.
type marks []uint64

var seed = maphash.MakeSeed()

func mark(p history.Pos) uint64 { return maphash.Comparable(seed, p) }

// collector collects the log of one user. In a further reading it distinguishes
// the events of the first reading, which must count by now, from newer ones,
// which may.
type collector struct {
	run    *run
	window affinity.Window
	before marks // of the first reading, sorted
	again  bool  // this is a further one

	events   int
	seen     marks // of this reading, if it is the first
	all, old accumulator
	texts    map[string]string // one copy of each
}

func (k *collector) add(row store.LogRow) error {
	e, err := row.Event()
	if err != nil {
		return err
	}
	k.events++
	if !k.again {
		k.seen = append(k.seen, mark(row.Pos))
	}
	// The row's memory is reused, but its texts are kept. A user's log repeats
	// few of them.
	e.Type, e.Name = event.Type(k.text(string(e.Type))), k.text(e.Name)
	for i := range e.Counts {
		c := &e.Counts[i]
		c.Facet, c.Value = k.text(c.Facet), k.text(c.Value)
	}
	k.all.add(e)
	if k.again {
		if _, known := slices.BinarySearch(k.before, mark(row.Pos)); known {
			k.old.add(e)
		}
	}
	return nil
}

// maxTexts is how many different texts are kept once each. Further ones are
// kept for each occurrence.
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

// bounds returns the profiles that the formula makes of the log: the least and
// the most that a client may see. They are the same in the first reading, and
// if no event is newer.
func (k *collector) bounds() (low, high affinity.Profile) {
	high = k.all.profile()
	if !k.again || k.old.n == k.all.n {
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
	scorer *affinity.Scorer
}

func (a *accumulator) add(e affinity.Event) {
	a.n++
	switch {
	case a.scorer != nil:
		a.scorer.AddEvent(e)
	case len(a.events) < a.run.maxEvents:
		a.events = append(a.events, e)
	default:
		a.scorer = affinity.NewScorer(a.run.compiled, a.window)
		for _, held := range a.events {
			a.scorer.AddEvent(held)
		}
		a.events = nil
		a.scorer.AddEvent(e)
	}
}

func (a *accumulator) profile() affinity.Profile {
	if a.scorer != nil {
		return a.scorer.Profile()
	}
	return affinity.Reference(a.events, a.run.app.Strategy, a.window)
}
