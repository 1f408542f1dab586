package backtest

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// reference judges as the protocols read, slowly, on names.
type reference struct {
	index   string
	events  []Event // each once, by user, time and ID
	objects map[string]Object
	given   strategy.Strategy
	options Options
	cut     int64
	paired  map[string]map[string]int // what pairs has returned
	crowds  map[float64]crowdOf       // what crowd has returned
	shown   []shownLine
	links   []Link // by which the histories are those of persons
}

// shownLine is a line of the lists that were shown.
type shownLine struct {
	placement, object string
	position          float64
}

type crowdOf struct {
	counts  map[string]float64
	objects map[string]crowd.Object
}

// referenceCase is one case of the reference.
type referenceCase struct {
	user       string
	time       int64
	objects    []string // of the instant
	candidates []string // sorted
	relevant   []string
	previous   []string // objects of the history's last instant
}

func newReference(index string, events []Event, objects []Object, given strategy.Strategy, o Options) *reference {
	r := &reference{index: index, objects: map[string]Object{}, given: given, options: o, paired: map[string]map[string]int{}, crowds: map[float64]crowdOf{}}
	for _, object := range objects {
		r.objects[object.ID] = object
	}
	r.events = slices.Clone(events)
	slices.SortStableFunc(r.events, func(a, b Event) int {
		return cmp.Or(strings.Compare(a.User, b.User), cmp.Compare(a.Time, b.Time), strings.Compare(a.ID, b.ID))
	})
	r.events = slices.CompactFunc(r.events, func(a, b Event) bool { return a.User == b.User && a.Time == b.Time && a.ID == b.ID })
	r.cut = r.findCut()
	return r
}

