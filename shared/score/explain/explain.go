// Package explain explains a user's profile. It says in words why the user's
// events count or do not count, and lists the events that make up a score. It
// uses only the log and computes each term of the formula itself, so an
// explanation does not repeat a fault of the engine. It is pure and keeps
// nothing: the caller reads the log and adds each event.
package explain

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Question holds a user's window, the strategy, and the score to explain.
type Question struct {
	Window affinity.Window
	// OptedOut holds the types of events that the user has opted out of.
	OptedOut        event.Types
	Strategy        strategy.Strategy
	StrategyVersion int64 // 0: no strategy was ever set

	// Profile is the profile that clients read, if it leaves out values: see
	// affinity.Bounds. It may be absent even then.
	Profile *affinity.Profile

	// Facet and Value name a score as profiles list it. Without a facet the
	// answer explains no score.
	Facet, Value string
	// Limit is how many contributions the answer lists, the latest ones. It
	// adds up the earlier ones.
	Limit int
}

// Events counts a user's events. Each accepted event counts in exactly one of
// the seven fields from Deleted to Counted: the first whose condition holds.
// WithUnknownObjects is independent of them.
type Events struct {
	Accepted int `json:"accepted"` // all in the log
	// Deleted: not after the user's tombstone, or of a type that the user has opted out
	// of, and not removed yet.
	Deleted int `json:"deleted"`
	// OutsideWindow: older than the retention.
	OutsideWindow int `json:"outsideWindow"`
	// Ahead: later than now, so that it does not count yet.
	Ahead int `json:"ahead"`
	// NotInStrategy: in the window, but the strategy does not score the type
	// and name, or none of the facets.
	NotInStrategy int `json:"notInStrategy"`
	// WithoutFilters: in the window and of a type and name that scores, but its
	// objects have no filters. Also an event without filters whose type and
	// name can no longer be read.
	WithoutFilters int `json:"withoutFilters"`
	// Ignored: in the window and of a type and name that scores, with facets that
	// score, but the strategy ignores all their values, or does not allow them.
	Ignored int `json:"ignored"`
	// Counted: in the window, and some of its filters score.
	Counted int `json:"counted"`

	// WithUnknownObjects: in the window, with objects that the catalog did not
	// know when ingest received the event.
	WithUnknownObjects int `json:"withUnknownObjects"`
}

// Explanation collects a user's events in the order of the log. Its memory is
// bounded.
type Explanation struct {
	q      Question
	points map[affinity.Pair]int
	facets map[string]int

	events      Events
	first, last int64
	seen        seen
	parts       parts
}

// seen collects facts about the events for the reasons.
type seen struct {
	tokens      tally             // of the events in other logs
	linked      int               // these events
	kinds       tally             // types and names that do not score
	facets      tally             // facets that do not score, in events of types and names that do
	unscored    int               // events with no other facets
	ignored     tally             // values that the strategy ignores, in events of types and names that score
	notAllowed  tally             // values that it does not allow, in the same events
	indexes     tally             // of unknown objects
	unknown     map[string]string // an unknown object by its index, of some indexes
	bare        int               // events without filters whose objects were known
	crowded     int               // events with objects that do not count beside the others
	leftOut     int               // these objects
	unreadable  int               // events whose original cannot be read
	latestOld   int64             // of the events outside the window
	firstAhead  int64
	lastCounted int64
	event       silent
}

// silent is what scores nothing of one event. Events share its memory.
type silent struct{ facets, ignored, notAllowed []string }

// New returns an explanation of no events.
func New(q Question) *Explanation {
	x := &Explanation{q: q, points: map[affinity.Pair]int{}, facets: map[string]int{}}
	for _, e := range q.Strategy.EventsScoring {
		if e.Score > 0 {
			x.points[affinity.Pair{Type: string(e.EventType), Name: e.EventName}] = e.Score
		}
	}
	for _, f := range q.Strategy.FacetsScoring {
		if f.Score > 0 {
			x.facets[f.FacetName] = f.Score
		}
	}
	x.parts = newParts(q)
	return x
}

// Logged is an event of a log.
type Logged struct {
	affinity.Event
	Receipt  int64  // ms
	Original []byte // as it was sent
	// Token is that of the anonymous token whose log has the event; "": the log is that of the user.
	Token string
	// Purposes are those for which the facet of the question counts.
	Purposes []string
	// Deleted says that the event was deleted, whatever the tombstone of the user covers.
	Deleted bool
}

// Add adds the next event. It retains the originals of the latest contributions only.
func (x *Explanation) Add(l Logged) {
	e := l.Event
	if x.events.Accepted == 0 {
		x.first = e.Time
	}
	x.events.Accepted++
	x.last = e.Time
	if l.Token != "" {
		x.seen.tokens.add(l.Token)
		x.seen.linked++
	}
	w := x.q.Window
	switch {
	case l.Deleted, w.Tombstone().Covers(e.Time, l.Receipt), x.q.OptedOut.Has(e.Type):
		x.events.Deleted++
	case e.Time > w.Now:
		if x.events.Ahead++; x.events.Ahead == 1 {
			x.seen.firstAhead = e.Time
		}
	case !w.Contains(e.Time):
		x.events.OutsideWindow++
		x.seen.latestOld = e.Time
	default:
		x.addInWindow(l)
	}
}

