package profile_test

import "fmt"

// A model of where a person lives: one token, two regions and the location row, which says in which region the token
// lives. It visits every state of small cases: messages that bring a token to life, readers, deletions, movers, cleaners
// and forgetters, processes that die, answers that are lost, and caches that hold an older location. A step is one
// request to one row; a log is read one event a step. What follows from the rows of two regions alone is that of an app
// that moves, and was visited before: see functions/docs/design/regions.md.
//
// The protocol:
//   - A location has a region and an instant, and its row lies in the home region. Who brings a token to life creates
//     it, if there is none, and nobody keeps in memory that there is none. A token whose row at home says something lives
//     at home: it is from before locations. A deletion of a token that nobody knows brings it to life.
//   - The other region has a copy, which processes there read. Who changes the location writes the copy first, so that
//     from the instant of the location on no copy says the earlier one, but for what a slow process writes.
//   - A row that is nobody's gets an owner only after another look at the location, past the cache. A reader looks
//     again, too, before it answers that it knows nobody.
//   - A mover first gives such a row an owner. Then it moves the token as an app's move does, and changes the location
//     after the arrival, whatever instant it has. It moves nobody back to a region where anything is left.
//   - A cleaner waits until nobody acts on the earlier location, nor on a copy that a slow process has written. If the
//     copy is another then, it renews the location, writes the copy, renews it again, and waits from now on: who dies
//     between leaves a young location. Else it drops what was left, and erases the row. But if
//     the row where the token lives says that it has moved here, it leaves that to who completes the arrival.
//   - Where a row that is nobody's has a log, a move was given up. A cleaner closes it first: it says that it has moved to
//     where the token lives, by an epoch below that of a row that a token has left, and the location is renewed, so that
//     the wait begins.
//   - An event that names a known user of another region moves its token there before it is logged.
//   - A forgetter takes everything but the ticket out of the row of a token that was deleted long ago, if nobody has drawn
//     a ticket since it found the log empty. Then it removes the location, if that is still the old one, and the copy.
//     After a wait it erases the row if there was no ticket and no event. If there is a copy again, it removes that, and
//     the wait begins now.
//   - Who gives a row an owner under a location that is old renews the location first: either they or the forgetter
//     change it.

// closing and closed are the epochs of a row that a cleaner has closed.
const (
	closing = iota + 1
	closed
)

const (
	placeRegions = 2
	placeEvents  = 2
	placeProcs   = 5
)

type placeState uint8

const (
	unowned placeState = iota
	ownedHere
	leavingHere // for the other region
	movedAway
)

var placeStates = [...]string{"nobody's", "own", "leaving", "moved"}

// placeRow is the row of the token in one region.
type placeRow struct {
	state                  placeState
	epoch, ticket, deleted uint8
	stored                 bool
	at, counts, under      uint8 // of the stored profile: its ticket, events by bits, and the tombstone that it knew
}

// here reports whether the row counts.
func (r *placeRow) here() bool { return r.state == ownedHere || r.state == leavingHere }

// location is the location row. Each has a stamp of its own.
type location struct{ region, stamp uint8 } // stamp 0: there is none

type placeKind uint8

const (
	placeNobody placeKind = iota
	placeMessage
	placeReader
	placeDeleter
	placeMover
	placeForgetter
	placeCaches // become fresh
)

var placeKinds = [...]string{"nobody", "message", "reader", "deleter", "mover", "forgetter", "caches"}

type placeStep uint8

const (
	placeBegins placeStep = iota
	placeEnded
	placeLocates
	placeLooksAtHome // for a token from before locations
	placeIsBorn
	placeCopies
	placeLogsHere
	placeDraws
	placeLogsThere
	placeHelpsRead
	placeHelpsArrive
	placeLooksAgain
	placeRenews
	placeAdopts
	placeReadsEvents
	placeStores
	placeAnswers
	placeReadsRow
	placeRaises
	placePurges
	moverReads
	moverLeaves
	moverCopies
	moverFences
	moverReadsOld
	moverArrives
	moverCopiesPlace
	moverRelocates
	moverWaits
	moverWaitsAgain
	moverChecks
	moverRenews
	moverRepairs
	moverTouches
	moverLooksThere
	moverLooks
	moverDrops
	moverErases
	forgetterReads
	forgetterLooks
	forgetterStrips
	forgetterUnlocates
	forgetterUncopies
	forgetterWaits
	forgetterChecks
	forgetterLooksAgain
	forgetterReadsLog
	forgetterErases
	cleanerReads
	closerCloses
	closerTouches
	closerSeals
)

