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

// marks are hashes of the places of events in a log, 8 bytes each: enough to know
// an event again, however many there are.
type marks []uint64

var seed = maphash.MakeSeed()

func mark(p history.Pos) uint64 { return maphash.Comparable(seed, p) }

// collector takes in the log of one user. In a further reading it tells the
// events of the first from those that came since: the former must count by now,
// the latter may.
type collector struct {
	run    *run
	window affinity.Window
	before marks // of the first reading, sorted
	again  bool  // this is a further one

	events   int
	seen     marks // of this one, where it is the first
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
	// The row ends here, unlike its texts: a user's log repeats few of them.
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

// maxTexts different texts are kept once; what comes after is kept as it comes.
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

// wanted are the profiles that the formula makes of the log: what a client must
// see at least, and at most. They are the same at the first reading, and where
// nothing came since.
func (k *collector) wanted() (low, high affinity.Profile) {
	high = k.all.profile()
	if !k.again || k.old.n == k.all.n {
		slices.Sort(k.seen)
		return high, high
	}
	return k.old.profile(), high
}

// accumulator is the formula over some events of a user: by the reference, or by
// a scorer once they are too many to be held.
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
	case len(a.events) < a.run.most:
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