// addInWindow adds an event that is in the window.
func (x *Explanation) addInWindow(l Logged) {
	e := l.Event
	o, err := schema.ParseOriginal(l.Original) // a damaged original is read in part
	readable := err == nil
	if o.UnknownObjects > 0 {
		x.events.WithUnknownObjects++
		x.seen.indexes.add(o.Index)
		x.noteUnknown(o)
	}
	if o.LeftOutObjects > 0 {
		x.seen.crowded++
		x.seen.leftOut += o.LeftOutObjects
	}
	pair := affinity.Pair{Type: string(e.Type), Name: e.Name}
	if pair.Type == "" && readable { // only the original has the type and name
		e, err := o.Decode()
		pair, readable = affinity.Pair{Type: string(e.Type), Name: e.Name}, err == nil
	}
	if !readable {
		x.seen.unreadable++
	}
	points := x.points[pair]
	switch {
	case pair.Type == "":
		x.events.WithoutFilters++ // an event without filters and without a readable original
	case points == 0:
		x.events.NotInStrategy++
		x.seen.kinds.add(fmt.Sprintf("%s %q", pair.Type, pair.Name))
	case len(e.Counts) == 0:
		x.events.WithoutFilters++
		if readable && o.UnknownObjects == 0 {
			x.seen.bare++
		}
	default:
		x.addFilters(l, points)
	}
}

// Object names an object of an index.
type Object struct{ Index, ID string }

// maxExamples is of how many indexes an explanation notes an unknown object.
const maxExamples = 20

// noteUnknown notes an object that the catalog did not know, unless it has one of the index. Of
// an event that names other objects too nobody can tell which it was.
func (x *Explanation) noteUnknown(o schema.Original) {
	if _, noted := x.seen.unknown[o.Index]; noted || len(x.seen.unknown) == maxExamples {
		return
	}
	e, err := o.Decode()
	if err != nil || len(e.ObjectIDs) == 0 || len(e.ObjectIDs) > o.UnknownObjects {
		return
	}
	if x.seen.unknown == nil {
		x.seen.unknown = map[string]string{}
	}
	x.seen.unknown[strings.Clone(o.Index)] = strings.Clone(e.ObjectIDs[0])
}

// Unknown returns objects that the catalog did not know when an event came that names them: at
// most one of an index, and of 20 indexes. Answer says more of them if the caller looks them up.
func (x *Explanation) Unknown() []Object {
	var objects []Object
	for _, index := range slices.Sorted(maps.Keys(x.seen.unknown)) {
		objects = append(objects, Object{index, x.seen.unknown[index]})
	}
	return objects
}

// addFilters adds an event with filters, of a type and name that scores. It counts the
// facets and values that score nothing.
func (x *Explanation) addFilters(l Logged, points int) {
	e, scores, s, of := &l.Event, false, &x.q.Strategy, &x.seen.event
	*of = silent{of.facets[:0], of.ignored[:0], of.notAllowed[:0]}
	for _, c := range e.Counts {
		value := s.Alias(c.Facet, c.Value)
		switch {
		case x.facets[c.Facet] == 0:
			of.facets = append(of.facets, c.Facet)
		case c.N <= 0:
		case s.Ignores(value):
			of.ignored = append(of.ignored, c.Facet+event.Operator+value)
		case !s.Allows(c.Facet, value):
			of.notAllowed = append(of.notAllowed, c.Facet+event.Operator+value)
		default:
			scores = true
		}
	}
	x.seen.facets.addEach(of.facets)
	x.seen.ignored.addEach(of.ignored)
	x.seen.notAllowed.addEach(of.notAllowed)
	switch {
	case scores:
		x.events.Counted++
		x.seen.lastCounted = e.Time
		x.parts.add(l, points)
	case len(of.ignored)+len(of.notAllowed) > 0:
		x.events.Ignored++
	default:
		x.events.NotInStrategy++
		x.seen.unscored++
	}
}

// Held returns how many bytes of contributions and of values the explanation keeps.
func (x *Explanation) Held() int {
	return x.parts.bytes + x.seen.ignored.bytes + x.seen.notAllowed.bytes
}

// Answer is the explanation of a user's profile.
type Answer struct {
	Known  bool // some event is in the window
	Events Events
	// First and Last are the times (ms) of the first and the last event in the
	// log; 0 if the log has no event.
	First, Last int64
	Reasons     []string
	// Score is the score of the question; nil if the question names no score.
	Score *Score
}

// Answer returns the explanation of the events so far. now are the indexes whose catalog holds
// each object of Unknown now; nil: nobody looked them up.
func (x *Explanation) Answer(now map[Object][]string) Answer {
	a := Answer{Known: x.known(), Events: x.events, First: x.first, Last: x.last}
	if x.q.Facet != "" {
		score := x.parts.score()
		a.Score = &score
	}
	a.Reasons = x.reasons(a.Score, now)
	return a
}

func (x *Explanation) known() bool {
	return x.events.NotInStrategy+x.events.WithoutFilters+x.events.Ignored+x.events.Counted > 0
}

// vanished reports whether even the last event that counts has decayed to zero
// under every half-life.
func (x *Explanation) vanished() bool {
	if x.events.Counted == 0 {
		return false
	}
	for _, factor := range decays(x.q.Strategy.HalfLives, x.q.Window.Now-x.seen.lastCounted) {
		if factor > 0 {
			return false
		}
	}
	return true
}

// decays returns the factors by which an event of an age in ms counts under
// each half-life, or 1 without half-lives.
func decays(halfLives []strategy.HalfLife, age int64) []float64 {
	if len(halfLives) == 0 {
		return []float64{1}
	}
	factors := make([]float64, len(halfLives))
	for i, h := range halfLives {
		factors[i] = math.Exp2(-float64(age) / h.Millis())
	}
	return factors
}
