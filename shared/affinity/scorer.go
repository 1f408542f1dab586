package affinity

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Scorer adds up one user's events, in any order. It holds one sum per filter and half-life, however many the events.
// A scorer is not safe for concurrent use.
//
// All terms are positive, so that rounding cannot grow by cancellation: n terms are within n x 1.1e-16 of the exact
// sum in the worst case, a few millions still within 1e-9.
type Scorer struct {
	c      *Compiled
	window Window
	tables []table // by facet index

	// The event begun last.
	time    int64
	inside  bool
	factors []float64 // 2^-(age/h) by half-life, once aged is true
	aged    bool

	known, scored  bool
	latest, oldest int64 // latest event; oldest scored event
	upcoming       int64 // when the first event that is ahead of the window enters it
}

// table holds the sums of one facet.
type table struct {
	slots  map[string]int // by value as sent; values that an alias merges share a slot
	values []string       // by slot
	sums   []float64      // by slot, then half-life
}

// Section is a facet of a kind of event with its weight. It holds for every scorer of the same Compiled, and may be
// kept for as long.
type Section struct {
	weight float64
	facet  int32
}

// OK reports whether anything of this section scores.
func (s Section) OK() bool { return s.weight > 0 }

// NewScorer returns a scorer of no events.
func NewScorer(c *Compiled, w Window) *Scorer {
	return &Scorer{
		c:        c,
		window:   w,
		tables:   make([]table, len(c.facets)),
		factors:  make([]float64, len(c.perMS)),
		upcoming: math.MaxInt64,
	}
}

// Begin starts an event of this time (ms). It returns false if the event is outside the window: then nothing of it
// counts. Every event of the user is to be begun, scored or not, those ahead of the window too.
func (sc *Scorer) Begin(time int64) bool {
	sc.time, sc.aged = time, false
	sc.inside = sc.window.Contains(time)
	if !sc.inside {
		sc.upcoming = min(sc.upcoming, sc.window.enters(time))
		return false
	}
	if !sc.known || time > sc.latest {
		sc.known, sc.latest = true, time
	}
	return true
}

// Section returns the section of a facet in events of a type and name.
func (sc *Scorer) Section(typ, name, facet string) Section {
	return sc.c.section(sc.c.points[Pair{Type: typ, Name: name}], facet)
}

func (c *Compiled) section(points float64, facet string) Section {
	if i, ok := c.indexes[facet]; ok {
		return Section{facet: i, weight: points * c.weights[i]}
	}
	return Section{}
}

// Add counts a value, as sent, n times for the event begun last. It does not keep the bytes of value.
func (sc *Scorer) Add(sec Section, value []byte, n int) {
	if !sc.inside || !sec.OK() || n <= 0 {
		return
	}
	slot, ok := sc.tables[sec.facet].slots[string(value)]
	if !ok {
		slot = sc.newSlot(sec.facet, string(value))
	}
	sc.count(sec, slot, n)
}

// AddEvent begins e and adds all its counts. It keeps no memory of e.
func (sc *Scorer) AddEvent(e Event) {
	if !sc.Begin(e.Time) {
		return
	}
	points := sc.c.points[Pair{Type: string(e.Type), Name: e.Name}]
	if points == 0 {
		return
	}
	for i := range e.Counts {
		c := &e.Counts[i]
		sec := sc.c.section(points, c.Facet)
		if !sec.OK() || c.N <= 0 {
			continue
		}
		slot, ok := sc.tables[sec.facet].slots[c.Value]
		if !ok {
			slot = sc.newSlot(sec.facet, strings.Clone(c.Value))
		}
		sc.count(sec, slot, c.N)
	}
}

