package profile_test

// A model of the links between tokens: an anonymous token whose events count for a known one
// while they are linked. It visits every state of small cases: messages, readers, unlinkings,
// deletions, opt-outs, folds and the nightly round, processes that die and answers that are
// lost. A step is one request to one row; a log is read one event a step.
//
// Times are ticks of one clock, and the receipt of an event is its time. A tombstone covers
// what is earlier than it. Event 0 alone can be packed in a block.

const (
	linkTokens  = 3
	linkEvents  = 3
	linkProcs   = 6
	linkEntries = 3
	openEnd     = 9 // the end of an open interval
)

type linkRole uint8

const (
	noRole linkRole = iota
	anonymous
	known
)

type entryState uint8

const (
	liveEntry entryState = iota // open, or closed at its end
	voidEntry                   // unlinked: evidence received before until links no more
	deadEntry                   // the known token was deleted: the interval counts for nobody
)

// linkEntry is an interval of an anonymous token, in its row: the truth.
type linkEntry struct {
	known     uint8 // the known token + 1; 0: no entry
	since, to uint8 // since <= time < to
	at        uint8 // time and receipt of the evidence
	state     entryState
	until     uint8
	confirmed uint8 // 0, or 1 + the tombstone of the row when those concerned were last marked
}

func (e linkEntry) holds(time uint8) bool { return e.since <= time && time < e.to }

// linkCell is the cell u:i. It is replaced as a whole, on condition of its bytes.
type linkCell struct {
	role    linkRole
	outBy   uint8 // the known token + 1 whose opt-out has opted this one out
	list    uint8 // of a known token: who may have entries that name it
	shut    uint8 // of these, whom the limit has closed
	shutAt  uint8 // when it closed them
	copies  [linkTokens]linkSpan
	entries [linkEntries]linkEntry
}

type linkSpan struct{ since, to uint8 } // of rules.truthInKnown: a copy of an interval

// linkHead is a user row without its profile.
type linkHead struct {
	tickets, marks, deleted uint8
	out, covered            bool // opted out; a block covers event 0
	cell                    linkCell
}

// excludes reports whether the tombstone or the opt-out of a row excludes what was received
// at a time.
func (h *linkHead) excludes(time uint8) bool { return time < h.deleted || h.out }

// ended reports whether the tombstone of its own row has ended an entry.
func (h *linkHead) ended(e linkEntry) bool { return e.at < h.deleted }

type linkProfile struct {
	stored, marker                 bool
	ticket, marks, deleted, format uint8
	counts                         uint8 // events, by bits
}

type linkRow struct {
	linkHead
	profile linkProfile
}

func (r *linkRow) put(p linkProfile) {
	if p.stored = true; !r.profile.stored || p.ticket >= r.profile.ticket {
		r.profile = p
	}
}

type linkKind uint8

const (
	linkNobody linkKind = iota
	linkMessage
	linkReader
	linkUnlinker
	linkDeleter
	linkChanger // of an opt-out
	linkFolder
	linkNightly
	linkSweeper
	linkSwitcher
)

// linkReading is a computation under way.
type linkReading struct{ left, wanted, blocks, got, format uint8 }

// linkProc is a process: what it does, and what it has seen.
type linkProc struct {
	kind         linkKind
	event        uint8
	token, known uint8
	clock        uint8
	op           uint8 // what it does, by number: a second delivery and a retry have the same
	after        uint8 // it begins when the process of this number, minus 1, has ended
	out          bool  // of a changer: opts out, else in
	stale        bool  // of a message: identity is off in its configuration

	step        linkStep
	died, quiet bool
	own         linkHead // the row of its token
	of          linkHead // the row of the token who
	who         uint8
	other       linkHead // the row of the token next, which a list names
	next        uint8
	reading     linkReading
	done        uint8 // tokens that it has served, or marked
	mark        bool  // its ticket of who is a mark
	relinked    bool
	passed      uint8  // the tombstone of the known token whose pass it makes, or has made
	early       bool   // the pass is that of an earlier deletion
	shut        uint8  // tokens that it has closed
	tries       uint8  // that others have failed
	otherClock  uint8  // its clock for the token next
	crashes     uint8  // that could still happen when a nightly round began
	saw         uint16 // changes of others that its ticket has seen
	owed        uint8  // events that its deletion must end
	named       bool   // it drops an event that names who
	sure, law   uint8  // of a reader: what it must count
}