// placeProc is a process: what it does, and what it has seen.
type placeProc struct {
	kind       placeKind
	event      uint8 // of a message; of a deletion: it covers the events before
	rule       uint8 // the region in which the token begins, if this process brings it to life
	to         uint8 // of a mover, and of a message that needs the token in a region; of a forgetter, where it looks
	must       bool  // the message needs the token there: it names a known user who lives there
	after      uint8 // it begins when the process of this number, minus 1, has ended
	step, back placeStep
	region     uint8
	found      location
	row, old   placeRow
	both       bool
	next       uint8 // event to read or to copy
	counts     uint8
	acked      uint8 // events that were acknowledged when a reader began
	deleted    uint8 // and what was deleted
	late       bool  // it began with a location that is no longer cached
	departed   bool
}

func (p *placeProc) end() {
	*p = placeProc{kind: p.kind, event: p.event, rule: p.rule, to: p.to, must: p.must, after: p.after, step: placeEnded}
}

type placeWorld struct {
	log            [placeRegions][placeEvents]bool
	rows           [placeRegions]placeRow
	where, before  location // before: what caches may hold
	copied         uint8    // the region of the copy, plus 1
	stale, aged    bool     // aged: the first location is old
	stamps         uint8
	acked          uint8
	tried, deleted uint8 // deletions begun and answered
	crashes, lost  uint8
	procs          [placeProcs]placeProc
}

// placeRules are forms that are simpler than the protocol; without any it is the protocol.
type placeRules struct {
	bornByRule     bool // no location row decides: who brings a token to life does
	adoptsBlindly  bool // nobody looks at the location again before a row gets an owner
	movesUnborn    bool // a mover changes the location of a token whose row is nobody's
	locatesFirst   bool // a mover changes the location before the token has arrived
	noWait         bool // a mover drops and erases at once
	wakesTooEarly  bool // a mover waits for caches, and not for those who began by them
	movesBack      bool // onto what was left
	unlocatesFirst bool // a forgetter removes the location before the row is stripped
	stripsBlindly  bool // whatever tickets were drawn
	erasesAtOnce   bool // and does not wait before it erases the row
	uncopiesLate   bool // it removes the copy after the wait
	renewsNothing  bool // who gives a row an owner leaves an old location as it is
	deletesNobody  bool // a deletion of a token without a location writes nothing
	trustsCache    bool // a reader that finds nobody does not look at the location again
	homeUnseen     bool // nobody looks for a row from before locations
	copiesLater    bool // a mover writes the copy after the location
	trustsCopies   bool // a cleaner does not look at the copy
	trustsPlace    bool // nor at the row where the token lives
	repairsFirst   bool // it writes the copy before it renews the location
}

type placeModel struct {
	placeRules
	start placeWorld
	rest  bool // all movers have cleaned at the end: nothing lies elsewhere
}

// placeTurn is one step of one process.
type placeTurn struct {
	*placeModel
	w       *placeWorld
	p       *placeProc
	n       int
	said    string
	atomic  bool // its answer may be lost
	blocked bool
	bad     string
}

func (w *placeWorld) relocate(l location) {
	if w.where != l {
		w.before, w.where, w.stale = w.where, l, true
	}
}

// settled reports whether nobody acts on an earlier location any more.
func (t *placeTurn) settled() bool {
	if t.noWait {
		return true
	}
	if t.w.stale {
		return false
	}
	for n := range t.w.procs {
		if n != t.n && t.w.procs[n].late && !t.wakesTooEarly {
			return false
		}
	}
	return true
}

func (t *placeTurn) say(format string, args ...any) { t.said = fmt.Sprintf(format, args...) }

func (t *placeTurn) step() {
	p := t.p
	switch {
	case p.kind == placeCaches:
		t.refreshCaches()
	case t.find():
	case p.kind == placeForgetter:
		t.forget()
	case t.move():
	case p.kind == placeReader:
		t.read()
	default:
		t.write()
	}
}

