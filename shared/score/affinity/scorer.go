package affinity

import (
	"math"
	"sync/atomic"
)

// Scorer adds up the events of one user, in any order; Reset prepares it for
// the next user. Its memory is one sum per filter and half-life, however many
// events it adds. A Scorer is not safe for concurrent use.
//
// All terms are positive, so rounding errors do not grow by cancellation: the
// sum of n terms has a relative error of at most n x 1.1e-16. A few million
// terms stay within 1e-9.
type Scorer struct {
	c      *Compiled
	window Window
	user   uint32  // number of the user since the tables were last cleared; never 0
	epoch  uint64  // number of the tables since they were last cleared; see Place
	tables []table // by facet index
	names  arena   // the text of their values
	text   []byte  // scratch: a value

	// The current event: the last one that Begin started.
	time    int64
	inside  bool
	factors []float64 // 2^-(age/h) by half-life, once aged is true
	aged    bool

	values, bytes int   // filters of the user's events that score, and the bytes of their names
	held          held  // bounds both
	only          *only // nil: all filters

	known, scored  bool
	latest, oldest int64 // time of the latest event, and of the oldest that scores
	upcoming       int64 // time of the first event later than the window
	ahead          int64 // of the last event later than the window that may count, 0 = none
	chosenUntil    int64 // until when the last profile's filters are the chosen ones

	// Scratch space for building a profile.
	order, spare   []ranked
	places, listed []int32 // of facets
}

// Section is a facet of a kind of event, with its weight. It is valid for every
// scorer of the same Compiled.
type Section struct {
	weight float64
	facet  int32
}

// OK reports whether the section scores.
func (s Section) OK() bool { return s.weight > 0 }

// NewScorer returns a scorer without events.
func NewScorer(c *Compiled, w Window) *Scorer {
	return &Scorer{
		c:        c,
		window:   w,
		user:     1,
		epoch:    epochs.Add(1),
		tables:   make([]table, len(c.facets)),
		factors:  make([]float64, len(c.perMS)),
		upcoming: math.MaxInt64, chosenUntil: math.MaxInt64,
		held: unlimited,
	}
}

// Bounds of what a scorer keeps between users.
const (
	maxKept      = 1 << 16 // values, over all facets
	maxKeptBytes = 4 << 20 // bytes of values
)

// Reset empties the scorer and sets another window. It keeps the memory and, up
// to maxKept and maxKeptBytes, the values it has seen: users of one app share
// most of them. Profiles built before are not affected.
func (sc *Scorer) Reset(w Window) {
	kept := 0
	for i := range sc.tables {
		kept += len(sc.tables[i].entries)
		sc.tables[i].touched = sc.tables[i].touched[:0]
	}
	if sc.user++; sc.user == 0 || sc.held.full || kept > maxKept || sc.names.size > maxKeptBytes {
		sc.user = 1
		sc.forget()
		sc.order, sc.spare = nil, nil
	}
	sc.window = w
	sc.values, sc.bytes = 0, 0
	sc.held.reset()
	sc.time, sc.inside, sc.aged = 0, false, false
	sc.known, sc.scored, sc.latest, sc.oldest = false, false, 0, 0
	sc.upcoming, sc.chosenUntil, sc.ahead = math.MaxInt64, math.MaxInt64, 0
}

// epochs numbers the contents of the tables of all scorers. A place has 40 bits
// for it, which a process does not use up.
var epochs atomic.Uint64

// forget drops all values. The places that Place remembers are no longer valid.
func (sc *Scorer) forget() {
	clear(sc.tables)
	sc.names = arena{}
	sc.epoch = epochs.Add(1)
}

// Compiled returns the compiled strategy of the scorer.
func (sc *Scorer) Compiled() *Compiled { return sc.c }

// Begin starts an event with this time (ms). It returns false if the event is
// outside the window: then none of its values count. The caller must call Begin
// for every event of the user, including events that do not score and events
// later than the window.
func (sc *Scorer) Begin(time int64) bool {
	sc.time, sc.aged = time, false
	sc.inside = sc.window.Contains(time)
	if !sc.inside {
		sc.noteOutside(time)
		return false
	}
	sc.noteEvent(time)
	return true
}

// noteOutside records an event outside the window.
func (sc *Scorer) noteOutside(time int64) {
	if enters := sc.window.enters(time); enters < math.MaxInt64 {
		sc.upcoming = min(sc.upcoming, enters)
	}
	if sc.window.ahead(time) {
		sc.ahead = max(sc.ahead, time)
	}
}

// Ahead returns the time (ms) of the newest event later than the window, but not later
// than Clock + Ahead of the window. It returns 0 if there is none.
func (sc *Scorer) Ahead() int64 { return sc.ahead }

// noteEvent records an event inside the window.
func (sc *Scorer) noteEvent(time int64) {
	if !sc.known || time > sc.latest {
		sc.known, sc.latest = true, time
	}
}

// Section returns the section of a facet for events of a type and name.
func (sc *Scorer) Section(typ, name, facet string) Section {
	return sc.c.section(sc.c.points[Pair{Type: typ, Name: name}], facet)
}

