package profile_test

import "math/bits"

// pending reports whether those whom an entry concerns must still be marked for it.
func (m *linkModel) pending(e linkEntry, row *linkHead) bool {
	if m.confirmBlind {
		return e.known != 0 && e.confirmed == 0
	}
	return e.known != 0 && e.confirmed != 1+row.deleted
}

// due returns the next known token that the message owes a ticket: a mark, because an entry
// is pending, or a profile, because an entry holds the event.
func (t *linkTurn) due() (who uint8, mark, held, any bool) {
	p := t.p
	for k := range uint8(linkTokens) {
		if p.done&bitOf(k) != 0 {
			continue
		}
		for _, e := range p.own.cell.entries {
			if e.known != k+1 {
				continue
			}
			if t.pending(e, &p.own) && (e.state != deadEntry || t.confirmAll) && (!t.othersUnmarked || p.relinked) {
				mark = true
			}
			if e.state == liveEntry && !p.own.ended(e) && e.holds(t.ev().time) && (!t.openOnly || e.to == openEnd) {
				held = true
			}
		}
		if mark || held {
			return k, mark, held, true
		}
	}
	return 0, false, false, false
}

// serve draws the ticket of the next known token.
func (t *linkTurn) serve() {
	p := t.p
	k, mark, held, any := t.due()
	if !any || t.noKnownTicket && !mark {
		t.computeOwn()
		return
	}
	p.who, p.mark = k, mark
	if t.confirmFirst && mark {
		t.confirm(t.token(), &p.own, k, true, false)
		t.to(confirmsFirst, "confirms %s", linkNames[k])
		return
	}
	t.drawServed(mark, held)
}

// drawServed draws the ticket of the token that it serves, and decides by the row.
func (t *linkTurn) drawServed(mark, held bool) {
	p, ev, k := t.p, t.ev(), t.p.who
	if mark && t.truthInKnown {
		t.copyEntry(k)
	}
	t.ticket(k, mark && !(t.openPlain && held) || t.window)
	gone := true // no entry that the tombstone of the known token leaves
	for _, e := range p.own.cell.entries {
		gone = gone && !(t.links(e, k, &p.own, &p.of) && e.holds(ev.time))
	}
	lists := p.of.cell.list&bitOf(t.token()) != 0
	others := p.of.cell.shut &^ p.shut
	switch {
	case t.excludesNaming():
		t.mayGo()
		p.step = dropsNaming
	case held && gone && !t.oldEntryLinks:
		p.step = relinks
	case others != 0 && !t.limitUnseen && (p.of.cell.shut&bitOf(t.token()) == 0 || p.own.openTo(k)):
		p.next, p.step = uint8(bits.TrailingZeros8(others)), readsShut
	case held && !lists && !t.listUnseen && !t.entryFirst:
		p.step = relists
	case held && !t.window && t.adds && !mark:
		p.step = readsBase
	case held && !t.window:
		t.compute()
	case mark && !t.confirmFirst:
		p.step = confirms
	default:
		p.done |= bitOf(k)
		p.step = serves
	}
}

func (t *linkTurn) copyEntry(k uint8) {
	c := &t.row(k).cell.copies[t.token()]
	c.to = 0
	for _, e := range t.p.own.cell.entries {
		if e.known == k+1 && e.state == liveEntry {
			*c = linkSpan{e.since, e.to}
		}
	}
}

// excludesNaming reports whether the event names the token that the message serves, and its
// row excludes it.
func (t *linkTurn) excludesNaming() bool {
	ev := t.ev()
	return ev.names == t.p.who+1 && !t.p.own.undone(ev) && t.p.of.excludes(ev.time) && !t.namingKept
}

func (t *linkTurn) mayGo() {
	t.p.named = true
	t.s.law.mayGo |= bitOf(t.p.event)
}

func (h *linkHead) openTo(k uint8) bool {
	for _, e := range h.cell.entries {
		if e.known == k+1 && e.state == liveEntry && e.to == openEnd {
			return true
		}
	}
	return false
}

// relist lists the token again, which the sweep has taken off.
func (t *linkTurn) relist() {
	p := t.p
	t.atomic = true
	if row := t.row(p.who); row.cell == p.of.cell {
		row.cell.role = known
		row.cell.list |= bitOf(t.token())
	}
	t.to(serves, "%s lists %s again", linkNames[p.who], linkNames[t.token()])
}

// relink passes over an entry from before a deletion of the known token. Evidence received
// later makes a link of its own.
func (t *linkTurn) relink() {
	p, ev := t.p, t.ev()
	t.to(serves, "the entry is from before a deletion of %s", linkNames[p.who])
	if ev.names == p.who+1 && !p.of.excludes(ev.time) && t.wantsLink(p.of.deleted) {
		p.step = linksOwn
		return
	}
	p.done |= bitOf(p.who)
}

