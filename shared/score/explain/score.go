package explain

import (
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Score is one score of a profile, with the contributions of events to it.
type Score struct {
	// Scores are the sums of the contributions under each half-life of the
	// strategy, or the plain sum. A sum of the contributions in the given order
	// is exactly the same. The first score is the one that ranks.
	Scores        []float64
	Contributions []Contribution
}

// Contribution is the part of a score that comes from one event. If Events is
// above 0, it is the sum of that many events, too many to list. Then the only
// other fields are Time, Until and Scores.
type Contribution struct {
	Events int
	Time   int64 // ms: of the event, or of the first of several
	Until  int64 // ms: of the last of several

	// Token is that of the log that has the event, "" for the user's.
	Token             string
	Type, Name, Index string
	// Purposes are those for which the facet of the event counts, if the app has any.
	Purposes  []string
	ObjectIDs []string
	QueryID   string
	// Values are the values that the app sent, if an alias makes one of them
	// count as the score's value.
	Values                 []string
	EventScore, FacetScore int
	Count                  int // how many objects of the event have the value
	Age                    int64
	Decay                  float64   // the factor after Age (ms) under the first half-life
	Scores                 []float64 // the contribution under each half-life
}

// Weight is the contribution of one object of the event before it decays.
func (c Contribution) Weight() int { return c.EventScore * c.FacetScore }

// largeOriginal is the size above which parts decodes an original at once and
// does not retain it, to bound the memory.
const largeOriginal = 4 << 10

// maxKept bounds the texts of the contributions that parts keeps, in bytes. It adds up
// older ones even if they are within the limit.
const maxKept = 16 << 20

// parts collects contributions: the latest one by one, the sum of the earlier
// ones.
type parts struct {
	strategy     strategy.Strategy
	now          int64
	facet, value string
	weight       int // of the value; with 0 there is nothing to collect
	limit        int

	before Contribution
	latest []part // a ring, once it has limit elements
	next   int    // the index in latest of the oldest
	kept   int    // how many elements from there on are kept
	bytes  int    // of them
}

// part is a contribution with the original that completes it.
type part struct {
	Contribution
	original []byte
}

func newParts(q Question) parts {
	p := parts{strategy: q.Strategy, now: q.Window.Now, facet: q.Facet, value: q.Value, limit: max(1, q.Limit)}
	if s := q.Strategy; q.Facet != "" && !s.Ignores(q.Value) && s.Allows(q.Facet, q.Value) {
		p.weight = s.FacetScore(q.Facet)
	}
	return p
}

// add adds the contribution of an event in the window, if it has one.
func (p *parts) add(l Logged, points int) {
	e := l.Event
	if p.weight == 0 {
		return
	}
	c := Contribution{
		Token: l.Token, Purposes: l.Purposes, Time: e.Time, Type: string(e.Type), Name: e.Name,
		EventScore: points, FacetScore: p.weight, Age: p.now - e.Time,
	}
	renamed := false
	for _, n := range e.Counts {
		if n.N > 0 && n.Facet == p.facet && p.strategy.Alias(n.Facet, n.Value) == p.value {
			c.Count += n.N
			c.Values = append(c.Values, n.Value)
			renamed = renamed || n.Value != p.value
		}
	}
	if c.Count == 0 {
		return
	}
	if !renamed {
		c.Values = nil
	}
	c.Scores = decays(p.strategy.HalfLives, c.Age)
	c.Decay = c.Scores[0]
	for i := range c.Scores {
		c.Scores[i] *= float64(c.Weight()) * float64(c.Count)
	}
	p.keep(part{c, l.Original})
}

// keep appends a contribution to the latest ones. If they exceed the limit, it
// moves the oldest into the sum.
func (p *parts) keep(c part) {
	if len(c.original) > largeOriginal {
		c.complete()
	} else {
		c.original = slices.Clone(c.original)
	}
	c.Token, c.Type, c.Name = strings.Clone(c.Token), strings.Clone(c.Type), strings.Clone(c.Name)
	for i, v := range c.Values {
		c.Values[i] = strings.Clone(v)
	}
	p.bytes += c.size()
	for p.kept == p.limit || p.kept > 0 && p.bytes > maxKept {
		p.sumOldest()
	}
	if p.kept++; len(p.latest) < p.limit {
		p.latest = append(p.latest, c)
	} else {
		p.latest[(p.next+p.kept-1)%p.limit] = c
	}
}

// sumOldest moves the oldest contribution into the sum.
func (p *parts) sumOldest() {
	oldest := &p.latest[p.next]
	if p.before.Events == 0 {
		p.before.Time, p.before.Scores = oldest.Time, make([]float64, len(oldest.Scores))
	}
	p.before.Events++
	p.before.Until = oldest.Time
	add(p.before.Scores, oldest.Scores)
	p.bytes -= oldest.size()
	*oldest = part{}
	p.next, p.kept = (p.next+1)%p.limit, p.kept-1
}

// size is what a contribution keeps in memory: its texts, and itself.
func (c *part) size() int {
	size := 300 + len(c.Token) + len(c.original) + len(c.QueryID) + 8*len(c.Scores) + 16*len(c.Purposes)
	for _, texts := range [][]string{c.ObjectIDs, c.Values} {
		for _, text := range texts {
			size += 16 + len(text)
		}
	}
	return size
}

// complete sets the fields that only the original has.
func (c *part) complete() {
	o, err := schema.ParseOriginal(c.original)
	c.original, c.Index = nil, o.Index
	if err != nil {
		return
	}
	if e, err := o.Decode(); err == nil {
		c.QueryID = strings.Clone(e.QueryID)
		for _, id := range e.ObjectIDs {
			c.ObjectIDs = append(c.ObjectIDs, strings.Clone(id))
		}
	}
}

// score adds up the contributions in the order of time.
func (p *parts) score() Score {
	s := Score{Scores: make([]float64, max(1, len(p.strategy.HalfLives)))}
	if p.before.Events > 0 {
		before := p.before
		before.Scores = slices.Clone(before.Scores)
		s.Contributions = append(s.Contributions, before)
	}
	for i := range p.kept {
		c := p.latest[(p.next+i)%p.limit]
		if c.original != nil {
			c.complete()
		}
		s.Contributions = append(s.Contributions, c.Contribution)
	}
	for _, c := range s.Contributions {
		add(s.Scores, c.Scores)
	}
	return s
}

func add(sums, terms []float64) {
	for i, t := range terms {
		sums[i] += t
	}
}
