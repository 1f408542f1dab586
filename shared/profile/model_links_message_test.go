package profile_test

type linkStep uint8

const (
	begins linkStep = iota
	finished

	// a message
	logsEvent
	drawsOwn
	uncovers
	readsKnown
	listsOwn
	linksOwn
	serves
	relists
	relinks
	confirms
	confirmsFirst
	readsShut
	closesShut
	marksShut
	confirmsShut
	forgetsShut
	dropsEvent
	drawsNaming
	dropsNaming
	marksOwn
	marksHolders
	uncoversDropped
	ownProfile
	readsBase
	adds
	answers

	// a computation
	readsRows
	readsLog
	stores

	// unlinking, deletions, changes of an opt-out
	marksKnown
	drawsToUnlink
	unlinks
	readsEarlier
	passesEarlier
	excludes
	drawsExcluded
	emptiesLinks
	marksNamed
	confirmsNamed
	readsListed
	endsListed
	marksListed
	confirmsListed
	drawsListed
	changesListed
	drawsChanged
	forgetsChanged
	forgetsAll
	purges

	// rounds, folds, the operator
	readsRow
	packs
	writesBlock
	commits
	confirmsDead
	dropsEnded
	unlists
	settles
	hasSwitched
)

// message makes the next step of a delivery of an event.
func (t *linkTurn) message() {
	switch t.p.step {
	case begins:
		t.messageBegins()
	case logsEvent:
		t.logEvent()
	case drawsOwn:
		t.drawOwn()
	case uncovers:
		t.row(t.token()).covered = false
		t.to(drawsOwn, "uncovers the late event")
	case readsKnown, listsOwn, linksOwn:
		t.link()
	case serves:
		t.serve()
	case relists:
		t.relist()
	case relinks:
		t.relink()
	case confirms, confirmsFirst:
		t.confirmServed()
	case readsShut, closesShut, marksShut, confirmsShut, forgetsShut:
		t.shutOthers()
	case dropsEvent:
		t.s.log &^= bitOf(t.p.event)
		t.to(answers, "drops its event, which the row excludes")
	case drawsNaming, dropsNaming, marksOwn, marksHolders, uncoversDropped:
		t.dropNaming()
	case ownProfile:
		t.computeOwn()
	case readsBase, adds:
		t.add()
	case readsRows, readsLog:
		t.read()
	case stores:
		t.storeServed()
	case answers:
		t.say("acknowledges event %d", t.p.event)
		t.p.step = finished
		t.acknowledge()
		t.p.finish()
	}
}

func (t *linkTurn) ev() linkEvent { return t.events[t.p.event] }

func (t *linkTurn) token() uint8 { return t.ev().token }

func (t *linkTurn) row(who uint8) *linkRow { return &t.s.rows[who] }

// to says what the turn did, and what its process does next.
func (t *linkTurn) to(next linkStep, format string, args ...any) {
	t.p.step = next
	t.say(format, args...)
}

func (t *linkTurn) messageBegins() {
	t.begin()
	if t.knownFirst || t.linksBeforeLog {
		t.p.own = t.row(t.token()).linkHead
		t.to(logsEvent, "begins")
		return
	}
	t.logEvent()
}

// logEvent writes the log before anything else.
func (t *linkTurn) logEvent() {
	p := t.p
	t.s.log |= bitOf(p.event)
	t.to(drawsOwn, "logs event %d of %s", p.event, linkNames[t.token()])
	if !t.knownFirst {
		return
	}
	for _, e := range p.own.cell.entries {
		if e.known != 0 && e.state == liveEntry && e.holds(t.ev().time) {
			p.who = e.known - 1
			t.ticket(p.who, false)
			p.done |= bitOf(p.who)
		}
	}
}

// drawOwn draws the ticket of the event's token, which reads its links in the same instant.
func (t *linkTurn) drawOwn() {
	p, a, ev := t.p, t.token(), t.ev()
	before := p.own.cell
	p.own = t.draw(a, false)
	p.saw = t.s.law.causes &^ 255
	t.say("draws ticket %d of %s: %s", p.own.tickets, linkNames[a], p.own.cell)
	if t.linksBeforeLog {
		p.own.cell = before
	}
	switch {
	case p.own.covered && p.event == 0:
		p.step = uncovers
	case p.own.excludes(ev.time) || t.deadAt(&p.own, ev.time):
		if p.step = dropsEvent; p.own.out {
			t.s.law.mayGo |= bitOf(p.event)
		}
	case p.stale:
		p.step = ownProfile
	case t.knownFirst && p.done != 0:
		t.compute()
	case ev.names != 0 && ev.names-1 != a && (t.wantsLink(0) || !t.refusedUnread && t.namesUnserved()):
		p.step = readsKnown
	default:
		p.step = serves
	}
}

// lateBefore is the time before which evidence is refused.
func (h *linkHead) lateBefore() (time uint8) {
	for _, e := range h.cell.entries {
		if e.known == 0 || e.state == voidEntry || h.ended(e) {
			continue
		}
		if time = max(time, e.at); e.to != openEnd {
			time = max(time, e.to)
		}
	}
	return time
}

// undone reports whether an unlinking has refused the evidence of an event for good.
func (h *linkHead) undone(ev linkEvent) bool {
	for _, e := range h.cell.entries {
		if e.known == ev.names && e.state == voidEntry && ev.time < e.until {
			return true
		}
	}
	return false
}