// confirm notes in a row, if its cell is as seen, that those were marked whom its entries of a
// known token concern: that token for entries that are not dead, the row's own for dead ones.
func (t *linkTurn) confirm(who uint8, seen *linkHead, k uint8, live, dead bool) {
	row := t.row(who)
	if row.cell != seen.cell {
		return
	}
	if t.confirmAll {
		live, dead = true, true
	}
	for i := range row.cell.entries {
		if e := &row.cell.entries[i]; e.known == k+1 && (e.state == deadEntry && dead || e.state != deadEntry && live) {
			e.confirmed = 1 + seen.deleted
		}
	}
	seen.cell = row.cell
}

func (t *linkTurn) confirmServed() {
	p := t.p
	if p.step == confirmsFirst {
		_, _, held, _ := t.due()
		p.step = serves
		t.drawServed(true, held)
		return
	}
	t.atomic = true
	t.confirm(t.token(), &p.own, p.who, true, false)
	p.done |= bitOf(p.who)
	p.mark = false
	t.to(serves, "confirms that %s was marked", linkNames[p.who])
}

// full reports whether the limit refuses the event: the tokens of the list have newer evidence.
func (t *linkTurn) full(c *linkCell) bool {
	for _, ev := range t.events {
		other := c.list&^c.shut&bitOf(ev.token) != 0 && ev.token != t.token()
		if t.limit > 0 && other && ev.names != 0 && ev.time > t.ev().time {
			return true
		}
	}
	return false
}

// shutOldest notes in the list of a known token whom the limit of one closes for a new token.
func (t *linkTurn) shutOldest(c *linkCell, who uint8) {
	if t.limit == 0 {
		return
	}
	c.shut &^= bitOf(who)
	if others := c.list &^ c.shut &^ bitOf(who); others != 0 {
		c.shut |= others
		c.shutAt = t.ev().time
	}
}

// shutOthers closes the entry of a token that the limit has closed in the list.
func (t *linkTurn) shutOthers() {
	p, row := t.p, t.row(t.p.next)
	k := linkNames[p.who]
	switch p.step {
	case readsShut:
		p.other = row.linkHead
		t.to(closesShut, "reads the row of %s", linkNames[p.next])
	case closesShut:
		t.atomic = true
		if row.cell != p.other.cell {
			t.to(readsShut, "the links of %s have changed", linkNames[p.next])
			return
		}
		for i := range row.cell.entries {
			if e := &row.cell.entries[i]; e.known == p.who+1 && e.to == openEnd {
				e.to, e.confirmed = max(e.since, p.of.cell.shutAt), 0
			}
		}
		t.changed()
		t.to(marksShut, "the limit closes the link of %s at %d", linkNames[p.next], p.of.cell.shutAt)
		if p.other.cell = row.cell; p.next == t.token() {
			p.own.cell = row.cell
		}
	case marksShut:
		t.draw(p.who, true)
		t.to(confirmsShut, "marks %s", k)
	case confirmsShut:
		t.atomic = true
		t.confirm(p.next, &p.other, p.who, true, false)
		if p.next == t.token() {
			p.own.cell = p.other.cell
		}
		if t.to(serves, "confirms that %s was marked", k); t.limitForgets {
			p.step = forgetsShut
			return
		}
		p.shut |= bitOf(p.next)
	case forgetsShut:
		t.row(p.who).cell.shut &^= bitOf(p.next)
		t.to(serves, "%s forgets whom the limit has closed", k)
	}
}

// dropNaming drops an event that names a token whose row excludes it. A reader may have
// counted it for the token of the event, or for another that it is linked to, and a fold may have
// packed it: so these are marked after the row is gone.
func (t *linkTurn) dropNaming() {
	p, a := t.p, t.token()
	switch p.step {
	case drawsNaming:
		t.ticket(p.who, false)
		if p.step = drawsOwn; t.excludesNaming() { // else an opt-in came between
			p.step = dropsNaming
			t.mayGo()
		}
	case dropsNaming:
		t.s.log &^= bitOf(p.event)
		if t.to(marksOwn, "drops event %d, which %s's row excludes", p.event, linkNames[p.who]); t.dropUnmarked {
			p.step = answers
		}
	case marksOwn:
		p.own = t.draw(a, true)
		p.done = 0
		t.to(marksHolders, "marks %s", linkNames[a])
		if p.own.covered && p.event == 0 && !t.dropPacked {
			p.step = uncoversDropped
		}
	case marksHolders:
		for _, e := range p.own.cell.entries {
			holds := e.known != 0 && e.state == liveEntry && !p.own.ended(e) && e.holds(t.ev().time)
			if holds && p.done&bitOf(e.known-1) == 0 && !t.dropOthersUnmarked {
				p.done |= bitOf(e.known - 1)
				t.draw(e.known-1, true)
				t.say("marks %s", linkNames[e.known-1])
				return
			}
		}
		p.step = answers
		t.message()
	case uncoversDropped:
		t.row(a).covered = false
		t.to(marksOwn, "uncovers the dropped event")
	}
}
