package profile_test

import "fmt"

// linkLaw is what the model knows of how the events must count.
type linkLaw struct {
	sure, counts [linkTokens]uint8 // by token: events whose count is certain, and those that count
	events       uint8             // messages under way
	causes       uint16            // operations under way; from bit 8 on, processes that have changed a link
	acked        uint8             // operations that were answered
	unlinked     [linkTokens][linkTokens]uint8
	undone       uint8 // evidence whose link was undone
	gone         uint8 // events that an answered deletion has removed
	refused      uint8 // events that were dropped, because they name a token whose row excludes them
	mayGo        uint8 // events that a deletion, or an opt-out, may remove from their own token
	ownOut       uint8 // tokens that have opted out themselves
}

// deadAt reports whether a dead interval of a row holds a time.
func (m *linkModel) deadAt(h *linkHead, time uint8) bool {
	for _, e := range h.cell.entries {
		if e.known != 0 && e.state == deadEntry && e.holds(time) && !(m.deadByRow && h.ended(e)) {
			return true
		}
	}
	return false
}

// links reports whether an entry in the row a links its token to a known one, with the row k.
func (m *linkModel) links(e linkEntry, who uint8, a, k *linkHead) bool {
	if e.known != who+1 || e.state != liveEntry || a.ended(e) {
		return false
	}
	return e.at >= k.deleted || m.knownEndsNothing || m.knownOwnOnly
}

// counted reports whether an event counts for a token with the row k; a is the row of the
// event's token.
func (m *linkModel) counted(e, who uint8, k, a *linkHead) bool {
	ev := m.events[e]
	if ev.token == who {
		return !k.excludes(ev.time) && !m.deadAt(k, ev.time)
	}
	if a.excludes(ev.time) || k.excludes(ev.time) && !m.knownOwnOnly {
		return false
	}
	if m.truthInKnown {
		c := k.cell.copies[ev.token]
		return c.since <= ev.time && ev.time < c.to
	}
	for _, en := range a.cell.entries {
		if m.links(en, who, a, k) && en.holds(ev.time) {
			return true
		}
	}
	return false
}

// truth is the law, by the rows as they are.
func (m *linkModel) truth(s *linkState, e, who uint8) bool {
	ev := m.events[e]
	a, k := &s.rows[ev.token].linkHead, &s.rows[who].linkHead
	if s.log&bitOf(e) == 0 || a.excludes(ev.time) {
		return false
	}
	if ev.token == who {
		return !m.deadAt(a, ev.time)
	}
	return s.phase == 2 && !k.excludes(ev.time) && linkedBy(a, k, who, ev.time)
}

// linkedBy reports whether an entry that counts holds a time.
func linkedBy(a, k *linkHead, who, time uint8) bool {
	for _, en := range a.cell.entries {
		if en.known == who+1 && en.state == liveEntry && !a.ended(en) && en.at >= k.deleted && en.holds(time) {
			return true
		}
	}
	return false
}

// linkedUntil reports whether an entry from before a tombstone holds a time.
func linkedUntil(a *linkHead, who, time, until uint8) bool {
	for _, en := range a.cell.entries {
		if en.known == who+1 && en.state == liveEntry && en.at < until && en.holds(time) {
			return true
		}
	}
	return false
}

// affects reports whether an operation under way may change whether an event counts for a token.
func (m *linkModel) affects(op, e, who uint8) bool {
	o := &m.ops[op%8]
	if op >= 8 {
		o = &m.begun[op-8]
	}
	ev := m.events[e]
	switch o.kind {
	case linkMessage:
		names := m.events[o.event].names
		return names != 0 && (ev.token == m.events[o.event].token || m.limit > 0 && who == names-1)
	case linkUnlinker:
		return ev.token == o.token && who == o.known
	case linkDeleter:
		if o.token == ev.token {
			return ev.time < o.clock || who != ev.token
		}
		return who == o.token || who == ev.token && ev.time < o.clock
	case linkChanger, linkSwitcher:
		return true
	}
	return false
}

// begin notes that an operation begins.
func (t *linkTurn) begin() {
	p, s := t.p, t.s
	if p.kind == linkMessage {
		s.now = max(s.now, t.events[p.event].time+1)
	}
	if p.kind == linkMessage && s.law.refused&bitOf(p.event) != 0 { // it is in the log until it is dropped again
		s.law.events |= bitOf(p.event)
		t.unsettle(p.op)
	}
	if s.law.acked&bitOf(p.op) != 0 && p.kind != linkDeleter && p.kind != linkChanger {
		return // a second delivery, or a retry of what is done, changes nothing
	}
	p.quiet = true
	for o := range uint8(8) {
		if p.kind == linkMessage && s.law.causes&(1<<o) != 0 && o != p.op && t.conflicts(&t.ops[o], p.event) {
			p.quiet = false
		}
	}
	for i := range s.procs {
		other := &s.procs[i] // a deletion during a message may end the link that it has found
		if other.kind == linkMessage && (p.kind == linkDeleter || t.conflicts(p, other.event)) {
			other.quiet = false
		}
	}
	s.law.causes |= 1 << p.op
	if p.kind == linkMessage {
		s.law.events |= bitOf(p.event)
	}
	t.unsettle(p.op)
}

