package affinity

import "math"

// Scorer adds up one user's events, in any order, then those of the next user: see Reset. It holds one sum per filter
// and half-life, however many the events. A scorer is not safe for concurrent use.
//
// All terms are positive, so that rounding cannot grow by cancellation: n terms are within n x 1.1e-16 of the exact
// sum in the worst case, a few millions still within 1e-9.
type Scorer struct {
	c      *Compiled
	window Window
	user   uint32  // another for each user since values were last forgotten; never 0
	tables []table // by facet index
	names  arena   // of their values
	text   []byte  // scratch: a value

	// The event begun last.
	time    int64
	inside  bool
	factors []float64 // 2^-(age/h) by half-life, once aged is true
	aged    bool

	known, scored  bool
	latest, oldest int64 // latest event; oldest scored event
	upcoming       int64 // when the first event that is ahead of the window enters it

	// Scratch of a profile.
	order, spare   []ranked
	places, listed []int32 // of facets
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
		user:     1,
		tables:   make([]table, len(c.facets)),
		factors:  make([]float64, len(c.perMS)),
		upcoming: math.MaxInt64,
	}
}

// What a scorer remembers from user to user at most.
const (
	maxKept      = 1 << 16 // values, over all facets
	maxKeptBytes = 4 << 20 // of values
)

// Reset makes the scorer one of no events and of another window, as NewScorer would. It keeps the memory, and up to
// some bound the values it has seen: users of one app share most of them, and need not be entered for each anew.
// Profiles made before stay as they are.
func (sc *Scorer) Reset(w Window) {
	kept := 0
	for i := range sc.tables {
		kept += len(sc.tables[i].entries)
		sc.tables[i].touched = sc.tables[i].touched[:0]
	}
	if sc.user++; sc.user == 0 || kept > maxKept || sc.names.size > maxKeptBytes {
		sc.user = 1
		clear(sc.tables)
		sc.names = arena{}
		sc.order, sc.spare = nil, nil
	}
	sc.window = w
	sc.time, sc.inside, sc.aged = 0, false, false
	sc.known, sc.scored, sc.latest, sc.oldest = false, false, 0, 0
	sc.upcoming = math.MaxInt64
}

// Compiled returns what the scorer scores by.
func (sc *Scorer) Compiled() *Compiled { return sc.c }

// Begin starts an event of this time (ms). It returns false if the event is outside the window: then nothing of it
// counts. Every event of the user is to be begun, scored or not, those ahead of the window too.
func (sc *Scorer) Begin(time int64) bool {
	sc.time, sc.aged = time, false
	sc.inside = sc.window.Contains(time)
	if !sc.inside {
		sc.upcoming = min(sc.upcoming, sc.window.enters(time))
		return false
	}
	sc.knows(time)
	return true
}

// knows takes note of an event inside the window.
func (sc *Scorer) knows(time int64) {
	if !sc.known || time > sc.latest {
		sc.known, sc.latest = true, time
	}
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
	sc.count(sec, sc.lookup(sec.facet, value, 0, len(value)), n)
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
		sc.count(sec, sc.lookupString(sec.facet, c.Value), c.N)
	}
}

// count adds n to an entry for the event begun last, which is inside the window.
func (sc *Scorer) count(sec Section, at int32, n int) {
	if !sc.aged {
		sc.begunScores()
	}
	weight := sec.weight * float64(n)
	sums := sc.sums(sec.facet, sc.resolve(sec.facet, at))
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
		sc.factors[i] = halved(ms * perMS)
	}
	sc.Scored(sc.time)
}

// Scored takes note of an event inside the window as one that scores, whatever its scores have decayed to.
func (sc *Scorer) Scored(time int64) {
	if !sc.scored || time < sc.oldest {
		sc.scored, sc.oldest = true, time
	}
}

// Merge adds the events of another scorer, of the same Compiled and the same window. What is merged counts as if it
// had been added here; o stays as it is.
func (sc *Scorer) Merge(o *Scorer) {
	for facet := range o.tables {
		from := &o.tables[facet]
		for _, slot := range from.touched {
			// A slot is what aliases have led to: they do not apply again.
			sums := sc.sums(int32(facet), sc.lookupString(int32(facet), from.entries[slot].name))
			for i, sum := range o.sumsAt(int32(facet), slot) {
				sums[i] += sum
			}
		}
	}
	if o.known {
		sc.knows(o.latest)
	}
	if o.scored {
		sc.Scored(o.oldest)
	}
	sc.upcoming = min(sc.upcoming, o.upcoming)
}

// Profile returns the profile of the events so far. The scorer may go on.
func (sc *Scorer) Profile() Profile {
	p := sc.Outline()
	p.Affinities = sc.affinities()
	p.Total = len(p.Affinities)
	return p
}

// Outline returns the profile of the events so far without its affinities.
func (sc *Scorer) Outline() Profile {
	return Profile{
		RetentionDays: sc.window.RetentionDays,
		Anchor:        sc.window.Now,
		DeletedUntil:  sc.window.DeletedUntil,
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
	return until
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
