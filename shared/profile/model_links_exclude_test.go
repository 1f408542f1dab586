package profile_test

import "math/bits"

// exclude makes the next step of a deletion, or of a change of an opt-out.
func (t *linkTurn) exclude() {
	p := t.p
	switch p.step {
	case begins:
		t.begin()
		t.readExcluded()
	case readsEarlier:
		t.readExcluded()
	case excludes:
		t.setExclusion()
	case drawsExcluded:
		t.drawExcluded()
	case emptiesLinks:
		t.emptyLinks()
	case marksNamed:
		t.markNamed()
	case confirmsNamed:
		t.atomic = true
		t.confirm(p.token, &p.own, p.who, true, false)
		t.to(marksNamed, "confirms that %s was marked", linkNames[p.who])
	case readsListed, endsListed, marksListed, confirmsListed:
		t.pass()
	case drawsListed, changesListed, drawsChanged, forgetsChanged:
		t.changeListed()
	case forgetsAll:
		t.to(answers, "forgets %s", linkNames[p.token])
		t.forget(p.token, &p.own)
	case answers:
		t.say("answers")
		t.acknowledge()
		p.step, p.reading.wanted = purges, 1<<linkEvents-1
	case purges:
		t.purge()
	}
}

// readExcluded reads the row of the token. A known token may have a tombstone of an earlier
// deletion, which ended half-way: its pass comes first, because the intervals that it ends are
// ended by that tombstone, and not by the new one. All but the deletion of a known token draw
// a ticket, and then read the clock.
func (t *linkTurn) readExcluded() {
	p := t.p
	p.own = t.row(p.token).linkHead
	ticket := p.kind == linkChanger || p.own.cell.role != known && !t.deleteByClock
	if ticket {
		p.own = t.draw(p.token, false)
		p.clock = max(t.s.now, p.own.deleted+1)
	}
	t.say("reads the row of %s, the clock %d: %s", linkNames[p.token], p.clock, p.own.cell)
	if d := p.own.deleted; p.own.cell.role == known && d > 0 && d != p.passed && !t.earlierForgotten {
		p.early, p.passed, p.done, p.step = true, d, 0, readsListed
		return
	}
	if p.step = excludes; !ticket {
		t.setExclusion()
	}
}

// setExclusion writes the tombstone, and the opt-out with it, if the row is as it was read.
func (t *linkTurn) setExclusion() {
	p, row := t.p, t.row(t.p.token)
	valid := row.deleted == p.own.deleted
	if p.kind == linkChanger || p.own.cell.role != known && !t.deleteByClock {
		t.atomic = true
		valid = row.tickets == p.own.tickets && row.cell == p.own.cell || t.changeBlindly
	}
	if !valid {
		t.to(readsEarlier, "the row of %s has changed", linkNames[p.token])
		t.triedAgain()
		return
	}
	t.excluded(p.token, p.clock)
	row.deleted = max(row.deleted, p.clock)
	t.to(drawsExcluded, "sets the tombstone %d of %s", row.deleted, linkNames[p.token])
	if p.kind != linkChanger {
		return
	}
	row.out, row.cell.outBy = p.out, 0
	if !p.out {
		t.s.law.ownOut &^= bitOf(p.token)
	}
	t.say("opts %s out: %t, tombstone %d", linkNames[p.token], p.out, p.clock)
}

// triedAgain counts an attempt that others have failed. After three the process gives up.
func (t *linkTurn) triedAgain() {
	if t.p.tries++; t.p.tries > 2 {
		t.p.died = true
		t.p.finish()
	}
}

func (t *linkTurn) drawExcluded() {
	p := t.p
	p.own = t.draw(p.token, false)
	p.done, p.passed, p.early = 0, p.own.deleted, false
	t.to(marksNamed, "draws ticket %d of %s: %s", p.own.tickets, linkNames[p.token], p.own.cell)
	if p.own.cell.role == known {
		p.step = readsListed
		t.nextListed()
	} else if t.deleteEmpties && p.own.cell.role == anonymous {
		p.step = emptiesLinks
	}
}

func (t *linkTurn) emptyLinks() { // of rules.deleteEmpties
	p, row := t.p, t.row(t.p.token)
	if t.to(drawsExcluded, "the links have changed"); row.cell == p.own.cell {
		row.cell.entries = [linkEntries]linkEntry{}
		t.forget(p.token, &p.own)
		t.to(marksNamed, "empties the links and the profile")
	}
}

// forget empties what is derived of a token, and leaves a marker.
func (t *linkTurn) forget(who uint8, seen *linkHead) {
	row := t.row(who)
	t.atomic = true
	row.covered = false
	row.put(linkProfile{marker: true, ticket: seen.tickets, deleted: row.deleted})
}

