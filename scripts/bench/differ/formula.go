package differ

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The model below follows the formula of a score line by line:
//
//	score(u, f, h, T) = sum over the events e of u that are accepted, not deleted,
//	                    and have T - retention < e.time <= T
//	                    of eventScore(e.type, e.name) x facetScore(f) x n(e, f) x 2^-((T - e.time)/h)
//
// and 0 for a filter that the strategy ignores or does not allow.
//
// It shares no code with the engine.

// filter is a facet with a value.
type filter struct{ Facet, Value string }

func (f filter) String() string { return f.Facet + ":" + f.Value }

// event is an accepted event.
type event struct {
	Type, Name, Index string
	Objects           []string // or Filters
	Filters           []filter
	Time              int64  // ms
	ID                string // the client's own
	counts            map[filter]int
	unknown           int // objects that the catalog did not have
}

// identity is what two events have in common that are one event: content and time.
func (e *event) identity() string {
	b, err := json.Marshal([]any{e.Type, e.Name, e.Index, e.Objects, e.Filters, e.Time, e.ID})
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(b)
}

// halfLife is a half-life as the strategy writes it. The zero value is the plain sum.
type halfLife struct {
	text string
	ms   float64
}

func (h halfLife) MarshalJSON() ([]byte, error) {
	if _, err := strconv.Atoi(h.text); err == nil {
		return []byte(h.text), nil
	}
	return json.Marshal(h.text)
}

// decay is the factor by which an event of an age (ms) counts.
func (h halfLife) decay(age int64) float64 {
	if h.ms == 0 {
		return 1
	}
	return math.Exp2(-float64(age) / h.ms)
}

// strategy is a strategy as the API takes it.
type strategy struct {
	Events    []eventScore                 `json:"eventsScoring"`
	Facets    []facetScore                 `json:"facetsScoring"`
	Impact    int                          `json:"personalizationImpact"`
	HalfLives []halfLife                   `json:"halfLives,omitempty"`
	Aliases   map[string]map[string]string `json:"aliases,omitempty"`
	Ignored   []string                     `json:"ignoredValues,omitzero"`
	Allowed   map[string][]string          `json:"allowedValues,omitempty"`
	Ranking   ranking                      `json:"ranking"`
}

type eventScore struct {
	Name  string `json:"eventName"`
	Type  string `json:"eventType"`
	Score int    `json:"score"`
}

type facetScore struct {
	Facet string `json:"facetName"`
	Score int    `json:"score"`
}

// ranking weighs the session beside the affinities, and nothing that depends on crowd
// statistics or the clock.
type ranking struct {
	Contrast   string  `json:"contrast"`
	Session    session `json:"session"`
	Popularity weight  `json:"popularity"`
	Pairs      weight  `json:"pairs"`
}

type weight struct {
	Weight int `json:"weight"`
}

type session struct {
	HalfLife halfLife `json:"halfLife"`
	Weight   int      `json:"weight"`
}

func (s *strategy) eventScore(e *event) int {
	for _, scored := range s.Events {
		if scored.Type == e.Type && scored.Name == e.Name {
			return scored.Score
		}
	}
	return 0
}

func (s *strategy) facetScore(facet string) int {
	for _, scored := range s.Facets {
		if scored.Facet == facet {
			return scored.Score
		}
	}
	return 0
}

// silent reports whether a filter scores nothing, whatever the scores of its facet and of
// events are.
func (s *strategy) silent(f filter) bool {
	list, listed := s.Allowed[f.Facet]
	ignored := s.Ignored
	if ignored == nil {
		ignored = []string{"null"} // of the values of a world
	}
	return listed && !slices.Contains(list, f.Value) ||
		slices.ContainsFunc(ignored, func(v string) bool { return strings.EqualFold(v, f.Value) })
}

// target is the filter that a filter counts as: an alias is one step.
func (s *strategy) target(f filter) filter {
	if to, is := s.Aliases[f.Facet][f.Value]; is {
		f.Value = to
	}
	return f
}

// halfLives are those of the scores: that of the plain sum if the strategy has none.
func (s *strategy) halfLives() []halfLife {
	if len(s.HalfLives) == 0 {
		return []halfLife{{}}
	}
	return s.HalfLives
}

// weights are what an event adds to each filter when it happens, filters of aliases together.
func (s *strategy) weights(e *event) map[filter]int {
	all := map[filter]int{}
	for f, n := range e.counts {
		if w := s.eventScore(e) * s.facetScore(f.Facet) * n; w > 0 && !s.silent(s.target(f)) {
			all[s.target(f)] += w
		}
	}
	return all
}

// rules are what a profile depends on besides the events.
type rules struct {
	strategy
	retention int64 // ms, 0 without limit
}

// instant is T: the time of the answer, or of the newest event if that is later.
func instant(events []*event, at int64) int64 {
	for _, e := range events {
		at = max(at, e.Time)
	}
	return at
}

// window are the events that count at an instant.
func (r *rules) window(events []*event, at int64) []*event {
	var in []*event
	for _, e := range events {
		if (r.retention == 0 || e.Time > at-r.retention) && e.Time <= at {
			in = append(in, e)
		}
	}
	return in
}