func (t *placeTurn) refreshCaches() {
	if t.blocked = !t.w.stale; t.blocked {
		return
	}
	t.w.stale = false
	t.w.late()
	t.say("are fresh")
}

// late marks those for whom a cleaner waits.
func (w *placeWorld) late() {
	for n := range w.procs {
		q := &w.procs[n]
		running := q.step != placeBegins && q.step != placeEnded
		copying := q.step >= moverLeaves && q.step <= moverFences || q.step == moverCopiesPlace || q.step == moverRepairs
		if running && (copying || q.kind == placeMessage || q.kind == placeReader || q.kind == placeDeleter) {
			q.late = true
		}
	}
}

// arrive says where a process goes on that knows the location.
func (t *placeTurn) arrive() {
	p := t.p
	p.region, p.row, p.both, p.departed = p.found.region, placeRow{}, false, false
	switch p.kind {
	case placeMessage:
		p.step = placeLogsHere
		if p.must && p.region != p.to {
			p.step, p.back = moverReads, placeLogsHere
		}
	case placeReader:
		p.step = placeReadsRow
	case placeDeleter:
		p.step = placeRaises
	case placeMover:
		if p.step = moverReads; p.region == p.to {
			p.region, p.step = 1-p.to, cleanerReads
		}
	case placeForgetter:
		if p.step = forgetterReads; p.region != p.to {
			p.end()
		}
	}
}

// find makes the steps that find a token, or bring it to life.
func (t *placeTurn) find() bool {
	w, p := t.w, t.p
	switch p.step {
	case placeBegins:
		p.acked, p.deleted = w.acked, w.deleted
		if p.kind == placeDeleter {
			w.tried = max(w.tried, p.event)
		}
		p.step = placeLocates
		t.say("begins")
	case placeLocates:
		p.found = w.where
		t.say("reads the location %+v", w.where)
		switch {
		case w.where.stamp != 0:
			t.arrive()
		case p.kind == placeForgetter: // another one has removed it
			p.region, p.step = p.to, forgetterUncopies
		case p.kind == placeMover:
			p.end()
		case t.homeUnseen && p.kind == placeReader:
			t.answer(0)
		case t.homeUnseen:
			p.step = placeIsBorn
		default:
			p.step = placeLooksAtHome
		}
	case placeLooksAtHome:
		row := w.rows[0]
		t.say("reads the row at home: %s", placeStates[row.state])
		lives := row.state != unowned || row.ticket > 0
		switch {
		case p.kind == placeReader && !lives:
			t.answer(0)
		case p.kind == placeReader:
			p.found = location{}
			p.region, p.step = 0, placeReadsRow
		case lives:
			p.rule, p.step = 0, placeIsBorn
		default:
			p.step = placeIsBorn
		}
		if p.kind == placeDeleter && !lives && t.deletesNobody {
			w.deleted = max(w.deleted, p.event)
			p.end()
		}
	case placeIsBorn:
		rule := p.rule
		if p.must {
			rule = p.to
		}
		if t.bornByRule {
			p.found = location{rule, 1}
			t.say("begins in %d by its rule", rule)
			t.arrive()
			break
		}
		t.atomic = true
		if took := w.where.stamp == 0; took {
			w.stamps++
			w.where = location{rule, w.stamps} // nobody caches that there is none
			t.say("sets the location %+v", w.where)
			p.found, p.step = w.where, placeCopies
		} else {
			p.step = placeLocates
			t.say("another location is set")
		}
	case placeCopies:
		w.copied = p.found.region + 1
		t.say("copies the location %+v", p.found)
		t.arrive()
	case placeLooksAgain:
		p.found = w.where
		t.say("reads the location again: %+v", w.where)
		switch {
		case w.where.stamp == 0 && p.kind == placeMover:
			p.end()
		case w.where.stamp == 0:
			p.step = placeLooksAtHome
		case w.where.region != p.region:
			t.arrive()
		case p.kind == placeReader:
			t.answer(0)
		case w.aged && w.where.stamp == 1 && !t.renewsNothing:
			p.step = placeRenews
		default:
			p.step = placeAdopts
		}
	case placeRenews:
		t.atomic = true
		if p.step = placeLooksAgain; w.where == p.found {
			w.stamps++
			w.relocate(location{p.region, w.stamps})
		}
		t.say("the location is %+v", w.where)
	default:
		return false
	}
	return true
}