// known returns the objects of the index that an event names, each once.
func (r *reference) known(e Event) (ids []string) {
	if e.Index != r.index {
		return nil
	}
	for _, id := range e.ObjectIDs {
		if _, ok := r.objects[id]; ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// judged returns the events that the given strategy scores and that name a known
// object.
func (r *reference) judged() (judged []Event) {
	for _, e := range r.events {
		if r.given.EventScore(e.Type, e.Name) > 0 && len(r.known(e)) > 0 {
			judged = append(judged, e)
		}
	}
	return judged
}

// findCut returns the first ms at or after 0.8 of the time that the judged
// events span, and 0 without such events.
func (r *reference) findCut() int64 {
	var times []int64
	for _, e := range r.judged() {
		times = append(times, e.Time)
	}
	if len(times) == 0 {
		return 0
	}
	first, last := slices.Min(times), slices.Max(times)
	span := int(last - first)
	return first + int64(sort.Search(span, func(ms int) bool { return 10*ms >= 8*span }))
}

func (r *reference) cases() (cases []referenceCase) {
	type instant struct {
		time    int64
		objects []string
	}
	users := map[string][]instant{}
	for _, e := range r.judged() {
		list := users[e.User]
		if len(list) == 0 || list[len(list)-1].time != e.Time {
			list = append(list, instant{time: e.Time})
		}
		list[len(list)-1].objects = append(list[len(list)-1].objects, r.known(e)...)
		users[e.User] = list
	}
	for user, instants := range users {
		for i, in := range instants {
			isCase := i > 0 && in.time >= r.cut && (r.options.Protocol == Rolling || i == len(instants)-1)
			if !isCase {
				continue
			}
			var history []string
			for _, earlier := range instants[:i] {
				history = append(history, earlier.objects...)
			}
			c := referenceCase{user: user, time: in.time, objects: in.objects, previous: instants[i-1].objects}
			for id := range r.objects {
				if !slices.Contains(history, id) && r.within(id, in.objects) {
					c.candidates = append(c.candidates, id)
				}
			}
			for _, id := range c.candidates {
				if slices.Contains(in.objects, id) {
					c.relevant = append(c.relevant, id)
				}
			}
			if len(c.relevant) > 0 {
				slices.Sort(c.candidates)
				cases = append(cases, c)
			}
		}
	}
	slices.SortFunc(cases, func(a, b referenceCase) int {
		return cmp.Or(strings.Compare(a.user, b.user), cmp.Compare(a.time, b.time))
	})
	return cases
}

// within reports whether an object shares a value of the facet with others.
func (r *reference) within(id string, others []string) bool {
	if r.options.Within == "" {
		return true
	}
	for _, f := range r.objects[id].Filters {
		for _, other := range others {
			if f.Facet == r.options.Within && slices.Contains(r.objects[other].Filters, f) {
				return true
			}
		}
	}
	return false
}

// popularity returns how many judged events before the cut name each object.
func (r *reference) popularity() map[string]int {
	counts := map[string]int{}
	for _, e := range r.judged() {
		if e.Time < r.cut {
			for _, id := range r.known(e) {
				counts[id]++
			}
		}
	}
	return counts
}

// pairs returns count(A, B) of the best 50 B of A.
func (r *reference) pairs(a string) map[string]int {
	if counts, ok := r.paired[a]; ok {
		return counts
	}
	counts := map[string]int{}
	for _, first := range r.judged() {
		for _, second := range r.judged() {
			age := second.Time - first.Time
			if first.User != second.User || age < 0 || age > 30*60*1000 || second.Time >= r.cut || !slices.Contains(r.known(first), a) {
				continue
			}
			for _, b := range r.known(second) {
				if b != a {
					counts[b]++
				}
			}
		}
	}
	var ids []string
	for b := range counts {
		ids = append(ids, b)
	}
	slices.SortFunc(ids, func(x, y string) int { return cmp.Or(cmp.Compare(counts[y], counts[x]), strings.Compare(x, y)) })
	for _, b := range ids[min(len(ids), 50):] {
		delete(counts, b)
	}
	r.paired[a] = counts
	return counts
}

func (r *reference) orderByPopularity(c referenceCase) []string {
	counts := r.popularity()
	order := slices.Clone(c.candidates)
	slices.SortFunc(order, func(x, y string) int { return cmp.Or(cmp.Compare(counts[y], counts[x]), strings.Compare(x, y)) })
	return order
}

func (r *reference) orderByPairs(c referenceCase) []string {
	counts, sums := r.popularity(), map[string]float64{}
	previous := slices.Compact(slices.Sorted(slices.Values(c.previous)))
	for _, a := range previous {
		for b, n := range r.pairs(a) {
			sums[b] += float64(n) / float64(counts[a])
		}
	}
	order := slices.Clone(c.candidates)
	slices.SortFunc(order, func(x, y string) int {
		return cmp.Or(cmp.Compare(sums[y], sums[x]), cmp.Compare(counts[y], counts[x]), strings.Compare(x, y))
	})
	return order
}

// orderByRecent orders by the decayed counts of what was named before the cut.
func (r *reference) orderByRecent(halfLife float64) func(referenceCase) []string {
	counts := map[string]float64{}
	for _, e := range r.judged() {
		age := float64(r.cut - e.Time)
		for _, id := range r.known(e) {
			switch {
			case age <= 0:
			case halfLife == 0:
				counts[id]++
			default:
				counts[id] += math.Pow(0.5, age/halfLife)
			}
		}
	}
	return func(c referenceCase) []string {
		order := slices.Clone(c.candidates)
		slices.SortFunc(order, func(x, y string) int {
			return cmp.Or(cmp.Compare(affinity.Rounded(counts[y]), affinity.Rounded(counts[x])), strings.Compare(x, y))
		})
		return order
	}
}

// orderAsShown orders by the best position in the lists of the values of the case,
// else in the list without a placement, else in any. What was not listed follows.
func (r *reference) orderAsShown(c referenceCase) []string {
	own, general := map[string]bool{}, false
	for _, line := range r.shown {
		general = general || line.placement == ""
		for _, id := range c.objects {
			if r.options.Within != "" && slices.Contains(r.objects[id].Filters, event.Filter{Facet: r.options.Within, Value: line.placement}) {
				own[line.placement] = true
			}
		}
	}
	positions := map[string]float64{}
	for _, line := range r.shown {
		counts := own[line.placement]
		if len(own) == 0 {
			counts = !general || line.placement == ""
		}
		if at, ok := positions[line.object]; counts && (!ok || line.position < at) {
			positions[line.object] = line.position
		}
	}
	order := r.orderByPopularity(c)
	slices.SortStableFunc(order, func(x, y string) int {
		px, okX := positions[x]
		py, okY := positions[y]
		switch {
		case okX && okY:
			return cmp.Compare(px, py)
		case okX:
			return -1
		case okY:
			return 1
		}
		return 0
	})
	return order
}

// query returns what a request for the case's candidates would rank.
func (r *reference) query(c referenceCase, s strategy.Strategy) *ranking.Query {
	window := affinity.Window{Now: c.time}
	var past []affinity.Event
	var objects [][]string
	for _, e := range r.past(c) {
		past = append(past, affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: r.counts(e)})
		objects = append(objects, r.known(e))
	}
	q := &ranking.Query{Now: c.time, Affinities: affinity.Reference(past, s, window).Affinities}
	q.Session = affinity.ReferenceSession(past, s, window)

	full := s.RankingOrDefault()
	counts, statistics := r.crowd(full.Popularity.HalfLife.Millis())
	before := r.popularity()
	frequencies := &ranking.Frequencies{Objects: len(before), Filters: map[event.Filter]int{}}
	for id, o := range r.objects {
		if before[id] > 0 {
			crowd.CountFilters(frequencies.Filters, o.Filters)
		}
		q.HighestCount = max(q.HighestCount, counts[id])
	}
	q.Frequencies = frequencies

	for _, a := range historyOf(past, objects, s, func(id string) bool { return statistics[id].Events > 0 }) {
		n := ranking.Neighbours{Past: a, Events: float64(statistics[a.ObjectID].Events)}
		for kind, list := range n.Lists() {
			links := statistics[a.ObjectID].Links[kind]
			for _, p := range links[:min(crowd.Best, len(links))] {
				*list = append(*list, ranking.Pair{ObjectID: p.ObjectID, Count: float64(p.Count)})
			}
		}
		q.Neighbours = append(q.Neighbours, n)
	}
	for _, id := range c.candidates {
		at, dated := r.objects[id].Dates[full.Freshness.Attribute]
		q.Candidates = append(q.Candidates, ranking.Candidate{
			ObjectID: id, Object: ranking.Compile(r.objects[id].Filters), Count: counts[id], Published: at, Dated: dated,
		})
	}
	return q
}

// past returns the events before a case of whom it regards.
func (r *reference) past(c referenceCase) (past []Event) {
	person := c.user
	for _, l := range r.links {
		if l.User == c.user && l.From <= c.time && c.time < l.To {
			person = l.Known
		}
	}
	counts := func(e Event) bool {
		return e.User == person || slices.ContainsFunc(r.links, func(l Link) bool {
			return l.Known == person && l.User == e.User && l.From <= c.time && l.Since <= e.Time && e.Time < l.To
		})
	}
	for _, e := range r.events {
		if e.Time < c.time && counts(e) {
			past = append(past, e)
		}
	}
	slices.SortStableFunc(past, func(a, b Event) int { // they are by user
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.ID, b.ID))
	})
	return past
}