// profile is what a user likes at an instant.
type profile struct {
	at     int64
	last   int64 // time of the newest event, 0 for a user who is not known
	scores map[filter][]float64
	values map[string]int // by facet
}

func (p *profile) known() bool { return p.last != 0 }

// profile computes the profile of a user as of at, or of their newest event.
func (r *rules) profile(events []*event, at int64) profile {
	p := profile{at: instant(events, at), scores: map[filter][]float64{}, values: map[string]int{}}
	halfLives := r.halfLives()
	for _, e := range r.window(events, p.at) {
		p.last = max(p.last, e.Time)
		for f, w := range r.weights(e) {
			if p.scores[f] == nil {
				p.scores[f] = make([]float64, len(halfLives))
				p.values[f.Facet]++
			}
			for k, h := range halfLives {
				p.scores[f][k] += float64(w) * h.decay(p.at-e.Time)
			}
		}
	}
	return p
}

// score is the score of a filter under a half-life, 0 if it has none.
func (p *profile) score(f filter, k int) float64 {
	if scores := p.scores[f]; scores != nil {
		return scores[k]
	}
	return 0
}

// facetValues is how many values of a facet a profile lists under each half-life.
const facetValues = 1000

// listed says whether a profile lists a value: yes, no, or either, because scores that differ
// by rounding alone decide it.
func (p *profile) listed(f filter) truth {
	scores, answer := p.scores[f], no
	if p.values[f.Facet] <= facetValues {
		return yes
	}
	for k, score := range scores {
		if score <= 0 {
			continue
		}
		above, ties := 0, 0
		for other, theirs := range p.scores {
			switch {
			case other == f || other.Facet != f.Facet:
			case near(theirs[k], score):
				ties++
			case theirs[k] > score:
				above++
			}
		}
		switch {
		case above+ties < facetValues:
			return yes
		case above < facetValues:
			answer = either
		}
	}
	return answer
}

// crowded reports whether a facet has more values than a profile lists of it.
func (p *profile) crowded() bool {
	for _, n := range p.values {
		if n > facetValues {
			return true
		}
	}
	return false
}

// contribution is what one event adds to a score.
type contribution struct {
	time   int64
	points int
	facet  int
	count  int
	adds   []float64 // by half-life
}

// contributions are what the events of a window add to a filter, as of an instant.
func (r *rules) contributions(events []*event, f filter, at int64) []contribution {
	var all []contribution
	for _, e := range r.window(events, at) {
		c := contribution{time: e.Time, points: r.eventScore(e), facet: r.facetScore(f.Facet)}
		for raw, n := range e.counts {
			if r.target(raw) == f {
				c.count += n
			}
		}
		if c.points*c.facet*c.count == 0 || r.silent(f) {
			continue
		}
		for _, h := range r.halfLives() {
			c.adds = append(c.adds, float64(c.points*c.facet*c.count)*h.decay(at-e.Time))
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b contribution) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.adds[0], b.adds[0]), cmp.Compare(a.count, b.count))
	})
	return all
}

// reasons count events by why they count or do not.
type reasons struct{ outside, notInStrategy, withoutFilters, ignored, counted, unknown int }

func (r *rules) reasons(events []*event, at int64) reasons {
	var n reasons
	in := r.window(events, at)
	n.outside = len(events) - len(in)
	for _, e := range in {
		if e.unknown > 0 {
			n.unknown++
		}
		switch {
		case r.eventScore(e) == 0:
			n.notInStrategy++
		case len(e.counts) == 0:
			n.withoutFilters++
		case len(r.weights(e)) > 0:
			n.counted++
		case r.scoresFacet(e):
			n.ignored++
		default:
			n.notInStrategy++
		}
	}
	return n
}

func (s *strategy) scoresFacet(e *event) bool {
	for f := range e.counts {
		if s.facetScore(f.Facet) > 0 {
			return true
		}
	}
	return false
}

// sessionEvents are the newest 50 events that score, the newest first. sure is false if events of
// one time, whose order nobody outside of the engine knows, decide which these are.
func (r *rules) sessionEvents(events []*event, at int64) (newest []*event, sure bool) {
	const most, mostBytes = 50, 8 << 10 // the engine keeps 15 KB of them in a form of its own
	for _, e := range r.window(events, at) {
		if r.eventScore(e) > 0 {
			newest = append(newest, e)
		}
	}
	slices.SortFunc(newest, func(a, b *event) int { return cmp.Compare(b.Time, a.Time) })
	sure = len(newest) <= most || newest[most-1].Time != newest[most].Time
	newest = newest[:min(len(newest), most)]
	bytes := 0
	for _, e := range newest {
		bytes += 40 + len(e.Name)
		for f := range e.counts {
			if bytes += 4; r.facetScore(f.Facet) > 0 {
				bytes += len(f.Facet) + len(f.Value)
			}
		}
	}
	return newest, sure && bytes <= mostBytes
}