// unsettle notes that what an operation may change is uncertain.
func (t *linkTurn) unsettle(op uint8) {
	for e := range uint8(linkEvents) {
		for who := range uint8(linkTokens) {
			if !t.affects(op, e, who) && !(op < 8 && t.p.kind == linkMessage && t.p.event == e) {
				continue
			}
			t.s.law.sure[who] &^= bitOf(e)
			for i := range t.s.procs {
				if p := &t.s.procs[i]; p.kind == linkReader && p.known == who {
					p.sure &^= bitOf(e)
				}
			}
		}
	}
}

// changed notes that a process has changed a link, and that nobody was marked yet.
func (t *linkTurn) changed() {
	t.s.law.causes |= 1 << (8 + t.n)
	t.unsettle(uint8(8 + t.n))
}

// settle makes certain what no operation under way may change.
func (m *linkModel) settle(s *linkState) {
	for e := range uint8(linkEvents) {
		for who := range uint8(linkTokens) {
			free := s.law.events&bitOf(e) == 0 && !s.delivering(e)
			for op := range uint8(8 + linkProcs) {
				free = free && !(s.law.causes&(1<<op) != 0 && m.affects(op, e, who))
			}
			if !free {
				continue
			}
			s.law.sure[who] |= bitOf(e)
			if s.law.counts[who] &^= bitOf(e); m.truth(s, e, who) {
				s.law.counts[who] |= bitOf(e)
			}
		}
	}
}

// delivering reports whether a delivery of an event that was refused is under way: the event
// is in the log until it is dropped again.
func (s *linkState) delivering(e uint8) bool {
	for i := range s.procs {
		p := &s.procs[i]
		if p.kind == linkMessage && p.event == e && p.step != begins && (p.step != finished || p.died) {
			return s.law.refused&bitOf(e) != 0
		}
	}
	return false
}

// conflicts reports whether an operation may undo the link that an event makes.
func (m *linkModel) conflicts(o *linkProc, e uint8) bool {
	switch o.kind {
	case linkUnlinker, linkChanger:
		return true
	case linkMessage:
		return o.event != e && m.events[o.event].names != 0
	case linkDeleter:
		return o.clock > m.events[e].time
	}
	return false
}

// acknowledge ends an operation.
func (t *linkTurn) acknowledge() {
	p, s := t.p, t.s
	switch p.kind {
	case linkMessage:
		if s.law.acked&bitOf(p.op) == 0 && p.quiet && !p.stale && !p.named && t.limit == 0 {
			t.linkWanted()
		}
		s.law.events &^= bitOf(p.event)
		if p.named || p.quiet && t.namesOut() {
			s.law.refused |= bitOf(p.event)
		} else if p.quiet && t.truth(s, p.event, t.token()) {
			s.law.mayGo &^= bitOf(p.event)
		}
	case linkUnlinker:
		s.law.unlinked[p.token][p.known] = max(s.law.unlinked[p.token][p.known], p.clock)
	case linkDeleter, linkChanger:
		t.exclusionAnswered()
	}
	s.law.causes &^= 1<<p.op | 1<<(8+t.n) | p.saw
	s.law.acked |= bitOf(p.op)
	t.settle(s)
	if t.limit > 0 && t.bad == "" {
		t.checkLimit()
	}
}

// linkWanted checks that acknowledged evidence has made a link, if nothing stands against it.
func (t *linkTurn) linkWanted() {
	ev := t.events[t.p.event]
	if ev.names == 0 {
		return
	}
	a, k := &t.s.rows[ev.token].linkHead, &t.s.rows[ev.names-1].linkHead
	if a.excludes(ev.time) || k.excludes(ev.time) || a.cell.role == known || k.cell.role == anonymous ||
		t.s.law.unlinked[ev.token][ev.names-1] > ev.time {
		return
	}
	for _, en := range a.cell.entries {
		late := en.known != 0 && en.state != voidEntry && (en.at > ev.time || en.to != openEnd && en.to > ev.time)
		if late || en.known == ev.names && linkedBy(a, k, ev.names-1, ev.time) {
			return
		}
	}
	t.bad = "acknowledged evidence has made no link"
}

