package backtest

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
)

// Link says that the events of a token count for a known user: those from Since on and before To (ms), in
// the cases from From on, when the user had signed in under the token.
type Link struct {
	User, Known     string
	Since, To, From int64
}

// part is the events of a token that count for a person in the cases from an instant on.
type part struct {
	user            int32
	since, to, from int64
}

// persons are the parts of each known user, and who has signed in under each token.
type persons struct {
	log   *Log
	parts map[string][]part
	links map[string][]Link // by the token
}

func (l *Log) persons(all []Link) persons {
	p := persons{l, map[string][]part{}, map[string][]Link{}}
	for _, link := range all {
		p.links[link.User] = append(p.links[link.User], link)
		if p.parts[link.Known] == nil {
			p.add(link.Known, Link{User: link.Known, Since: math.MinInt64, To: math.MaxInt64, From: math.MinInt64})
		}
		p.add(link.Known, link)
	}
	return p
}

func (p *persons) add(known string, link Link) {
	if user, ok := p.log.userOf[link.User]; ok {
		p.parts[known] = append(p.parts[known], part{user, link.Since, link.To, link.From})
	}
}

// of returns the parts of whom a case regards: of the user who was signed in under the token, else of the token
// itself. Nil: the token's own events are all.
func (p *persons) of(in *instant) []part {
	token := p.log.users[in.user]
	for _, link := range p.links[token] {
		if link.From <= in.time && in.time < link.To {
			token = link.Known
		}
	}
	return p.parts[token]
}

// linked returns the cases with the histories of persons by links, and which of them have another history than
// that of their token. Candidates, relevant objects and what all users did stay.
func (c *Cases) linked(all []Link) (linked *Cases, changed []bool) {
	persons, n := c.log.persons(all), *c
	n.cases, changed = slices.Clone(c.cases), make([]bool, len(c.cases))
	var own, whole []int32
	for i := range n.cases {
		in := &n.cases[i]
		parts := persons.of(in)
		if parts == nil {
			continue
		}
		own = c.log.past(in, own)
		in.person = parts
		whole = c.log.past(in, whole)
		if changed[i] = !slices.Equal(own, whole); !changed[i] {
			in.person = nil
		}
	}
	return &n, changed
}

// past returns the events before an instant, of its user or person, as places in Log.events by time. It
// uses the memory of to.
func (l *Log) past(in *instant, to []int32) []int32 {
	to = to[:0]
	if in.person == nil {
		for i := in.pastStart; i < in.pastEnd; i++ {
			to = append(to, i)
		}
		return to
	}
	for _, p := range in.person {
		if p.from > in.time {
			continue
		}
		end, before := l.first[p.user+1], min(p.to, in.time)
		for i := l.firstFrom(p.user, p.since); i < end && l.events[i].time < before; i++ {
			to = append(to, i)
		}
	}
	slices.SortFunc(to, func(a, b int32) int {
		x, y := &l.events[a], &l.events[b]
		return cmp.Or(cmp.Compare(x.time, y.time), bytes.Compare(x.id[:], y.id[:]), cmp.Compare(a, b))
	})
	return to
}

// firstFrom returns the place of the user's first event at or after a time.
func (l *Log) firstFrom(user int32, time int64) int32 {
	events := l.events[l.first[user]:l.first[user+1]]
	return l.first[user] + int32(sort.Search(len(events), func(i int) bool { return events[i].time >= time }))
}
