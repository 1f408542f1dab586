package profile_test

import "fmt"

// The steps of a change.
const (
	changeBegins int8 = iota
	changeReadsClock
	changeWrites
	changeForgets
	changeForgetsRow
	changeSees
	changeSeen
	changePurges
)

// mostConsentTickets is after how many tickets no change begins again: two of them may overtake each other without end.
const mostConsentTickets = 9

// change makes the next step of a process that changes what a user grants, opts out of, or has deleted.
func (m *consentModel) change(s consentState, i int, each func(consentState)) {
	c := &s.c[i]
	if c.at > changeBegins && s.crashes < m.crashes { // another attempt follows
		n := s
		n.crashes++
		n.c[i] = consentChange{op: c.op, begun: c.begun, at: changeBegins}
		each(n)
	}
	op := m.ops[i][c.op]
	switch c.at {
	case changeBegins:
		if s.row.ticket >= mostConsentTickets {
			return
		}
		if c.begun == 0 {
			c.begun = s.clock
		}
		if c.at = changeReadsClock; op == deletes {
			c.at = changeWrites // it needs no ticket first, and its clock is read with its mutation
			c.clock = s.clock
			break
		}
		if m.clockFirst {
			c.clock = s.clock
		}
		if m.purgeFirst && op != deletes {
			m.purgeNow(&s, m.changed(s.row, op, s.clock))
		}
		if !m.clockFirst {
			s.row.ticket++
			c.row = s.row
		}
	case changeReadsClock:
		if m.clockFirst {
			s.row.ticket++
			c.row = s.row
		} else {
			c.clock = s.clock
		}
		if c.at = changeWrites; m.changed(c.row, op, c.clock) == c.row {
			if c.at = changeForgets; m.notFinished {
				c.at = changeSees
			}
		}
	case changeWrites:
		m.writeChange(&s, i, op)
	case changeForgets:
		s.row.ticket++
		c.row, c.at = s.row, changeForgetsRow
	case changeForgetsRow:
		s.row.covered, s.row.block, s.row.version = false, 0, int16(c.row.ticket)*4
		s.store(consentProfile{ticket: c.row.ticket, marker: true})
		if c.at = changeSees; op == deletes {
			s.gone = max(s.gone, c.clock)
		}
		c.row = consentRow{}
	case changeSees:
		for e := range m.kinds {
			if s.log[e] != 0 && !m.keeps(s.row, &s, e, s.log[e]) {
				c.seen[e] = s.log[e]
			}
		}
		if c.at = changeSeen; c.seen == [consentEvents]int8{} {
			*c = consentChange{op: c.op + 1}
		}
	case changeSeen:
		if !m.purgeNoTicket {
			s.row.ticket++
			c.row = s.row
		}
		c.at = changePurges
	case changePurges:
		if !m.purgeFirst {
			for e, receipt := range c.seen {
				if receipt != 0 && !m.keeps(c.row, &s, e, receipt) && (s.log[e] <= receipt || m.purgeBlindly) {
					s.log[e] = 0
				}
			}
		}
		*c = consentChange{op: c.op + 1}
	}
	each(s)
}

func (m *consentModel) purgeNow(s *consentState, r consentRow) {
	for e := range m.kinds {
		if s.log[e] != 0 && !m.keeps(r, s, e, s.log[e]) {
			s.log[e] = 0
		}
	}
}

// writeChange makes the mutation of a change, if its condition holds.
func (m *consentModel) writeChange(s *consentState, i int, op consentOp) {
	c := &s.c[i]
	if op == deletes {
		s.row.deleted = max(s.row.deleted, c.clock)
		c.at = changeForgets
		return
	}
	if s.row.ticket != c.row.ticket && !m.noCondition {
		c.at = changeBegins
		return
	}
	deleted := s.row.deleted
	next := m.changed(s.row, op, c.clock)
	if op == optOutOfKind2 || op == optIn {
		next.deleted = max(next.deleted, c.clock)
	} else {
		for p := range 2 {
			if next.since[p] != s.row.since[p] {
				s.begun[p] = c.begun
			}
		}
		if next.state != s.row.state && m.keepsSince {
			m.noteGrants(s, next, c.begun)
		}
		if !m.noMark {
			next.marks++
		}
		if !m.manifestLater {
			next.covered, next.block, next.version = false, 0, int16(c.row.ticket)*4
		}
		if next.deleted = deleted; m.otherCell {
			next.deleted = c.row.deleted
		}
	}
	s.row = next
	if c.at = changeForgets; m.noSecondTicket {
		c.at = changeSees
	}
}