// markNamed marks whom the pending entries of a deleted anonymous token name: the tombstone
// makes all of them pending.
func (t *linkTurn) markNamed() {
	p := t.p
	for _, e := range p.own.cell.entries {
		due := t.pending(e, &p.own) && (e.state != deadEntry || t.confirmAll) && !t.deleteUnmarked
		if due && p.done&bitOf(e.known-1) == 0 {
			p.who = e.known - 1
			t.draw(p.who, true)
			p.done |= bitOf(p.who)
			t.to(confirmsNamed, "marks %s", linkNames[p.who])
			return
		}
	}
	t.to(answers, "forgets %s", linkNames[p.token])
	t.forget(p.token, &p.own)
}

// nextListed goes on to the next token of the list.
func (t *linkTurn) nextListed() {
	p := t.p
	if left := p.own.cell.list &^ p.done; left != 0 {
		p.next, p.step = uint8(bits.TrailingZeros8(left)), readsListed
		return
	}
	if p.step = forgetsAll; p.early {
		p.early, p.step = false, readsEarlier
	}
}

// pass makes the entries dead that name a deleted token, in the rows of its list.
func (t *linkTurn) pass() {
	p := t.p
	if p.step == readsListed && p.own.cell.list&^p.done == 0 {
		t.nextListed()
		t.exclude()
		return
	}
	if p.step == readsListed {
		p.next = uint8(bits.TrailingZeros8(p.own.cell.list &^ p.done))
		p.other = t.row(p.next).linkHead
		t.say("reads the row of %s: %s", linkNames[p.next], p.other.cell)
		switch {
		case p.kind == linkChanger && !p.early && t.changes(p.token):
			p.step = drawsListed
		case p.kind == linkChanger && !p.early && p.out && p.other.out && p.other.cell.outBy == p.token+1:
			p.step = drawsChanged // an earlier attempt may have ended here
		case t.mustEnd(p.token):
			p.step = endsListed
		default:
			p.done |= bitOf(p.next)
			t.nextListed()
		}
		return
	}
	if t.endListed(p.token, readsListed) {
		p.done |= bitOf(p.next)
		t.nextListed()
	}
}

// mustEnd reports whether the row of a listed token has entries that the tombstone of a known
// one makes dead, or has made dead without a mark. An entry that the token's own tombstone has
// ended is nobody's any more.
func (t *linkTurn) mustEnd(k uint8) bool {
	for _, e := range t.p.other.cell.entries {
		if e.known == k+1 && (t.dies(e) || e.state == deadEntry && t.pending(e, &t.p.other) && !t.othersUnmarked) {
			return true
		}
	}
	return false
}

func (t *linkTurn) dies(e linkEntry) bool {
	return e.state == liveEntry && e.at < t.p.passed && (!t.p.other.ended(e) || t.endedDies)
}

// endListed makes the entries of a row dead, marks its token and confirms that. It reports
// whether this is done.
func (t *linkTurn) endListed(k uint8, again linkStep) bool {
	p, row := t.p, t.row(t.p.next)
	switch p.step {
	case endsListed:
		t.atomic = true
		if row.cell != p.other.cell {
			t.to(again, "the links of %s have changed", linkNames[p.next])
			return false
		}
		for i := range row.cell.entries {
			if e := &row.cell.entries[i]; e.known == k+1 && t.dies(*e) {
				e.state, e.confirmed = deadEntry, 0
				e.to = max(e.since, min(e.to, p.passed))
			}
		}
		p.other.cell = row.cell
		if t.to(marksListed, "the intervals of %s on %s are dead", linkNames[k], linkNames[p.next]); t.deadUnmarked {
			p.step = confirmsListed
		}
	case marksListed:
		t.draw(p.next, true)
		t.to(confirmsListed, "marks %s", linkNames[p.next])
	case confirmsListed:
		t.atomic = true
		t.confirm(p.next, &p.other, k, false, true)
		t.say("confirms that %s was marked", linkNames[p.next])
		if t.deadRemoved {
			t.removeDead(p.next)
		}
		return true
	}
	return false
}

func (t *linkTurn) removeDead(who uint8) { // of rules.deadRemoved
	row := t.row(who)
	for i := range row.cell.entries {
		if e := &row.cell.entries[i]; e.known != 0 && e.state == deadEntry {
			t.purgeOf(who)
			*e = linkEntry{}
		}
	}
}

// purgeOf removes the events in dead intervals of a token.
func (t *linkTurn) purgeOf(who uint8) {
	for e, ev := range t.events {
		if ev.token == who && t.deadAt(&t.row(who).linkHead, ev.time) {
			t.s.log &^= bitOf(uint8(e))
		}
	}
}

// purge removes what is excluded from the log.
func (t *linkTurn) purge() {
	p := t.p
	for p.reading.wanted != 0 {
		e := uint8(bits.TrailingZeros8(p.reading.wanted))
		p.reading.wanted &^= bitOf(e)
		ev := t.events[e]
		row := &t.row(ev.token).linkHead
		if t.s.log&bitOf(e) != 0 && (ev.token == p.token && ev.time < row.deleted || t.deadAt(row, ev.time)) {
			t.s.log &^= bitOf(e)
			t.say("purges event %d", e)
			return
		}
	}
	t.say("has purged")
	p.finish()
}