// wantsLink reports whether the event is evidence that its token's entries do not satisfy and
// do not refuse, under the tombstone of the known token.
func (t *linkTurn) wantsLink(deleted uint8) bool {
	own, ev := &t.p.own, t.ev()
	if own.cell.role == known || own.undone(ev) {
		return false
	}
	for _, e := range own.cell.entries {
		if t.links(e, ev.names-1, own, &linkHead{deleted: deleted}) && e.known != 0 && e.holds(ev.time) {
			return false
		}
	}
	return ev.time >= own.lateBefore()
}

// namesUnserved reports whether the event names a token that no entry makes the message serve:
// its evidence is refused, but that token's row may exclude it.
func (t *linkTurn) namesUnserved() bool {
	own, ev := &t.p.own, t.ev()
	for _, e := range own.cell.entries {
		if e.known == ev.names && e.state == liveEntry && !own.ended(e) && e.holds(ev.time) {
			return false
		}
	}
	return !own.undone(ev)
}

// link makes the link of the event: the known token's list first, then the entry.
func (t *linkTurn) link() {
	p, a, ev := t.p, t.token(), t.ev()
	k := ev.names - 1
	row := t.row(k)
	switch p.step {
	case readsKnown:
		p.of = row.linkHead
		t.say("reads the row of %s: %s", linkNames[k], p.of.cell)
		isAnonymous := row.cell.role == anonymous
		if t.rolesRead {
			isAnonymous = row.cell.hasLive()
		}
		switch {
		case p.of.excludes(ev.time) && !t.namingKept:
			if p.who, p.step = k, drawsNaming; t.dropByRead {
				p.named, p.step = true, dropsNaming
			}
		case p.of.excludes(ev.time), isAnonymous, !t.wantsLink(0), t.full(&p.of.cell),
			t.rolesRead && p.own.cell.list != 0:
			p.step = serves // refused
		case t.entryFirst, !t.truthInKnown && p.of.cell.role == known && p.of.cell.list&^p.of.cell.shut&bitOf(a) != 0:
			p.step = linksOwn
		default:
			p.step = listsOwn
		}
	case listsOwn:
		t.listOwn(row, k)
	case linksOwn:
		t.atomic = true
		own := t.row(a)
		if own.cell != p.own.cell && !(t.rolesRead && own.cell.entries == p.own.cell.entries) {
			t.to(drawsOwn, "%s's links have changed", linkNames[a])
			return
		}
		role, list := own.cell.role, own.cell.list
		t.enter(&own.cell, k)
		if t.rolesRead {
			own.cell.role, own.cell.list = role, list
		}
		p.own.cell, p.relinked = own.cell, true
		t.changed()
		if t.s.law.undone&bitOf(p.event) != 0 {
			t.bad = "a second delivery brings back a link that was undone"
		}
		if t.to(serves, "links %s to %s", linkNames[a], linkNames[k]); t.entryFirst {
			p.step = listsOwn
		}
		if ev.time < row.deleted { // a deletion came between: it is as if the link had come first
			t.heldGo()
		}
	}
}

// heldGo notes that a deletion may remove what the entries of the event's token hold: those of
// a message that was slower than a deletion. The next deletion ends them by its own tombstone,
// because none says which one came before the entry.
func (t *linkTurn) heldGo() {
	for e, ev := range t.events {
		for _, en := range t.row(t.token()).cell.entries {
			if ev.token == t.token() && en.known == t.ev().names && en.holds(ev.time) {
				t.s.law.mayGo |= bitOf(uint8(e))
			}
		}
	}
}

// hasLive reports whether a token has a live entry.
func (c *linkCell) hasLive() bool {
	for _, e := range c.entries {
		if e.known != 0 && e.state == liveEntry {
			return true
		}
	}
	return false
}

// listOwn lists the event's token in the row of the known one.
func (t *linkTurn) listOwn(row *linkRow, k uint8) {
	p, a := t.p, t.token()
	t.atomic = true
	if !t.rolesRead && row.cell != p.of.cell {
		t.to(readsKnown, "%s's list has changed", linkNames[k])
		return
	}
	if !t.rolesRead {
		row.cell.role = known
	}
	row.cell.list |= bitOf(a)
	t.shutOldest(&row.cell, a)
	if t.truthInKnown {
		cell := p.own.cell
		t.enter(&cell, k)
		row.cell.copies[a] = linkSpan{0, openEnd}
		for _, e := range cell.entries {
			if e.known == k+1 && e.to == openEnd {
				row.cell.copies[a].since = e.since
			}
		}
	}
	p.of = row.linkHead
	if t.to(linksOwn, "%s lists %s", linkNames[k], linkNames[a]); t.entryFirst && p.relinked {
		p.step = serves
	}
}

// enter adds an entry for the event to the entries of its token, and closes the open one. An
// entry that the tombstone of the token has ended is none.
func (t *linkTurn) enter(c *linkCell, k uint8) {
	p, time := t.p, t.ev().time
	since := time - min(t.lookback, time)
	free := -1
	for i := range c.entries {
		e := &c.entries[i]
		if e.known == 0 {
			if free < 0 {
				free = i
			}
			continue
		}
		if e.state == voidEntry || p.own.ended(*e) {
			continue
		}
		if e.to == openEnd {
			e.to, e.confirmed = time, 0
			if t.closeUnmarked {
				e.confirmed = 1 + p.own.deleted
			}
			if e.known == k+1 && e.state == liveEntry { // from before the deletion of the known token
				e.to = max(min(p.of.deleted, time), e.since)
			}
		}
		if !t.overlaps {
			since = max(since, e.to)
		}
	}
	if free < 0 {
		panic("too many entries")
	}
	c.role = anonymous
	c.entries[free] = linkEntry{known: k + 1, since: since, to: openEnd, at: time}
}