// noteGrants notes when a grant began that leaves from when events count.
func (m *consentModel) noteGrants(s *consentState, next consentRow, begun int8) {
	for p := range 2 {
		if m.grants(next, p) && !m.grants(s.row, p) {
			s.begun[p] = begun
		}
	}
}

func (m *consentModel) grants(r consentRow, p int) bool {
	return r.state[p] == 1 || r.state[p] == 0 && m.granted[p]
}

// changed returns a row after a change by a clock.
func (m *consentModel) changed(r consentRow, op consentOp, clock int8) consentRow {
	next := r
	switch op {
	case withdrawFirst:
		next.state[0] = 2
	case grantFirst:
		next.state[0] = 1
	case withdrawSecond:
		next.state[1] = 2
	case grantSecond:
		next.state[1] = 1
	case forgetBoth:
		next.state = [2]int8{}
	case optOutOfKind2:
		next.out = true
	case optIn:
		next.out = false
	}
	for p := range 2 {
		if m.grants(next, p) != m.grants(r, p) && !m.keepsSince {
			next.since[p] = max(r.since[p], clock)
		}
	}
	return next
}

// check checks a state: what a read of this instant answers, and what is stored once all is done.
func (m *consentModel) check(s consentState) {
	got := m.answer(&s)
	for e := range m.kinds {
		acknowledged, possible := false, false
		for i, of := range m.sends {
			d := s.m[i]
			if int(of) != e || d.at == sendArrives {
				continue
			}
			since := [2]int8{max(s.row.since[0], s.begun[0]-1), max(s.row.since[1], s.begun[1]-1)}
			row := s.row
			row.deleted = max(row.deleted, s.gone)
			possible = possible || m.counts(row, since, m.kinds[e], s.times[e], d.receipt)
			acknowledged = acknowledged || d.at == sendAcknowledged && m.keeps(s.row, &s, e, d.receipt)
		}
		counts := got>>e&1 != 0
		if acknowledged && !counts {
			m.fail(s, "event %d is acknowledged, and does not count", e)
		}
		if counts && !possible {
			m.fail(s, "event %d counts, and must not", e)
		}
		if s.packed.ticket > 0 && s.packed.ticket == s.row.ticket && s.packed.events>>e&1 != 0 && !possible && m.answered(s) {
			m.fail(s, "event %d is packed, and must not be", e)
		}
	}
	if m.atRest(s) {
		for e := range m.kinds {
			if s.log[e] != 0 && !m.keeps(s.row, &s, e, s.log[e]) {
				m.fail(s, "event %d is stored, and counts for nothing", e)
			}
		}
		if s.row.covered {
			for e := range m.kinds {
				if s.row.block>>e&1 != 0 && s.log[e] == 0 {
					m.fail(s, "event %d is in a block alone", e)
				}
			}
		}
	}
}

// answered reports whether every change that was written has been answered.
func (m *consentModel) answered(s consentState) bool {
	for _, c := range s.c {
		if c.at != changeBegins && c.at < changeSees {
			return false
		}
	}
	return true
}

// atRest reports whether all messages are acknowledged and all changes made and purged.
func (m *consentModel) atRest(s consentState) bool {
	for i := range m.sends {
		if at := s.m[i].at; at != sendArrives && at != sendAcknowledged {
			return false
		}
	}
	for i := range m.ops {
		if int(s.c[i].op) < len(m.ops[i]) {
			return false
		}
	}
	return s.fold.at == 0
}

func (m *consentModel) fail(s consentState, format string, args ...any) {
	if m.fault == "" {
		m.fault = fmt.Sprintf(format, args...) + fmt.Sprintf(": %+v", s)
	}
}
