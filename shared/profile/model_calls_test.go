package profile_test

import (
	"fmt"
)

// A model of how the time of a call is remembered. It visits every state of small cases:
// deliveries of one call, each with a time of its own, while the user is deleted, opts out
// and in, or moves to another region, and while processes die. What the model leaves out
// of the protocol (folds, profiles) does not touch the time of a call.
//
// Times are ticks of one clock. A call without a time of its own is the hardest: every
// delivery proposes its receipt.

// rules are those of the memory of calls. Each test of a hole breaks one.
type callRules struct {
	notAtomic    bool // a process reads the memory and then writes it
	logFirst     bool // a process writes the log before it asks the memory
	purgeAll     bool // a purge forgets calls after the tombstone, too
	purgeBlindly bool // a purge forgets a call whose time has changed since it read it
	dropBlindly  bool // a writer does
	dropAll      bool // a writer forgets a call whose time is not deleted
	keepAll      bool // nobody forgets a call
	askEntry     bool // a message asks the memory of its entry alone
	askNew       bool // a message asks the memory of the new region alone
	decideFirst  bool // the answer of the first of two memories decides
	notCopied    bool // a mover copies no memory
	noWait       bool // an app changes its phase while messages of earlier ones run
}

const (
	mostTicks  = 4
	deliveries = 3
)

type callRegion struct {
	memory   int8                // time of the call; 0: not remembered
	receipts [mostTicks + 1]int8 // of the rows of the log, by time; 0: no row
}

type callStep int8

// The steps of a delivery. It begins at arrives.
const (
	arrives callStep = iota
	asks
	asksLate // of rules.notAtomic: it has read that nothing is remembered
	asksNew
	logs
	draws
	logsThere
	drawsAgain
	logsMoved
	drawsMoved
	drops
	forgets
	acknowledged
)

type callDelivery struct {
	at      callStep
	receipt int8
	time    int8
	phase   int8 // that of the app when it began
	dropped bool
	forgets bool
}

type callState struct {
	clock     int8
	regions   [2]callRegion
	deleted   int8 // the tombstone, d and R
	out       bool
	owner     int8 // 0: the first region, 1: leaving it, 2: moved
	phase     int8
	m         [deliveries]callDelivery
	exclusion int8    // progress of the deletion or opt-out
	seen      [2]int8 // what its purge has read of the memories
	mover     int8
	copied    callRegion // what the mover has read
	crashes   int8
}

// scenario is a case of the model.
type callScenario struct {
	deliveries int
	ticks      int8
	deletes    bool
	optsOut    bool
	moves      bool
	crashes    int8
}

type callModel struct {
	callScenario
	callRules
	states map[callState]bool
	fault  string
}

func (m *callModel) run() (states int, fault string) {
	first := callState{clock: 1}
	m.states = map[callState]bool{first: true}
	for todo := []callState{first}; len(todo) > 0 && m.fault == ""; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		moved := false
		m.next(s, func(n callState) {
			moved = true
			if !m.states[n] {
				m.states[n] = true
				todo = append(todo, n)
			}
		})
		if !moved || m.atRest(s) {
			m.check(s)
		}
	}
	return len(m.states), m.fault
}

func (m *callModel) atRest(s callState) bool {
	for i := range m.deliveries {
		if at := s.m[i].at; at != arrives && at != acknowledged {
			return false
		}
	}
	return m.ended(s.exclusion) && (!m.moves || s.mover == 0 || s.mover >= moverEnds)
}

// ended reports whether no deletion, opt-out or opt-in is under way.
func (m *callModel) ended(at int8) bool { return at%4 == 0 }

// next calls each with every state that may follow.
func (m *callModel) next(s callState, each func(callState)) {
	if s.clock < m.ticks {
		n := s
		n.clock++
		each(n)
	}
	for i := range m.deliveries {
		if at := s.m[i].at; at != acknowledged && (at != arrives || i == 0 || s.m[i-1].at != arrives) {
			m.deliver(s, i, each)
		}
		if at := s.m[i].at; at != arrives && at != acknowledged && s.crashes < m.crashes {
			n := s
			n.crashes++
			n.m[i] = m.begin(n, s.m[i].receipt)
			each(n)
		}
	}
	if m.deletes || m.optsOut {
		m.exclude(s, each)
	}
	if m.moves {
		m.move(s, each)
	}
}

func (s *callState) excludes(time, receipt int8) bool {
	return s.out || time <= s.deleted || receipt <= s.deleted
}

// remember asks the memory of a region for the time of the call, and proposes one.
func (r *callRegion) remember(time int8) int8 {
	if r.memory == 0 {
		r.memory = time
	}
	return r.memory
}

func (r *callRegion) log(d callDelivery) { r.receipts[d.time] = max(r.receipts[d.time], d.receipt) }

// begin returns a delivery that begins now.
func (m *callModel) begin(s callState, receipt int8) callDelivery {
	d := callDelivery{at: asks, receipt: receipt, time: receipt, phase: s.phase}
	if m.logFirst {
		d.at = logs
	} else if d.phase == dropping || d.phase > resting && m.askNew {
		d.at = asksNew
	}
	return d
}