// sessionScores are the scores of the newest events under the session's half-life.
func (r *rules) sessionScores(newest []*event, at int64) map[filter]float64 {
	scores := map[filter]float64{}
	for _, e := range newest {
		for f, w := range r.weights(e) {
			scores[f] += float64(w) * r.Ranking.Session.HalfLife.decay(at-e.Time)
		}
	}
	return scores
}

// candidate is an object of a ranking.
type candidate struct {
	id        string
	relevancy *float64
	filters   []filter
}

// ranked is a candidate with what its score is made of.
type ranked struct {
	id                           string
	relevancy, affinity, session float64
}

func (r ranked) score() float64 { return r.relevancy + r.affinity + r.session }

// rank scores candidates for a user with a profile and a session.
func (r *rules) rank(candidates []candidate, impact *int, profile, session map[filter]float64) map[string]ranked {
	low, high, given := math.Inf(1), math.Inf(-1), false
	for _, c := range candidates {
		if c.relevancy != nil {
			low, high, given = min(low, *c.relevancy), max(high, *c.relevancy), true
		}
	}
	i := 1.0
	if given {
		i = float64(r.Impact) / 100
		if impact != nil {
			i = float64(*impact) / 100
		}
	}
	all := map[string]ranked{}
	affinities, sessions := map[string]float64{}, map[string]float64{}
	for _, c := range candidates {
		affinities[c.id], sessions[c.id] = r.match(c, profile), r.match(c, session)
	}
	for _, c := range candidates {
		one := ranked{id: c.id}
		switch {
		case c.relevancy == nil:
		case high == low:
			one.relevancy = 1 - i
		default:
			one.relevancy = (1 - i) * ((*c.relevancy - low) / (high - low))
		}
		one.affinity = i * share(affinities[c.id], affinities)
		one.session = i * float64(r.Ranking.Session.Weight) / 100 * share(sessions[c.id], sessions)
		all[c.id] = one
	}
	return all
}

// match adds the scores of a candidate's filters, over the root of their number.
func (r *rules) match(c candidate, scores map[filter]float64) float64 {
	sum, scored := 0.0, 0
	for _, f := range c.filters {
		if r.facetScore(f.Facet) > 0 {
			scored++
			sum += scores[r.target(f)]
		}
	}
	if scored == 0 {
		return 0
	}
	return sum / math.Sqrt(float64(scored))
}

func share(value float64, all map[string]float64) float64 {
	highest := slices.Max(slices.Collect(maps.Values(all)))
	if highest == 0 {
		return 0
	}
	return value / highest
}

// tolerance is the relative difference up to which two scores are equal. The engine promises
// 1e-9. A sum of thousands of positive terms in another order differs by less than 1e-12, and a
// decayed score by some 1e-15 for each time that it was decayed.
const tolerance = 1e-9

// near compares scores. Below 1e-290 scores lose digits as they decay.
func near(a, b float64) bool {
	return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b)) || max(a, b) < 1e-290
}

// truth is what is known of a statement about scores.
type truth int

const (
	no truth = iota
	either
	yes
)

func (t truth) not() truth { return yes - t }

// leastSegment is the score up to which no segment holds a user.
const leastSegment = 1e-250

// above reports whether a score is above a threshold. Sums without decay are whole numbers, which
// are exact, so a score on the threshold is not above it.
func (r *rules) above(score, threshold float64) truth {
	threshold = max(threshold, leastSegment)
	switch {
	case len(r.HalfLives) == 0 && score > threshold:
		return yes
	case len(r.HalfLives) == 0:
		return no
	case score > 0 && math.Abs(score-threshold) <= tolerance*max(score, threshold):
		return either
	case score > threshold:
		return yes
	}
	return no
}

// condition is a condition of a segment: one of its members is set.
type condition struct {
	And    []*condition `json:"and,omitempty"`
	Or     []*condition `json:"or,omitempty"`
	Not    *condition   `json:"not,omitempty"`
	Filter string       `json:"filter,omitempty"` // as sent
	Half   *halfLife    `json:"halfLife,omitempty"`
	Above  float64      `json:"above,omitempty"`

	filter filter
	k      int // of the half-life
}

// holds reports whether a profile meets the condition.
func (r *rules) holds(c *condition, p *profile) truth {
	answer := yes
	switch {
	case c.And != nil:
		for _, branch := range c.And {
			answer = min(answer, r.holds(branch, p))
		}
	case c.Or != nil:
		answer = no
		for _, branch := range c.Or {
			answer = max(answer, r.holds(branch, p))
		}
	case c.Not != nil:
		return r.holds(c.Not, p).not()
	default:
		f := r.target(c.filter)
		listed := p.listed(f)
		return min(listed, r.above(p.score(f, c.k), c.Above))
	}
	return answer
}

// first is the first filter of the condition that is not negated: pages have its score.
func (c *condition) first(negated bool) *condition {
	switch {
	case c.Not != nil:
		return c.Not.first(!negated)
	case c.And == nil && c.Or == nil:
		if negated {
			return nil
		}
		return c
	}
	for _, branch := range slices.Concat(c.And, c.Or) {
		if f := branch.first(negated); f != nil {
			return f
		}
	}
	return nil
}