// excluded notes a tombstone of a token, just before it is written: what it may remove.
func (t *linkTurn) excluded(who, until uint8) {
	for e, ev := range t.events {
		if ev.time >= until {
			continue
		}
		a, k := &t.s.rows[ev.token].linkHead, &t.s.rows[who].linkHead
		if ev.token == who || ev.names == who+1 {
			t.s.law.mayGo |= bitOf(uint8(e))
		} else if linkedBy(a, k, who, ev.time) {
			t.s.law.mayGo |= bitOf(uint8(e))
			if who == t.p.token && t.s.law.acked&bitOf(uint8(e)) != 0 && linkedUntil(a, who, ev.time, until) {
				t.p.owed |= bitOf(uint8(e))
			}
		}
	}
}

// exclusionAnswered notes which events are gone, and checks whom an opt-in has brought back.
func (t *linkTurn) exclusionAnswered() {
	p, s := t.p, t.s
	for e, ev := range t.events {
		row, others := &s.rows[ev.token], false
		for _, en := range row.cell.entries {
			others = others || en.known != 0 && en.holds(ev.time) && (en.state == voidEntry || en.known != p.token+1)
		}
		if ev.token == p.token && ev.time < p.clock || p.owed&bitOf(uint8(e)) != 0 && !others {
			s.law.gone |= bitOf(uint8(e))
		}
	}
	if p.kind != linkChanger {
		return
	}
	if s.rows[p.token].cell.role != known && p.out {
		s.law.ownOut |= bitOf(p.token)
	}
	for who := range s.rows {
		if r := &s.rows[who]; !p.out && r.out && r.cell.outBy == p.token+1 {
			t.bad = "a token stays out after the known one has opted in"
		}
	}
}

// namesOut reports whether the event of a message names a token that is out.
func (t *linkTurn) namesOut() bool {
	ev := t.ev()
	return ev.names != 0 && t.s.rows[ev.names-1].out && t.s.law.unlinked[ev.token][ev.names-1] <= ev.time
}

func (t *linkTurn) checkLimit() {
	open := uint8(0)
	for i := range t.s.procs {
		if p := &t.s.procs[i]; p.kind == linkMessage && t.s.law.causes&(1<<p.op) != 0 {
			return
		}
	}
	for who := range t.s.rows[:t.knownBy] {
		for _, en := range t.s.rows[who].cell.entries {
			if en.known != 0 && en.state == liveEntry && en.to == openEnd {
				open++
			}
		}
	}
	if open > t.limit {
		t.bad = "more tokens are linked than the limit allows"
	}
}

// always is checked in every state. A stored read is one row, so every valid profile is an
// answer that a client may get now.
func (m *linkModel) always(s *linkState) string {
	for who := range s.rows {
		r := &s.rows[who]
		valid := r.profile.stored && !r.profile.marker && r.profile.deleted == r.deleted &&
			r.profile.marks == r.marks && r.profile.format == m.format(s) && !r.out
		if valid && (uint8(who) >= m.knownBy || m.own) {
			if wrong := (r.profile.counts ^ s.law.counts[who]) & s.law.sure[who]; wrong != 0 {
				return fmt.Sprintf("the stored profile of %s counts the events %03b, not %03b",
					linkNames[who], r.profile.counts, s.law.counts[who])
			}
		}
		if s.law.ownOut&bitOf(uint8(who)) != 0 && !r.out {
			return "a token that has opted out itself is in"
		}
		if fault := m.entriesFault(s, uint8(who)); fault != "" {
			return fault
		}
	}
	for e, ev := range m.events {
		b, counts := bitOf(uint8(e)), m.truth(s, uint8(e), ev.token)
		if counts && (s.law.gone&b != 0 || s.law.refused&b != 0 && !s.delivering(uint8(e))) {
			return fmt.Sprintf("event %d, which was removed, is back", e)
		}
		if s.law.acked&b != 0 && s.law.mayGo&b == 0 && !counts {
			return fmt.Sprintf("event %d of %s is lost", e, linkNames[ev.token])
		}
	}
	return ""
}

// entriesFault checks the entries of a token.
func (m *linkModel) entriesFault(s *linkState, who uint8) string {
	r := &s.rows[who]
	for i, en := range r.cell.entries {
		if en.known == 0 || en.state == voidEntry || r.ended(en) {
			continue
		}
		if en.state == liveEntry && s.law.unlinked[who][en.known-1] > en.at {
			return "a link that was undone is back"
		}
		for _, o := range r.cell.entries[i+1:] {
			if o.known != 0 && o.state != voidEntry && !r.ended(o) && en.since < o.to && o.since < en.to {
				return "two intervals of one token overlap"
			}
		}
		for _, o := range s.rows[en.known-1].cell.entries {
			if en.state == liveEntry && o.known != 0 && o.state == liveEntry {
				return "a known token is linked to another"
			}
		}
	}
	return ""
}

var linkNames = [linkTokens]string{"A", "K", "K2"}