func (c *Compiled) section(points float64, facet string) Section {
	if i, ok := c.indexes[facet]; ok {
		return Section{facet: i, weight: points * c.weights[i]}
	}
	return Section{}
}

// Add counts a value, as the client sent it, n times for the current event. It
// does not keep the bytes of value.
func (sc *Scorer) Add(sec Section, value []byte, n int) {
	if !sc.inside || !sec.OK() || n <= 0 {
		return
	}
	sc.count(sec, sc.lookup(sec.facet, value, 0, len(value)), n)
}

// AddEvent begins e and adds all its counts. It does not keep the memory of e.
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
		sc.count(sec, sc.lookupString(sec.facet, c.Value), c.N)
	}
}

// count adds n to an entry for the current event, which is inside the window.
func (sc *Scorer) count(sec Section, at int32, n int) {
	if !sc.aged {
		sc.beginScoring()
	}
	weight := sec.weight * float64(n)
	if at == refused {
		return
	}
	slot := sc.resolve(sec.facet, at)
	if slot == refused {
		return
	}
	sums := sc.sumsAt(sec.facet, slot)
	if sc.enters(sec.facet, slot) {
		sc.enlist(sec.facet, slot, sums)
	}
	for i, factor := range sc.factors {
		sums[i] += weight * factor
	}
}

// beginScoring records that the current event scores, and computes its decay
// factors. It runs once per event, and not for events that do not score.
func (sc *Scorer) beginScoring() {
	sc.aged = true
	ms := age(sc.window.Now, sc.time)
	for i, perMS := range sc.c.perMS {
		sc.factors[i] = exp2Neg(ms * perMS)
	}
	sc.Scored(sc.time)
}

// Scored records that an event inside the window scores, even if its scores
// have decayed to zero.
func (sc *Scorer) Scored(time int64) {
	if !sc.scored || time < sc.oldest {
		sc.scored, sc.oldest = true, time
	}
}

// Merge adds the events of another scorer, which must have the same Compiled
// and the same window. It does not change o.
func (sc *Scorer) Merge(o *Scorer) {
	if o.Full() {
		sc.overflow()
	}
	for facet := range o.tables {
		from := &o.tables[facet]
		for _, slot := range from.touched {
			// Slots are values after aliasing. An alias is one step, so it does
			// not apply again.
			at := sc.lookupString(int32(facet), from.entries[slot].name)
			if at < 0 {
				continue
			}
			sums := sc.sumsAt(int32(facet), at)
			if sc.enters(int32(facet), at) {
				sc.enlist(int32(facet), at, sums)
			}
			for i, sum := range o.sumsAt(int32(facet), slot) {
				sums[i] += sum
			}
		}
	}
	if o.known {
		sc.noteEvent(o.latest)
	}
	if o.scored {
		sc.Scored(o.oldest)
	}
	sc.upcoming, sc.ahead = min(sc.upcoming, o.upcoming), max(sc.ahead, o.ahead)
}

// Profile returns the profile of the events so far. More events may follow. A
// Scorer that is Full has none.
func (sc *Scorer) Profile() Profile {
	sc.chosenUntil = math.MaxInt64
	p := sc.Outline()
	p.Affinities = sc.affinities()
	p.Total = sc.values
	if sc.only != nil {
		p.Total, p.Until = sc.only.total, min(p.Until, sc.only.until)
		p.leaveOutAll(sc.only.leftOut)
	}
	if !sc.c.bounds.fit(sc.values, sc.bytes) {
		sc.c.bounds.bound(&p)
	}
	sc.chosenUntil = p.Until
	return p
}

// Outline returns the profile of the events so far, without affinities. Its Until
// is that of the last Profile if no event was added since.
func (sc *Scorer) Outline() Profile {
	return Profile{
		RetentionDays: sc.window.RetentionDays,
		Anchor:        sc.window.Now,
		DeletedUntil:  sc.window.DeletedUntil,
		ReceivedUntil: max(sc.window.ReceivedUntil, sc.window.DeletedUntil),
		Marks:         sc.window.Marks,
		LastEventAt:   sc.latest,
		Known:         sc.known,
		Until:         sc.until(),
		HalfLives:     sc.c.halfLives,
	}
}

func (sc *Scorer) until() int64 {
	until := sc.upcoming
	if sc.known {
		until = min(until, sc.window.leaves(sc.latest))
	}
	if sc.scored {
		until = min(until, sc.window.leaves(sc.oldest))
	}
	return min(until, sc.chosenUntil)
}

func (sc *Scorer) affinities() []Affinity {
	ranks := sc.ranks()
	k := len(sc.factors)
	affinities := make([]Affinity, len(ranks))
	scores := make([]float64, 0, len(ranks)*k)
	for i, r := range ranks {
		scores = append(scores, sc.sumsAt(r.facet, r.slot)...)
		affinities[i] = Affinity{
			Facet:  sc.c.facets[r.facet],
			Value:  sc.tables[r.facet].entries[r.slot].name,
			Scores: scores[i*k : (i+1)*k : (i+1)*k],
		}
	}
	return affinities
}
