package profile_test

// changes reports whether a change of the opt-out of a known token takes along the listed one
// that is read: out, if all its entries name the known one; in, if that one has opted it out.
func (t *linkTurn) changes(k uint8) bool {
	row := &t.p.other
	if !t.p.out {
		return row.out && (row.cell.outBy == k+1 && !t.outStays || t.optsAllIn)
	}
	return !row.out && row.names(k) && (!row.namesOther(k) || t.outAlways)
}

// names reports whether a live entry that the row's tombstone has not ended names a token.
func (h *linkHead) names(k uint8) bool {
	for _, e := range h.cell.entries {
		if e.known == k+1 && e.state == liveEntry && !h.ended(e) {
			return true
		}
	}
	return false
}

// namesOther reports whether an entry that is not void and not ended names another token.
func (h *linkHead) namesOther(k uint8) bool {
	for _, e := range h.cell.entries {
		if e.known != 0 && e.known != k+1 && e.state != voidEntry && !h.ended(e) {
			return true
		}
	}
	return false
}

// changeListed opts a listed token out, or in, for the known one: by a change of its own, on
// condition of its ticket and of the entries that the ticket has read.
func (t *linkTurn) changeListed() {
	p, row := t.p, t.row(t.p.next)
	switch p.step {
	case drawsListed:
		p.other = t.draw(p.next, false)
		t.to(changesListed, "draws ticket %d of %s: %s", p.other.tickets, linkNames[p.next], p.other.cell)
		if !t.changes(p.token) {
			p.step = readsListed
		}
		p.otherClock = max(t.s.now, p.other.deleted+1)
	case changesListed:
		t.atomic = true
		if row.tickets != p.other.tickets || row.cell != p.other.cell && !t.entriesUnseen {
			t.to(drawsListed, "the row of %s has changed", linkNames[p.next])
			t.triedAgain()
			return
		}
		if p.out && row.namesOther(p.token) {
			t.bad = "an opt-out takes along a token of another"
		}
		t.excluded(p.next, p.otherClock)
		row.out, row.deleted = p.out, p.otherClock
		if row.cell.outBy = 0; p.out {
			row.cell.outBy = p.token + 1
		}
		t.to(drawsChanged, "opts %s out: %t, tombstone %d", linkNames[p.next], p.out, p.otherClock)
	case drawsChanged:
		p.other = t.draw(p.next, false)
		t.to(forgetsChanged, "draws ticket %d of %s", p.other.tickets, linkNames[p.next])
	case forgetsChanged:
		t.say("forgets %s", linkNames[p.next])
		t.forget(p.next, &p.other)
		p.done |= bitOf(p.next)
		t.nextListed()
	}
}

// unlink makes the next step of an unlinking.
func (t *linkTurn) unlink() {
	p := t.p
	switch p.step {
	case begins:
		if t.begin(); t.unlinkMarksFirst {
			t.draw(p.known, true)
			t.to(drawsToUnlink, "marks %s first", linkNames[p.known])
			return
		}
		t.drawToUnlink()
	case drawsToUnlink:
		t.drawToUnlink()
	case unlinks:
		t.makeVoid()
	case marksKnown:
		t.draw(p.known, !t.unlinkPlain)
		t.to(confirms, "marks %s", linkNames[p.known])
	case confirms:
		t.atomic = true
		t.confirm(p.token, &p.own, p.known, true, false)
		t.to(answers, "confirms that %s was marked", linkNames[p.known])
	case answers:
		found := t.voidRemoved
		for _, e := range t.row(p.token).cell.entries {
			found = found || e.known == p.known+1 && e.state == voidEntry
		}
		if !found {
			p.clock = 0 // it promises nothing
		}
		t.say("answers: unlinked")
		t.acknowledge()
		p.finish()
	}
}

// drawToUnlink draws the ticket of the anonymous token, and then reads the clock.
func (t *linkTurn) drawToUnlink() {
	p := t.p
	p.own = t.draw(p.token, false)
	if !t.clockFirst {
		p.clock = t.s.now
	}
	t.to(answers, "draws ticket %d of A, then reads the clock %d: %s", p.own.tickets, p.clock, p.own.cell)
	for _, e := range p.own.cell.entries {
		if e.known != p.known+1 {
			continue
		}
		if e.state == liveEntry {
			p.step = unlinks
			return
		}
		if e.state == voidEntry && !t.clockFirst {
			p.clock = e.until // of another attempt
		}
		if e.state != deadEntry && t.pending(e, &p.own) && !t.othersUnmarked {
			p.step = marksKnown
		}
	}
}

func (t *linkTurn) makeVoid() {
	p, row := t.p, t.row(t.p.token)
	t.atomic = true
	if row.tickets != p.own.tickets && !t.clockFirst || row.cell != p.own.cell {
		t.to(drawsToUnlink, "the row of %s has changed", linkNames[p.token])
		t.triedAgain()
		return
	}
	for i := range row.cell.entries {
		if e := &row.cell.entries[i]; e.known == p.known+1 && e.state == liveEntry {
			if e.state, e.until, e.confirmed = voidEntry, p.clock, 0; t.voidRemoved {
				*e = linkEntry{}
			}
		}
	}
	for e, ev := range t.events {
		if ev.token == p.token && ev.names == p.known+1 && t.s.law.acked&bitOf(uint8(e)) != 0 {
			t.s.law.undone |= bitOf(uint8(e))
		}
	}
	p.own.cell = row.cell
	if t.to(marksKnown, "%s is not linked to %s", linkNames[p.token], linkNames[p.known]); t.unlinkMarksFirst {
		p.step = answers
	}
}

