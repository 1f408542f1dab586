package backtest

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Cases are the instants of a log that a protocol judges. They are immutable
// and safe for concurrent use.
type Cases struct {
	log     *Log
	options Options
	cut     int64
	cases   []instant
	history []int32 // objects of each user in the order of their first instant
	crowd   *statistics
	within  *facetValues // nil: all objects are candidates
}

// instant is one case.
type instant struct {
	user int32
	time int64
	// past are the user's events before the instant, all of them: a place in
	// Log.events and the end.
	pastStart, pastEnd int32
	person             []part // whose events are the past instead; nil: it is the user's
	// seenStart and seenEnd delimit in Cases.history the objects of the user's
	// earlier instants, which are not candidates.
	seenStart, seenEnd int32
	objects            []int32 // of the instant
	previous           []int32 // objects of the instant before
	relevant           []int32 // objects of the instant that are candidates, sorted
	key                uint64  // a hash that other data does not change
}

// Cases finds the instants to judge. The events that the given strategy scores
// above 0 and that name a known object define cases, candidates and crowd
// statistics, whichever strategies are judged later.
//
// The error is a *fault.Error that says why nothing can be judged, or that of
// ctx.
func (l *Log) Cases(ctx context.Context, given strategy.Strategy, o Options) (*Cases, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	l.seal()
	judged, err := l.judged(given)
	if err != nil {
		return nil, err
	}
	facet := o.Within
	if o.Within = ""; facet == None {
		facet = ""
	}
	c := &Cases{log: l, options: o}
	if c.cut, err = l.cut(judged); err != nil {
		return nil, err
	}
	b := builder{Cases: c, judged: judged, seen: make([]int32, len(l.objects))}
	for user := range l.users {
		b.addUser(int32(user))
	}
	if len(c.cases) == 0 {
		return nil, c.noCase()
	}
	c.sample()
	if c.crowd, err = newStatistics(ctx, l, judged, c.cut); err != nil {
		return nil, err
	}
	if facet != "" {
		return c.narrow(facet)
	}
	return c, nil
}

// judged reports, by place in l.events, which events define the cases.
func (l *Log) judged(given strategy.Strategy) ([]bool, error) {
	if err := scores(given); err != nil {
		return nil, err
	}
	points := l.points(given)
	judged := make([]bool, len(l.events))
	scored, found := 0, false
	for i := range l.events {
		e := &l.events[i]
		if points[e.kind] > 0 {
			scored++
			judged[i] = e.objects > 0
			found = found || judged[i]
		}
	}
	switch {
	case len(l.events) == 0:
		return nil, refuse("the log holds no events")
	case scored == 0:
		return nil, refuse("the strategy scores none of the %d events: the log has %s", len(l.events), l.listKinds())
	case !found:
		return nil, refuse("no event that the strategy scores names an object of index %q: %d events score, %d "+
			"objects are known",
			l.index, scored, len(l.objects))
	}
	return judged, nil
}

// points returns the score of each kind of event of the log.
func (l *Log) points(s strategy.Strategy) []float64 {
	points := make([]float64, len(l.kinds))
	for i, k := range l.kinds {
		points[i] = float64(s.EventScore(k.typ, k.name))
	}
	return points
}

// cut returns the first millisecond at or after four fifths of the time that
// the judged events span.
func (l *Log) cut(judged []bool) (int64, error) {
	first, last, events, users := int64(0), int64(0), 0, 0
	for user := range l.users {
		found := false
		for i := l.first[user]; i < l.first[user+1]; i++ {
			if !judged[i] {
				continue
			}
			t := l.events[i].time
			if events == 0 {
				first, last = t, t
			}
			first, last = min(first, t), max(last, t)
			found = true
			events++
		}
		if found {
			users++
		}
	}
	switch {
	case events == 1:
		return 0, refuse("only one event scores and names a known object: a backtest needs users with events at two times")
	case users == 1:
		return 0, refuse("all %d events that score and name a known object are of one user: a backtest needs "+
			"several users", events)
	case last-first < 0:
		return 0, refuse("the times of the events lie too far apart: are they in milliseconds?")
	}
	span := last - first
	return first + span/5*4 + (span%5*4+4)/5, nil
}

// builder collects the cases user by user.
type builder struct {
	*Cases
	judged []bool
	seen   []int32 // by object: 1 + the last user whose history holds it
}