// linkState is a state of the model.
type linkState struct {
	log, block    uint8 // events in the log; 1: a block without event 0, 2: with it
	rows          [linkTokens]linkRow
	crashes, lost uint8 // that may still happen
	phase         uint8 // 0: off, 1: links are made, 2: they count
	settled       bool
	now           uint8
	law           linkLaw
	procs         [linkProcs]linkProc
}

type linkEvent struct{ token, time, names uint8 } // names: a known token + 1

// linkCase is what a run does not change.
type linkCase struct {
	events   [linkEvents]linkEvent
	lookback uint8
	own      bool // the profiles of anonymous tokens are judged, too
	adds     bool // additions
	window   bool // events leave a mark, and only readers write profiles
	knownBy  uint8
	limit    uint8 // of the tokens linked to a known one
	start    linkState
}

// linkModel explores a case under rules.
type linkModel struct {
	linkCase
	linkRules
	most    int // states; 0: any number
	tracing bool
	ops     [8]linkProc // by number
	begun   [linkProcs]linkProc
}

// linkTurn is one step of one process.
type linkTurn struct {
	*linkModel
	s       *linkState
	p       *linkProc
	n       int
	said    string
	atomic  bool // its answer may be lost
	blocked bool
	bad     string
}

func bitOf(n uint8) uint8 { return 1 << n }

func (m *linkModel) format(s *linkState) uint8 {
	if s.phase == 2 {
		return 2
	}
	return 1
}

// finish ends a process.
func (p *linkProc) finish() {
	*p = linkProc{kind: p.kind, event: p.event, token: p.token, known: p.known, clock: p.clock, op: p.op,
		out: p.out, stale: p.stale, died: p.died, step: finished}
}

// turn makes the step of a process.
func (m *linkModel) turn(s *linkState, n int) linkTurn {
	t := linkTurn{linkModel: m, s: s, p: &s.procs[n], n: n}
	switch t.p.kind {
	case linkMessage:
		t.message()
	case linkReader:
		t.reader()
	case linkUnlinker:
		t.unlink()
	case linkDeleter, linkChanger:
		t.exclude()
	case linkFolder:
		t.fold()
	case linkNightly:
		t.night()
	case linkSweeper:
		t.sweep()
	case linkSwitcher:
		t.switchOn()
	}
	return t
}

// mayStep reports whether a process has a step to make.
func (m *linkModel) mayStep(s *linkState, p *linkProc) bool {
	if p.kind == linkNobody || p.step == finished || p.after > 0 && p.step == begins && s.procs[p.after-1].step != finished {
		return false
	}
	if p.kind == linkMessage && p.step == begins {
		return !(p.stale && s.settled || !p.stale && s.phase == 0)
	}
	return true
}

// next returns what a process may do: its step, the same with a lost answer, its death.
func (m *linkModel) next(s *linkState, n int, each func(next *linkState, variant uint8, said, bad string)) {
	p := &s.procs[n]
	if !m.mayStep(s, p) {
		return
	}
	after := *s
	t := m.turn(&after, n)
	if t.blocked {
		return
	}
	each(&after, 0, t.said, t.bad)
	if t.atomic && s.lost > 0 && p.kind != linkNightly && p.kind != linkSweeper {
		lost := after
		lost.procs[n], lost.lost = *p, s.lost-1
		each(&lost, 1, t.said+" (answer lost)", "")
	}
	mortal := p.kind == linkMessage || p.kind == linkUnlinker || p.kind == linkDeleter || p.kind == linkChanger
	if s.crashes > 0 && p.step != begins && mortal {
		dead := *s
		dead.crashes--
		dead.procs[n].died = true
		dead.procs[n].finish()
		each(&dead, 2, "dies", "")
	}
}