// night marks, for the row of an anonymous token, whom pending entries concern, and drops
// entries that the token's tombstone has ended.
func (t *linkTurn) night() {
	p, row := t.p, t.row(t.p.token)
	switch p.step {
	case begins:
		p.own, p.crashes = row.linkHead, t.s.crashes
		t.to(marksNamed, "reads the row of %s: %s", linkNames[p.token], p.own.cell)
	case marksNamed:
		for _, e := range p.own.cell.entries {
			if t.pending(e, &p.own) && p.done&bitOf(e.known-1) == 0 {
				p.who = e.known - 1
				p.done |= bitOf(p.who)
				t.draw(p.who, true)
				t.to(marksOwn, "marks %s", linkNames[p.who])
				return
			}
		}
		t.nightEnds()
	case marksOwn:
		for _, e := range p.own.cell.entries {
			if e.known == p.who+1 && e.state == deadEntry {
				t.draw(p.token, true)
				t.to(confirmsDead, "marks %s", linkNames[p.token])
				return
			}
		}
		fallthrough
	case confirmsDead:
		t.confirm(p.token, &p.own, p.who, true, true)
		t.to(marksNamed, "confirms that %s was marked", linkNames[p.who])
	case dropsEnded:
		if row.cell == p.own.cell {
			row.cell.dropEnded(&p.own)
		}
		t.say("drops the entries that the tombstone has ended")
		p.finish()
	}
}

// nightEnds settles what dead processes have left, and drops what is spent.
func (t *linkTurn) nightEnds() {
	p, s := t.p, t.s
	for op := range uint8(8 + linkProcs) {
		kept := op < 8 && (t.ops[op].kind == linkDeleter || t.ops[op].kind == linkChanger)
		if s.law.causes&(1<<op) == 0 || p.crashes != s.crashes || kept {
			continue
		}
		alive := op >= 8 && !s.procs[(op-8)%linkProcs].died
		for i := range s.procs {
			o := &s.procs[i]
			alive = alive || op < 8 && o.kind == t.ops[op].kind && o.op == op && o.step != finished && o.step != begins
		}
		if !alive {
			s.law.causes &^= 1 << op
		}
	}
	t.settle(s)
	t.say("is done with %s", linkNames[p.token])
	cell := p.own.cell
	if cell.dropEnded(&p.own); cell != p.own.cell {
		p.step = dropsEnded
		return
	}
	p.finish()
}

// dropEnded drops the confirmed entries that the tombstone of a row has ended.
func (c *linkCell) dropEnded(h *linkHead) {
	for i, e := range c.entries {
		if e.known != 0 && e.state == liveEntry && h.ended(e) && e.confirmed == 1+h.deleted {
			c.entries[i] = linkEntry{}
		}
	}
}

// sweep takes a token without entries off the list of a known one, and makes the pass of a
// deletion that died.
func (t *linkTurn) sweep() {
	p, row := t.p, t.row(t.p.known)
	switch p.step {
	case begins:
		p.own = t.draw(p.known, false)
		p.next, p.passed = p.token, p.own.deleted
		t.to(readsRow, "draws ticket %d of %s: %s", p.own.tickets, linkNames[p.known], p.own.cell)
		if p.own.cell.list&bitOf(p.token) == 0 {
			p.finish()
		}
	case readsRow:
		p.other = t.row(p.next).linkHead
		t.to(unlists, "reads the row of %s: %s", linkNames[p.next], p.other.cell)
		if t.mustEnd(p.known) && p.passed > 0 && !t.sweepPending {
			p.step = endsListed
			return
		}
		keep := p.other.cell.outBy == p.known+1
		for _, e := range p.other.cell.entries {
			links := e.state == liveEntry && !p.other.ended(e)
			keep = keep || e.known == p.known+1 && (links || t.pending(e, &p.other) && !t.sweepPending)
		}
		if keep {
			p.finish()
		}
	case endsListed, marksListed, confirmsListed:
		if t.endListed(p.known, readsRow) {
			p.finish()
		}
	case unlists:
		t.say("%s does not list %s", linkNames[p.known], linkNames[p.token])
		if row.tickets == p.own.tickets || t.sweepByList && row.cell == p.own.cell {
			row.cell.list &^= bitOf(p.token)
		}
		p.finish()
	}
}

// switchOn makes the next step of an operator who switches identity on.
func (t *linkTurn) switchOn() {
	p, s := t.p, t.s
	switch p.step {
	case begins:
		t.begin()
		s.phase = 1
		if t.to(settles, "links are made, nothing counts"); t.switchAtOnce {
			s.phase, p.step = 2, hasSwitched
		}
	case settles:
		for i := range s.procs {
			if s.procs[i].stale && s.procs[i].step != finished {
				t.blocked = true
				return
			}
		}
		s.settled, s.phase = true, 2
		t.to(hasSwitched, "links count")
	case hasSwitched:
		t.say("has switched identity on")
		t.acknowledge()
		p.finish()
	}
}