// addUser appends the user's cases.
func (b *builder) addUser(user int32) {
	l, start, end := b.log, int32(len(b.history)), b.log.first[user+1]
	var previous []int32
	var last *instant
	for i := l.first[user]; i < end; {
		from, t := i, l.events[i].time
		var objects []int32
		for ; i < end && l.events[i].time == t; i++ {
			if b.judged[i] {
				objects = append(objects, l.objectsOf(&l.events[i])...)
			}
		}
		if objects == nil {
			continue
		}
		slices.Sort(objects)
		objects = slices.Compact(objects)
		seenEnd := int32(len(b.history))
		b.see(objects, user)
		if previous != nil {
			last = &instant{
				user: user, time: t, pastStart: l.first[user], pastEnd: from, seenStart: start, seenEnd: seenEnd,
				objects: objects, previous: previous, relevant: slices.Clone(b.history[seenEnd:]),
			}
			if b.options.Protocol == Rolling {
				b.addCase(*last)
			}
		}
		previous = objects
	}
	if last != nil && b.options.Protocol == Last {
		b.addCase(*last)
	}
}

// see appends to the history the objects that the user had not turned to
// before.
func (b *builder) see(objects []int32, user int32) {
	for _, o := range objects {
		if b.seen[o] != user+1 {
			b.seen[o] = user + 1
			b.history = append(b.history, o)
		}
	}
}

// addCase appends a case if it is one.
func (c *Cases) addCase(in instant) {
	if in.time < c.cut || len(in.relevant) == 0 {
		return
	}
	in.key = hash(c.log.users[in.user], nil)
	if c.options.Protocol == Rolling {
		in.key = hash(c.log.users[in.user], binary.BigEndian.AppendUint64([]byte{0}, uint64(in.time)))
	}
	c.cases = append(c.cases, in)
}

// Selects reports whether a user is in a sample of this share of all users. It
// depends on the user token alone.
func Selects(user string, share float64) bool {
	return share >= 1 || float64(hash(user, nil)>>11) < share*(1<<53)
}

func hash(user string, more []byte) uint64 {
	h := fnv.New64a()
	h.Write([]byte(user)) // never fails
	h.Write(more)
	return mix(h.Sum64())
}

// mix spreads the bits of a hash: the upper bits of FNV-1a hardly depend on the
// last bytes. It is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sample keeps the cases with the lowest hashes.
func (c *Cases) sample() {
	n := c.options.Sample
	if n == 0 || n >= len(c.cases) {
		return
	}
	keys := make([]uint64, len(c.cases))
	for i := range c.cases {
		keys[i] = c.cases[i].key
	}
	slices.Sort(keys)
	c.cases = slices.DeleteFunc(c.cases, func(in instant) bool { return in.key >= keys[n] })
}

func (c *Cases) noCase() error {
	within := ""
	if c.options.Within != "" {
		within = " that carries the attribute " + c.options.Within
	}
	return refuse("no case: no user has an instant at or after the cut, %s, with an earlier one and an object%s "+
		"that they had not turned to before",
		event.FormatTime(c.cut), within)
}

// Len returns the number of cases.
func (c *Cases) Len() int { return len(c.cases) }

// Users returns the number of users with a case.
func (c *Cases) Users() int {
	users := 0
	for i := range c.cases { // by user
		if i == 0 || c.cases[i].user != c.cases[i-1].user {
			users++
		}
	}
	return users
}

// Cut returns the time, in ms, from which instants are cases and before which
// crowd statistics end.
func (c *Cases) Cut() int64 { return c.cut }

// Candidates returns the number of objects of the index.
func (c *Cases) Candidates() int { return len(c.log.objects) }

// At returns the length of the top list.
func (c *Cases) At() int { return c.options.At }

// Key returns a hash of case i that depends on nothing but its user and, by the
// protocol Rolling, its time: what splits cases must not depend on the others.
func (c *Cases) Key(i int) uint64 { return c.cases[i].key }

// Subset returns the cases that keep chooses. Crowd statistics stay those of
// the whole log.
func (c *Cases) Subset(keep func(i int) bool) *Cases {
	s := *c
	s.cases = nil
	for i := range c.cases {
		if keep(i) {
			s.cases = append(s.cases, c.cases[i])
		}
	}
	return &s
}