// crowd returns the statistics at the cut.
func (r *reference) crowd(halfLife float64) (map[string]float64, map[string]crowd.Object) {
	if known, ok := r.crowds[halfLife]; ok {
		return known.counts, known.objects
	}
	users := map[string][]crowd.Event{}
	for _, e := range r.judged() {
		if e.Time < r.cut {
			users[e.User] = append(users[e.User], crowd.Event{Time: e.Time, ObjectIDs: r.known(e)})
		}
	}
	counts, objects := crowd.Reference(slices.Collect(maps.Values(users)), r.cut, halfLife)
	r.crowds[halfLife] = crowdOf{counts, objects}
	return counts, objects
}

// counts returns how many objects of an event carry each filter.
func (r *reference) counts(e Event) (counts []affinity.Count) {
	for _, id := range r.known(e) {
		for _, f := range r.objects[id].Filters {
			counts = append(counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: 1})
		}
	}
	for _, f := range e.Filters {
		counts = append(counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: 1})
	}
	return counts
}

// historyOf returns the objects of the session that the statistics count. The last instant is
// the newest that names any object.
func historyOf(past []affinity.Event, objects [][]string, s strategy.Strategy, counted func(string) bool) (all []ranking.Past) {
	at, session := int64(math.MinInt64), 0
	var steps []int64
	for i, e := range slices.Backward(past) {
		if s.EventScore(e.Type, e.Name) <= 0 {
			continue
		}
		if session++; session > affinity.MaxSessionEvents {
			break
		}
		if at == math.MinInt64 && len(objects[i]) > 0 {
			at = e.Time
		}
		if !slices.ContainsFunc(objects[i], counted) {
			continue
		}
		if len(steps) == 0 || steps[len(steps)-1] != e.Time {
			if len(all) >= ranking.MaxHistory {
				break
			}
			steps = append(steps, e.Time)
		}
		for _, id := range objects[i] {
			if counted(id) && !slices.ContainsFunc(all, func(p ranking.Past) bool { return p.ObjectID == id }) {
				all = append(all, ranking.Past{ObjectID: id, Last: e.Time == at, Age: len(steps) - 1})
			}
		}
	}
	return all
}

// metrics scores an order of a case.
func (r *reference) metrics(c referenceCase, order []string) outcome {
	dcg, ideal, o := 0.0, 0.0, outcome{}
	for i, id := range order {
		if !slices.Contains(c.relevant, id) {
			continue
		}
		if o.reciprocal == 0 {
			o.reciprocal = 1 / float64(i+1)
		}
		if i < r.options.At {
			dcg += 1 / math.Log2(float64(i)+2)
			o.hit = 1
		}
	}
	for i := range min(len(c.relevant), r.options.At) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	o.ndcg = dcg / ideal
	return o
}

// judge averages the metrics of all cases.
func (r *reference) judge(order func(referenceCase) []string) *Result {
	var outcomes []outcome
	shown := map[string]bool{}
	for _, c := range r.cases() {
		list := order(c)
		for _, id := range list[:min(len(list), r.options.At)] {
			shown[id] = true
		}
		outcomes = append(outcomes, r.metrics(c, list))
	}
	return newResult(outcomes, float64(len(shown))/float64(len(r.objects)))
}
