package profile_test

// A model of consents: messages, folds, readers and changes of what a user grants, opts out of or has deleted, of which
// each request is one step. It visits every state of small cases.
//
// Times are ticks of one clock. The time of an event is that of its first delivery, or ahead of it. An event of kind 0 serves the
// first purpose, one of kind 1 both, one of kind 2 the second.

// consentRules are those of the protocol. Each test of a hole breaks one.
type consentRules struct {
	clockFirst       bool // a change reads its clock before it draws its ticket
	noCondition      bool // a change is written whatever the counter says
	keepsSince       bool // a grant leaves from when events count
	noMark           bool // a change leaves stored profiles valid
	manifestLater    bool // a change empties the manifest with its second ticket
	noSecondTicket   bool // a change draws no ticket after it is written
	notFinished      bool // a change that finds itself made answers at once
	otherCell        bool // a change writes the cell of the tombstone as it has read it
	purgeFirst       bool // the purge comes before the change
	purgeNoTicket    bool // the purge draws no ticket after it has seen the events
	purgeBlindly     bool // the purge drops rows whatever their receipts
	dropBlindly      bool // a writer does
	keepsRows        bool // a writer drops nothing
	readsAll         bool // readers and folds take whatever the log holds
	foldsAll         bool // folds alone do
	addsOverChanges  bool // an addition does not look at the marks
	judgesBeforeSeen bool // a writer judges by the row as it was before the log was written
}

// consentOp is a change that a process makes.
type consentOp int8

const (
	noOp consentOp = iota
	withdrawFirst
	grantFirst
	withdrawSecond
	grantSecond
	forgetBoth
	optOutOfKind2
	optIn
	deletes
)

// consentCase is a case of the model. An empty default means that the second purpose must be granted first.
type consentCase struct {
	kinds   []int8 // of events
	sends   []int8 // deliveries: which event each is of
	ops     [2][]consentOp
	granted [2]bool // by default
	ticks   int8
	ahead   int8 // how far the times of events are ahead
	folds   int8
	reads   int8
	packs   bool
	adds    bool
	crashes int8
}

const (
	consentEvents = 3
	consentSends  = 3
)

type consentRow struct {
	ticket, marks int8
	state         [2]int8 // 0: default, 1: granted, 2: withdrawn
	since         [2]int8
	deleted       int8
	out           bool // of kind 2
	// manifest: its version, whether a block covers the whole log, and the events of the block.
	version int16
	covered bool
	block   uint8
}

type consentProfile struct {
	ticket, marks, deleted int8
	out                    bool
	marker                 bool
	events                 uint8
}

type consentSend struct {
	at      int8
	receipt int8
	row     consentRow // of the last ticket
	found   uint8
	refused bool
}

type consentChange struct {
	op    int8 // index
	at    int8
	clock int8
	begun int8
	row   consentRow
	seen  [consentEvents]int8 // of a purge: receipts of rows that count for nothing
}

type consentState struct {
	clock   int8
	row     consentRow
	profile consentProfile
	log     [consentEvents]int8 // receipts; 0: no row
	times   [consentEvents]int8
	m       [consentSends]consentSend
	c       [2]consentChange
	fold    consentSend
	read    consentSend
	folds   int8
	reads   int8
	crashes int8
	packed  consentProfile
	// What a grant must not bring back was received before it began, and what an answered deletion must not, before
	// its clock.
	begun [2]int8
	gone  int8
}

type consentModel struct {
	consentCase
	consentRules
	states map[consentState]bool
	fault  string
}

func (m *consentModel) run() (states int, fault string) {
	first := consentState{clock: 1}
	m.states = map[consentState]bool{first: true}
	for todo := []consentState{first}; len(todo) > 0 && m.fault == ""; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		m.check(s)
		m.next(s, func(n consentState) {
			if !m.states[n] {
				m.states[n] = true
				todo = append(todo, n)
			}
		})
	}
	return len(m.states), m.fault
}

// counts is the law: whether an event of a kind counts by a row, with its newest receipt.
func (m *consentModel) counts(r consentRow, since [2]int8, kind, time, receipt int8) bool {
	if r.out && kind == 2 || time <= r.deleted || receipt <= r.deleted {
		return false
	}
	for p := range 2 {
		granted := r.state[p] == 1 || r.state[p] == 0 && m.granted[p]
		serves := p == 0 && kind < 2 || p == 1 && kind > 0
		if granted && serves && time > since[p] && receipt > since[p] {
			return true
		}
	}
	return false
}

func (m *consentModel) keeps(r consentRow, s *consentState, e int, receipt int8) bool {
	return m.counts(r, r.since, m.kinds[e], s.times[e], receipt)
}

// readLog returns the events that a process reads under a row: from the block, or from the log.
func (m *consentModel) readLog(s *consentState, r consentRow) uint8 {
	if r.covered {
		return r.block
	}
	var found uint8
	for e := range m.kinds {
		if s.log[e] != 0 && (m.readsAll || m.keeps(r, s, e, s.log[e])) {
			found |= 1 << e
		}
	}
	return found
}

// store stores a profile at a ticket: the newest cell wins, at equal tickets the last.
func (s *consentState) store(p consentProfile) {
	if p.ticket >= s.profile.ticket {
		s.profile = p
	}
}

