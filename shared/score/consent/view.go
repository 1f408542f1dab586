package consent

import (
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// View says which events of a user count, and which of their facets: those that a granted purpose covers, from when it
// counts. nil means that all do.
type View struct {
	rights []right
	// bands are the times in which receipts decide for which purposes an event counts that is kept.
	bands []affinity.Tombstone
	whole int64
}

// right is a purpose that is granted, and what does not count for it.
type right struct {
	*Purpose
	since affinity.Tombstone
}

// Use is what a surface does with a stored profile, which has all that is kept.
type Use int

// The uses.
const (
	All  Use = iota // the surface uses all that is kept
	None            // the user is unknown to it
	Part            // the view is computed
)

// String returns the word for a use: all, none or part.
func (u Use) String() string { return [...]string{"all", "none", "part"}[u] }

// Of returns what counts of a user on a surface, and how that relates to what is kept. from is the begin of the window
// (ms): what earlier events count for does not matter.
func (s Setting) Of(c Consents, on Surface, from int64) (*View, Use) {
	if !s.On() {
		return nil, All
	}
	var kept []right
	var others []affinity.Tombstone // of purposes by which blocks may hold events
	if int(s.Last) > len(s.Purposes) {
		others = append(others, affinity.Tombstone{}) // of one that the app had
	}
	for i := range s.Purposes {
		p := &s.Purposes[i]
		one, _, _ := c.of(p.Number)
		if one.Since.Alive() <= from {
			one.Since = affinity.Tombstone{}
		}
		if one.State != Withdrawn {
			others = append(others, one.Since)
		}
		if p.grants(one) {
			kept = append(kept, right{p, one.Since})
		}
	}
	if on == Kept {
		return newView(kept, others), All
	}
	used := make([]right, 0, len(kept))
	for _, r := range kept {
		if slices.Contains(r.Surfaces, on) {
			used = append(used, r)
		}
	}
	if len(used) == 0 {
		return Nothing(), None
	}
	for _, r := range kept {
		if !slices.ContainsFunc(used, func(u right) bool { return u.covers(r) }) {
			return newView(used, others), Part
		}
	}
	return newView(kept, others), All
}

// covers reports whether each event and facet that counts by another right counts by this one, too.
func (r right) covers(o right) bool {
	return r.Purpose == o.Purpose || r.Purpose.covers(o.Purpose) && r.since.DeletedUntil <= o.since.DeletedUntil &&
		r.since.ReceivedUntil <= o.since.ReceivedUntil
}

// newView returns nil if all events and facets count. others are what does not count for purposes by which a block may
// hold an event.
func newView(rights []right, others []affinity.Tombstone) *View {
	v := &View{rights: rights, whole: math.MaxInt64}
	for _, r := range rights {
		// A block holds no event that counts by later rights alone.
		earlier := func(o affinity.Tombstone) bool {
			return o.DeletedUntil < r.since.DeletedUntil || o.ReceivedUntil < r.since.ReceivedUntil
		}
		if slices.ContainsFunc(others, earlier) {
			v.bands = append(v.bands, r.since)
		}
		if r.all() && r.since == (affinity.Tombstone{}) {
			return nil
		}
		if r.all() {
			v.whole = min(v.whole, r.since.Alive())
		}
	}
	return v
}

// Nothing returns the view by which no event counts.
func Nothing() *View { return &View{whole: math.MaxInt64} }

// Keeps reports whether an event of a type, a name, a time and a receipt (ms) counts.
func (v *View) Keeps(typ event.Type, name string, time, receipt int64) bool {
	return v == nil || slices.ContainsFunc(v.rights, func(r right) bool { return r.counts(typ, name, time, receipt) })
}

func (r *right) counts(typ event.Type, name string, time, receipt int64) bool {
	return !r.since.Covers(time, receipt) && r.serves(typ, name)
}

// Any reports whether any event may count.
func (v *View) Any() bool { return v == nil || len(v.rights) > 0 }

// Counts returns the counts of an event, of a receipt (ms), whose facets count, and whether the event does.
func (v *View) Counts(e affinity.Event, receipt int64) ([]affinity.Count, bool) {
	if v == nil {
		return e.Counts, true
	}
	var facets []string
	counts := false
	for i := range v.rights {
		r := &v.rights[i]
		if !r.counts(e.Type, e.Name, e.Time, receipt) {
			continue
		}
		if len(r.Facets) == 0 {
			return e.Counts, true
		}
		counts, facets = true, append(facets, r.Facets...)
	}
	if !counts {
		return nil, false
	}
	var some []affinity.Count
	for _, n := range e.Counts {
		if slices.Contains(facets, n.Facet) {
			some = append(some, n)
		}
	}
	return some, true
}

// Whole returns the time (ms) from which on all events and facets count, whatever their receipts.
func (v *View) Whole() int64 {
	if v == nil {
		return math.MinInt64
	}
	return v.whole
}

// Unclear reports whether the times from one to another (ms) hold one at which the receipt of an event that is kept
// decides for what it counts.
func (v *View) Unclear(from, to int64) bool {
	return v != nil && slices.ContainsFunc(v.bands, func(t affinity.Tombstone) bool {
		return from < t.Alive() && t.DeletedUntil < to
	})
}

// Judge says what counts on a surface of the events of many users, by the consents of their rows. The zero Judge is
// that of an app without purposes: all counts.
type Judge struct {
	setting Setting
	on      Surface
	views   map[string]*View // by the bytes of consents
}

// Judge returns a Judge.
func (s Setting) Judge(on Surface) Judge {
	if !s.On() {
		return Judge{}
	}
	return Judge{s, on, map[string]*View{}}
}

// View returns what counts of a user with these consents, as a row has them. Nothing counts of one whose consents are
// damaged.
func (j Judge) View(consents []byte) *View {
	if !j.setting.On() {
		return nil
	}
	view, known := j.views[string(consents)]
	if !known {
		c, err := Parse(consents)
		if err != nil {
			return &View{}
		}
		view, _ = j.setting.Of(c, j.on, 0)
		j.views[string(consents)] = view
	}
	return view
}

// Counting returns the purposes for which an event counts of a user with these consents, and a facet of it; "" for any.
func (s Setting) Counting(c Consents, e affinity.Event, facet string, receipt int64) (names []string) {
	for i := range s.Purposes {
		p := &s.Purposes[i]
		one, _, _ := c.of(p.Number)
		r := right{p, one.Since}
		if p.grants(one) && r.counts(e.Type, e.Name, e.Time, receipt) && (facet == "" || within(p.Facets, facet)) {
			names = append(names, p.Name)
		}
	}
	return names
}
