package differ

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
)

// model is what an app holds: what the engine has accepted, in order.
type model struct {
	rules
	users   map[string]*user
	indexes map[string]*index
}

// user holds the events of a user that count.
type user struct {
	events  map[string]*event // by identity
	untimed []*untimed
	// deleted is the time (ms) up to which no event counts. Events that were received before a
	// deletion are gone from the model with it.
	deleted int64
	out     map[string]bool // types of events that the user has opted out of
	// late is set while events wait to be applied: the engine accepts them before they count.
	late bool
	// tried is when the last attempt failed whose events may come yet.
	tried int64
}

// untimed is an event that gets its time when it is received. The engine says which time that is,
// and the model checks that it lies within the attempts to send it. Each attempt may have been
// received, also one that was not answered.
type untimed struct {
	event
	mark  string // queryID, which names it in an export
	spans []span
	times []int64
}

// index is an index of the catalog.
type index struct {
	facets  []string
	bands   map[string][]float64
	objects map[string]map[string]any // by objectID: the record
}

func (m *model) user(token string) *user {
	u := m.users[token]
	if u == nil {
		u = &user{events: map[string]*event{}, out: map[string]bool{}}
		m.users[token] = u
	}
	return u
}

// resolve counts, for each filter, the objects of an event that carry it, each object once.
func (m *model) resolve(e *event) {
	e.counts, e.unknown = map[filter]int{}, 0
	for _, f := range e.Filters {
		e.counts[f] = 1
	}
	for _, id := range e.Objects {
		i := m.indexes[e.Index]
		record, known := i.objects[id]
		if !known {
			e.unknown++
			continue
		}
		for _, f := range i.filters(record) {
			e.counts[f]++
		}
	}
}

// accept adds an event. An event with content and time of another is that event: the filters of the
// last one stay, unless the other knows more of its objects.
func (m *model) accept(u *user, e event) {
	m.resolve(&e)
	id := e.identity()
	if before := u.events[id]; u.out[e.Type] || e.Time <= u.deleted || before != nil && before.unknown < e.unknown {
		return
	}
	u.events[id] = &e
}

func (m *model) acceptUntimed(u *user, e event, mark string, spans []span) {
	m.resolve(&e)
	if !u.out[e.Type] {
		u.untimed = append(u.untimed, &untimed{event: e, mark: mark, spans: slices.Clone(spans)})
	}
}

// delete deletes what was received until now. The answer names the time of receipt up to which it
// does; events of that time but the last millisecond of it, the slack of a local engine, are deleted
// whenever they come.
func (u *user) delete(until int64) {
	u.events, u.untimed = map[string]*event{}, nil
	u.deleted = max(u.deleted, until-1)
}

// all returns the events of a user that count.
func (u *user) all() []*event {
	events := slices.Collect(maps.Values(u.events))
	for _, x := range u.untimed {
		for _, t := range x.times {
			e := x.event
			e.Time = t
			events = append(events, &e)
		}
	}
	return events
}

// unsure reports whether events of the user may come yet, or have no time.
func (u *user) unsure() bool {
	return slices.ContainsFunc(u.untimed, func(x *untimed) bool { return len(x.times) < len(x.spans) })
}

// enrich gives the events of an index the filters that their objects have now.
func (m *model) enrich(index string) {
	for _, u := range m.users {
		for _, e := range u.events {
			if e.Index == index && len(e.Objects) > 0 {
				m.resolve(e)
			}
		}
		for _, x := range u.untimed {
			if x.Index == index && len(x.Objects) > 0 {
				m.resolve(&x.event)
			}
		}
	}
}

// filters are those of a record: one for each distinct value of each facet.
func (i *index) filters(record map[string]any) []filter {
	seen := map[filter]bool{}
	for _, facet := range i.facets {
		values, is := record[facet].([]any)
		if !is {
			values = []any{record[facet]}
		}
		for _, value := range values {
			if text := i.text(facet, value); text != "" {
				seen[filter{facet, text}] = true
			}
		}
	}
	return slices.Collect(maps.Keys(seen))
}

var numberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// text is the value of a filter, "" for none.
func (i *index) text(facet string, value any) string {
	text, is := value.(string)
	if number, isNumber := value.(float64); isNumber {
		text, is = strconv.FormatFloat(number, 'f', -1, 64), true
	}
	limits := i.bands[facet]
	if !is || text == "" || limits == nil {
		return text
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !numberForm.MatchString(text) || math.IsNaN(n) {
		return ""
	}
	digits := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	for k, limit := range limits {
		switch {
		case n >= limit:
		case k == 0:
			return "<" + digits(limit)
		default:
			return digits(limits[k-1]) + "-" + digits(limit)
		}
	}
	return digits(limits[len(limits)-1]) + "+"
}