func (r consentRow) profile(events uint8) consentProfile {
	return consentProfile{ticket: r.ticket, marks: r.marks, deleted: r.deleted, out: r.out, events: events}
}

func (m *consentModel) valid(p consentProfile, r consentRow) bool {
	return p.ticket > 0 && !p.marker && p.deleted == r.deleted && p.out == r.out && p.marks == r.marks
}

// answer is what a read at this instant answers.
func (m *consentModel) answer(s *consentState) uint8 {
	if m.valid(s.profile, s.row) {
		return s.profile.events
	}
	return m.readLog(s, s.row)
}

func (m *consentModel) next(s consentState, each func(consentState)) {
	if s.clock < m.ticks {
		n := s
		n.clock++
		each(n)
	}
	for i := range m.sends {
		m.deliver(s, i, each)
	}
	for i := range m.ops {
		if int(s.c[i].op) < len(m.ops[i]) {
			m.change(s, i, each)
		}
	}
	m.folding(s, each)
	m.reading(s, each)
	if m.packs && m.valid(s.profile, s.row) && s.profile.ticket == s.row.ticket && s.packed != s.profile {
		n := s
		n.packed = s.profile
		each(n)
	}
}

// The steps of a delivery.
const (
	sendArrives int8 = iota
	sendLogs
	sendDraws
	sendReads
	sendStores
	sendDrops
	sendAcknowledged
)

func (m *consentModel) deliver(s consentState, i int, each func(consentState)) {
	e := m.sends[i]
	if i > 0 && m.sends[i-1] == e && s.m[i-1].at == sendArrives {
		return // in any order: the other one arrives first
	}
	if at := s.m[i].at; at > sendLogs && at < sendAcknowledged && s.crashes < m.crashes {
		n := s
		n.crashes++
		n.m[i] = consentSend{at: sendLogs, receipt: s.m[i].receipt}
		each(n)
	}
	d := &s.m[i]
	switch d.at {
	case sendArrives:
		d.receipt, d.at = s.clock, sendLogs
		if s.times[e] == 0 {
			s.times[e] = s.clock + m.ahead
		}
	case sendLogs:
		if m.judgesBeforeSeen {
			d.row = s.row
		}
		s.log[e] = max(s.log[e], d.receipt)
		d.at = sendDraws
	case sendDraws:
		before := d.row
		s.row.ticket++
		d.row = s.row
		if s.row.covered { // the event is late: uncover, and draw again
			s.row.covered, s.row.block = false, 0
			s.row.version = int16(s.row.ticket) * 4
			break
		}
		if d.refused = !m.keeps(d.row, &s, int(e), d.receipt); m.judgesBeforeSeen {
			d.refused = !m.keeps(before, &s, int(e), d.receipt)
		}
		d.at = sendReads
		if m.adds && m.base(s.profile, d.row) {
			n := s
			n.m[i].found, n.m[i].at = s.profile.events, sendStores
			if !d.refused {
				n.m[i].found |= 1 << e
			}
			each(n)
		}
	case sendReads:
		d.found, d.at = m.readLog(&s, d.row), sendStores
	case sendStores:
		s.store(d.row.profile(d.found))
		if d.at = sendAcknowledged; d.refused && !m.keepsRows {
			d.at = sendDrops
		}
		m.end(d)
	case sendDrops:
		if m.dropBlindly || s.log[e] <= d.receipt {
			s.log[e] = 0
		}
		d.at = sendAcknowledged
		m.end(d)
	default:
		return
	}
	each(s)
}

// end forgets what an acknowledged delivery need not know any more: fewer states differ.
func (m *consentModel) end(d *consentSend) {
	if d.at == sendAcknowledged {
		*d = consentSend{at: d.at, receipt: d.receipt, refused: d.refused}
	}
}

// base reports whether a stored profile is a base of a ticket.
func (m *consentModel) base(p consentProfile, r consentRow) bool {
	q := p
	if m.addsOverChanges {
		q.marks = r.marks
	}
	return p.ticket >= r.ticket-1 && m.valid(q, r)
}

func (m *consentModel) folding(s consentState, each func(consentState)) {
	f := &s.fold
	switch f.at {
	case 0:
		if s.folds == m.folds || s.row.covered {
			return
		}
		s.folds++
		s.row.ticket++
		f.row, f.at = s.row, 1
	case 1:
		f.found = m.readLog(&s, f.row)
		if m.foldsAll {
			for e := range m.kinds {
				if s.log[e] != 0 {
					f.found |= 1 << e
				}
			}
		}
		f.at = 2
	case 2:
		if s.row.ticket == f.row.ticket && s.row.version == f.row.version {
			s.row.covered, s.row.block, s.row.version = true, f.found, int16(f.row.ticket)*4+2
		}
		s.fold = consentSend{}
	}
	each(s)
}

func (m *consentModel) reading(s consentState, each func(consentState)) {
	r := &s.read
	switch r.at {
	case 0:
		if s.reads == m.reads || m.valid(s.profile, s.row) {
			return
		}
		s.reads++
		r.row, r.at = s.row, 1
	case 1:
		r.found, r.at = m.readLog(&s, r.row), 2
	case 2:
		s.store(r.row.profile(r.found))
		s.read = consentSend{}
	}
	each(s)
}