// newSlot makes a place for a value not seen before: under an alias, the place of the value it counts as.
func (sc *Scorer) newSlot(facet int32, value string) int {
	t := &sc.tables[facet]
	if t.slots == nil {
		t.slots = map[string]int{}
	}
	name := value
	if to, ok := sc.c.aliases[facet][value]; ok {
		name = to
	}
	slot, ok := t.slots[name]
	if !ok {
		slot = len(t.values)
		t.slots[name] = slot
		t.values = append(t.values, name)
		t.sums = append(t.sums, make([]float64, len(sc.factors))...)
	}
	t.slots[value] = slot
	return slot
}

// count adds n to a slot for the event begun last, which is inside the window.
func (sc *Scorer) count(sec Section, slot, n int) {
	if !sc.aged {
		sc.begunScores()
	}
	weight := sec.weight * float64(n)
	sums := sc.sums(sec.facet, slot)
	for i, factor := range sc.factors {
		sums[i] += weight * factor
	}
}

// begunScores takes note of the event begun last as one that scores, and works out how much it has decayed: once per
// event, and not at all for those that score nothing.
func (sc *Scorer) begunScores() {
	sc.aged = true
	ms := age(sc.window.Now, sc.time)
	for i, perMS := range sc.c.perMS {
		sc.factors[i] = math.Exp2(-ms * perMS)
	}
	if !sc.scored || sc.time < sc.oldest {
		sc.scored, sc.oldest = true, sc.time
	}
}

// Profile returns the profile of the events so far. The scorer may go on.
func (sc *Scorer) Profile() Profile {
	p := Profile{
		RetentionDays: sc.window.RetentionDays,
		Anchor:        sc.window.Now,
		LastEventAt:   sc.latest,
		Known:         sc.known,
		Until:         sc.until(),
		HalfLives:     sc.c.halfLives,
		Affinities:    sc.affinities(),
	}
	p.Total = len(p.Affinities)
	return p
}

func (sc *Scorer) until() int64 {
	until := sc.upcoming
	if sc.known {
		until = min(until, sc.window.leaves(sc.latest))
	}
	if sc.scored {
		until = min(until, sc.window.leaves(sc.oldest))
	}
	return until
}

// ranked is a filter on its way into a profile. It is smaller than an Affinity, which makes sorting twice as fast.
type ranked struct {
	first       float64 // its first score
	facet, slot int32
}

func (sc *Scorer) affinities() []Affinity {
	ranks := sc.ranks()
	k := len(sc.factors)
	affinities := make([]Affinity, len(ranks))
	scores := make([]float64, 0, len(ranks)*k)
	for i, r := range ranks {
		scores = append(scores, sc.sums(r.facet, int(r.slot))...)
		affinities[i] = Affinity{
			Facet:  sc.c.facets[r.facet],
			Value:  sc.tables[r.facet].values[r.slot],
			Scores: scores[i*k : (i+1)*k : (i+1)*k],
		}
	}
	return affinities
}

// ranks returns what scores in the order of a profile: that of byRank.
func (sc *Scorer) ranks() []ranked {
	total := 0
	for i := range sc.tables {
		total += len(sc.tables[i].values)
	}
	ranks := make([]ranked, 0, total)
	for facet := range int32(len(sc.tables)) {
		for slot := range int32(len(sc.tables[facet].values)) {
			if sums := sc.sums(facet, int(slot)); !nothing(sums) {
				ranks = append(ranks, ranked{sums[0], facet, slot})
			}
		}
	}
	slices.SortFunc(ranks, func(a, b ranked) int {
		if c := cmp.Compare(b.first, a.first); c != 0 {
			return c
		}
		if c := strings.Compare(sc.c.facets[a.facet], sc.c.facets[b.facet]); c != 0 {
			return c
		}
		return strings.Compare(sc.tables[a.facet].values[a.slot], sc.tables[b.facet].values[b.slot])
	})
	return ranks
}

// sums returns the sums of a slot, by half-life.
func (sc *Scorer) sums(facet int32, slot int) []float64 {
	k := len(sc.factors)
	return sc.tables[facet].sums[slot*k : (slot+1)*k]
}