// entry is the region that a delivery asks first for its user.
func (d callDelivery) entry() int8 {
	if d.phase >= switched {
		return 1
	}
	return 0
}

// deliver makes the next step of a delivery.
func (m *callModel) deliver(s callState, i int, each func(callState)) {
	d := &s.m[i]
	switch d.at {
	case arrives:
		*d = m.begin(s, s.clock)
	case asks:
		of := &s.regions[0]
		if m.askEntry {
			of = &s.regions[d.entry()]
		}
		if m.notAtomic && of.memory == 0 {
			d.at = asksLate
			break
		}
		d.time = of.remember(d.time)
		switch {
		case m.logFirst:
			d.at = draws
		case d.phase == resting || m.askEntry:
			d.at = logs
		default:
			d.at = asksNew
		}
	case asksLate:
		s.regions[0].memory, d.at = d.time, logs
	case asksNew:
		if time := s.regions[1].remember(d.time); !m.decideFirst || d.phase == dropping {
			d.time = time
		}
		d.at = logs
	case logs:
		s.regions[d.entry()].log(*d)
		if d.at = draws; m.logFirst {
			d.at = asks
		}
	case draws:
		switch {
		case d.entry() == 1 || s.owner == here:
			m.decide(&s, i)
		case s.owner == leaving:
			d.at = logsThere
		default:
			d.at = logsMoved
		}
	case logsThere:
		s.regions[1].log(*d)
		d.at = drawsAgain
	case drawsAgain:
		if s.owner == leaving {
			m.decide(&s, i)
		} else {
			d.at = logsMoved
		}
	case logsMoved:
		s.regions[1].log(*d)
		d.at = drawsMoved
	case drawsMoved:
		m.decide(&s, i)
	case drops:
		for r := range s.regions {
			if row := &s.regions[r].receipts[d.time]; d.time <= s.deleted || *row <= max(s.deleted, d.receipt) {
				*row = 0
			}
		}
		if d.at = acknowledged; !m.keepAll && (d.forgets || m.dropAll) {
			d.at = forgets
		}
	case forgets:
		for r := range s.regions {
			if memory := &s.regions[r].memory; m.dropBlindly || *memory == d.time {
				*memory = 0
			}
		}
		d.at = acknowledged
	}
	each(s)
}

// decide ends a delivery at a ticket that counts, or drops its event.
func (m *callModel) decide(s *callState, i int) {
	d := &s.m[i]
	if d.at = acknowledged; s.excludes(d.time, d.receipt) {
		d.dropped, d.forgets, d.at = true, d.time <= s.deleted || s.out, drops
	}
}

// exclude makes the next step of a deletion, or of an opt-out and then an opt-in.
func (m *callModel) exclude(s callState, each func(callState)) {
	switch s.exclusion {
	case 0, 4:
		if s.exclusion == 4 && !m.optsOut {
			return
		}
		s.deleted, s.out = s.clock, m.optsOut && s.exclusion == 0
	case 1, 5:
		for r := range s.regions {
			for time, receipt := range s.regions[r].receipts {
				if int8(time) <= s.deleted || receipt <= s.deleted {
					s.regions[r].receipts[time] = 0
				}
			}
		}
	case 2, 6:
		for r := range s.regions {
			if memory := s.regions[r].memory; m.purgeAll || memory <= s.deleted {
				s.seen[r] = memory
			}
		}
	case 3, 7:
		for r := range s.regions {
			if memory := &s.regions[r].memory; !m.keepAll && s.seen[r] != 0 && (m.purgeBlindly || *memory == s.seen[r]) {
				*memory = 0
			}
		}
		s.seen = [2]int8{}
	default:
		return
	}
	s.exclusion++
	each(s)
}

// check checks a state in which nothing is under way.
func (m *callModel) check(s callState) {
	owner := 0
	if s.owner == moved {
		owner = 1
	}
	counted := 0
	for time, receipt := range s.regions[owner].receipts {
		if receipt != 0 && !s.excludes(int8(time), receipt) {
			counted++
		}
	}
	if counted > 1 {
		m.fail(s, "the call counts %d times", counted)
	}
	for _, d := range s.m[:m.deliveries] {
		if d.at != acknowledged {
			continue
		}
		if !d.dropped && !s.excludes(d.time, d.receipt) && s.regions[owner].receipts[d.time] == 0 {
			m.fail(s, "an acknowledged callDelivery is lost")
		}
		if d.receipt > s.deleted && d.time > s.deleted && !s.out && counted == 0 {
			m.fail(s, "a callDelivery that was received after the exclusion does not count")
		}
	}
	for _, r := range s.regions {
		if r.memory != 0 && (r.memory <= s.deleted || s.out) && s.exclusion > 0 {
			m.fail(s, "the call of a deleted user is remembered")
		}
	}
}

func (m *callModel) fail(s callState, format string, args ...any) {
	if m.fault == "" {
		m.fault = fmt.Sprintf(format, args...) + fmt.Sprintf(": %+v", s)
	}
}
