package profile_test

// write makes the steps of a message and of a deletion at the rows of the token.
func (t *placeTurn) write() {
	w, p := t.w, t.p
	row := &w.rows[p.region]
	switch p.step {
	case placeLogsHere:
		w.log[p.region][p.event] = true
		p.step = placeDraws
		t.say("logs event %d in %d", p.event, p.region)
	case placeLogsThere:
		w.log[1-p.region][p.event] = true
		p.both, p.step = true, placeDraws
		t.say("logs event %d in %d, too", p.event, 1-p.region)
	case placeRaises:
		row.deleted = max(row.deleted, p.event)
		p.step = placeDraws
		t.say("raises the tombstone in %d to %d", p.region, p.event)
	case placeDraws:
		t.draw(row)
	case placeHelpsRead:
		p.old = w.rows[1-p.region]
		p.step = placeHelpsArrive
		if p.old.state != movedAway || p.old.epoch != p.row.epoch {
			p.step = placeDraws
		}
		t.say("reads the row in %d", 1-p.region)
	case placeHelpsArrive:
		w.arriveRow(p.region, p.old)
		p.step = placeDraws
		if p.kind == placeDeleter {
			p.step = placeRaises
		}
		t.say("completes the arrival in %d", p.region)
	case placeAdopts:
		t.atomic = true
		if row.state == unowned {
			row.state, row.epoch = ownedHere, row.epoch+1
		}
		if p.step = placeDraws; p.kind == placeMover || p.must && p.region != p.to {
			p.step = moverReads
		}
		t.say("gives the row in %d an owner: %s", p.region, placeStates[row.state])
	case placeReadsEvents:
		if p.event < p.row.deleted && p.next == 0 { // deleted: the message drops its event
			w.log[p.region][p.event] = false
			if p.both {
				w.log[1-p.region][p.event] = false
			}
		}
		if t.scan() {
			p.step = placeStores
		}
		t.say("reads the log in %d", p.region)
	case placeStores:
		if row.at <= p.row.ticket {
			row.stored, row.at, row.counts, row.under = true, p.row.ticket, p.counts, p.row.deleted
		}
		if p.step = placeAnswers; p.kind == placeDeleter {
			p.step = placePurges
			p.next = 0
			w.deleted = max(w.deleted, p.event)
		}
		t.say("stores in %d at ticket %d", p.region, p.row.ticket)
	case placeAnswers:
		w.acked |= bitOf(p.event)
		t.say("acknowledges event %d", p.event)
		p.end()
	case placePurges:
		e, region := p.next%placeEvents, p.next/placeEvents
		if e < p.event {
			w.log[region][e] = false
		}
		if p.next++; p.next == placeEvents*placeRegions {
			p.end()
		}
		t.say("purges")
	}
}

// draw placeDraws a ticket, and goes where the row leads.
func (t *placeTurn) draw(row *placeRow) {
	p := t.p
	row.ticket++
	t.atomic = true
	seen := p.row
	p.row = *row
	t.scanned()
	t.say("draws ticket %d in %d: %s %d", row.ticket, p.region, placeStates[row.state], row.epoch)
	switch {
	case seen.state == movedAway && seen.epoch > closed && row.epoch < seen.epoch: // it has not arrived
		p.row, p.step = seen, placeHelpsRead
	case row.state == movedAway:
		p.region, p.both = 1-p.region, false
		if p.step = placeLogsHere; p.kind == placeDeleter {
			p.step = placeRaises
		}
		if p.must && p.region != p.to { // it moved away again
			p.step = placeLocates
		}
	case row.state == unowned && t.adoptsBlindly:
		p.step = placeAdopts
	case row.state == unowned:
		p.step = placeLooksAgain
	case row.state == leavingHere && p.kind == placeMessage && !p.both:
		p.step = placeLogsThere
	case p.kind == placeDeleter && row.deleted < p.event:
		p.step = placeRaises
	default:
		p.step = placeReadsEvents
	}
}

// arriveRow makes the row of a region count, if it has not reached the epoch of the row that was left.
func (w *placeWorld) arriveRow(region uint8, old placeRow) {
	if r := &w.rows[region]; r.epoch < old.epoch {
		*r = placeRow{state: ownedHere, epoch: old.epoch, ticket: old.ticket + 1, deleted: old.deleted}
	}
}

// move makes the steps of a mover, and of a message that needs the token in another region.
func (t *placeTurn) move() bool {
	w, p := t.w, t.p
	from := p.region
	row := &w.rows[from]
	switch p.step {
	case cleanerReads: // the token has moved already, by a message or by a mover that died
		p.old, p.next = *row, 0
		t.say("reads the row that was left: %s", placeStates[row.state])
		switch {
		case row.state == unowned && w.log[from] != [placeEvents]bool{}:
			p.step = closerCloses
		case row.state == movedAway && row.epoch == closing:
			p.step = closerTouches
		case row.state == movedAway:
			p.step = moverWaits
		default:
			p.end()
		}
	case closerCloses:
		t.atomic = true
		if p.step = closerTouches; row.state != unowned {
			p.end()
		} else {
			row.state, row.epoch = movedAway, closing
		}
		t.say("closes the row in %d: %s", from, placeStates[row.state])
	case closerTouches:
		t.atomic = true
		if p.step = closerSeals; w.where != p.found {
			p.end()
		} else {
			w.stamps++
			w.relocate(location{p.found.region, w.stamps})
		}
		t.say("the location is %+v", w.where)
	case closerSeals:
		t.atomic = true
		if p.step = placeLocates; row.state != movedAway || row.epoch != closing {
			p.end()
		} else {
			row.epoch = closed
		}
		t.say("seals the row in %d", from)
	case moverReads:
		p.row = *row
		t.say("reads the row to move in %d: %s %d", from, placeStates[row.state], row.epoch)
		switch {
		case row.here() && w.rows[1-from].state == movedAway && !t.movesBack:
			t.giveUp("waits until what was left is cleaned")
		case row.state == ownedHere:
			p.step = moverLeaves
		case row.state == leavingHere:
			p.step, p.next = moverCopies, 0
		case row.state == movedAway:
			p.step = moverReadsOld
		case t.movesUnborn:
			p.step = moverCopiesPlace
		default: // as a message that brings it to life
			p.step = placeLooksAgain
		}
	case moverLeaves:
		t.atomic = true
		p.step = moverReads
		if row.state == ownedHere && row.epoch == p.row.epoch {
			row.state, row.epoch = leavingHere, row.epoch+1
		}
		t.say("row in %d: %s", from, placeStates[row.state])
	case moverCopies:
		if w.log[from][p.next] {
			w.log[1-from][p.next] = true
		}
		if p.next++; p.next == placeEvents {
			p.step = moverFences
		}
		t.say("copies event %d", p.next-1)
	case moverFences:
		t.atomic = true
		p.step = moverReads
		if row.state == leavingHere && row.epoch == p.row.epoch {
			row.state, row.epoch = movedAway, row.epoch+1
			if t.locatesFirst {
				w.stamps++
				w.relocate(location{1 - from, w.stamps})
			}
		}
		t.say("row in %d: %s", from, placeStates[row.state])
	case moverReadsOld:
		p.old = *row
		p.step = moverArrives
		t.say("reads the row that was left")
	case moverArrives:
		t.atomic = true
		w.arriveRow(1-from, p.old)
		if p.step = moverCopiesPlace; t.copiesLater {
			p.step = moverRelocates
		}
		t.say("row in %d: %s", 1-from, placeStates[w.rows[1-from].state])
	case moverCopiesPlace:
		w.copied, p.late = 1-from+1, false
		t.say("copies the location: %d", 1-from)
		if p.step = moverRelocates; t.copiesLater {
			t.relocated()
		}
	case moverRelocates:
		t.atomic = true
		if w.where != p.found && w.where.region == from { // it was forgotten, and has begun again
			p.found = w.where
			t.say("reads the location %+v", w.where)
			break
		}
		if w.where == p.found {
			w.stamps++
			w.relocate(location{1 - from, w.stamps})
		}
		p.found = w.where
		t.say("the location is %+v", w.where)
		if p.step = moverCopiesPlace; !t.copiesLater {
			t.relocated()
		}
	case moverWaits, moverWaitsAgain:
		if t.blocked = !t.settled(); !t.blocked {
			if p.step == moverWaits { // as long again: for those who have read what a slow process has copied
				w.late()
			}
			p.step++
			p.next = 0
			t.say("has waited")
		}
	case moverChecks:
		if w.where != p.found { // the wait begins at its instant
			p.found, p.step = w.where, moverWaits
			t.say("reads the location %+v", w.where)
			break
		}
		t.say("looks at the copy of %+v: %d", w.where, int(w.copied)-1)
		switch {
		case w.copied != 0 && w.copied != w.where.region+1 && !t.trustsCopies:
			if p.step = moverRenews; t.repairsFirst {
				p.step = moverRepairs
			}
		case t.trustsPlace:
			p.step = moverLooks
		default:
			p.step = moverLooksThere
		}
	case moverRenews:
		t.atomic = true
		if p.step = moverRepairs; w.where != p.found {
			p.step = moverWaits
		} else {
			w.stamps++
			p.found = location{p.found.region, w.stamps}
			w.relocate(p.found)
		}
		t.say("the location is %+v", w.where)
	case moverRepairs:
		w.copied = p.found.region + 1
		p.step = moverTouches
		t.say("copies the location %+v", p.found)
	case moverTouches:
		t.atomic = true
		if p.step = moverWaits; w.where == p.found {
			w.stamps++
			w.relocate(location{p.found.region, w.stamps})
		}
		t.say("the location is %+v", w.where)
	case moverLooksThere:
		there := w.rows[1-from]
		if p.step = moverLooks; there.state == movedAway && there.epoch > closed {
			p.end()
		}
		t.say("looks at the row where it lives: %s", placeStates[there.state])
	case moverLooks:
		if p.step = moverDrops; row.state != movedAway || row.epoch != p.old.epoch {
			p.end()
		}
		t.say("looks at the row that was left: %s", placeStates[row.state])
	case moverDrops:
		w.log[from][p.next] = false
		if p.next++; p.next == placeEvents {
			p.step = moverErases
		}
		t.say("drops event %d in %d", p.next-1, from)
	case moverErases:
		t.atomic = true
		if row.state == movedAway && row.epoch == p.old.epoch {
			*row = placeRow{}
		}
		t.say("erases the row in %d", from)
		p.end()
	default:
		return false
	}
	return true
}

// relocated goes on after the location of the token has changed.
func (t *placeTurn) relocated() {
	p := t.p
	if p.step = moverWaits; p.kind == placeMessage {
		p.row, p.region, p.step = placeRow{}, 1-p.region, placeLogsHere
	}
}

// giveUp ends a mover. A message is delivered again, later.
func (t *placeTurn) giveUp(why string) {
	t.say("%s", why)
	t.p.end()
}

// forget makes the steps of who forgets a token that was deleted so long ago that no message from before may come.
func (t *placeTurn) forget() {
	w, p := t.w, t.p
	row := &w.rows[p.region]
	switch p.step {
	case forgetterReads:
		p.row = *row
		t.say("reads the row in %d: %s", p.region, placeStates[row.state])
		if p.step = forgetterLooks; row.state == leavingHere || row.state == movedAway || row.state == ownedHere && row.deleted < placeEvents-1 {
			p.end()
		}
	case forgetterLooks:
		t.say("looks at what else there is of the token")
		switch {
		case w.log[p.region] != [placeEvents]bool{} || w.rows[1-p.region] != placeRow{}:
			p.end()
		case t.unlocatesFirst:
			p.step = forgetterUnlocates
		default:
			p.step = forgetterStrips
		}
	case forgetterStrips:
		t.atomic = true
		if same := row.state == p.row.state && row.epoch == p.row.epoch && row.ticket == p.row.ticket; same || t.stripsBlindly {
			*row = placeRow{ticket: row.ticket}
			if p.step = forgetterUnlocates; t.unlocatesFirst {
				p.step = forgetterUncopies
			}
		} else {
			p.end()
		}
		t.say("row in %d: %s %d", p.region, placeStates[row.state], row.ticket)
	case forgetterUnlocates:
		t.atomic = true
		switch {
		case w.where != p.found || w.where.stamp > 1: // it is not old
			p.end()
		case t.unlocatesFirst:
			w.relocate(location{})
			p.step = forgetterStrips
		default:
			w.relocate(location{})
			if p.step = forgetterUncopies; t.uncopiesLate {
				p.step = forgetterWaits
			}
		}
		t.say("the location is %+v", w.where)
	case forgetterUncopies:
		if w.copied != 0 && w.where.stamp == 0 {
			w.before, w.stale = location{w.copied - 1, 1}, true // who has read it may remember it
			w.copied = 0
		}
		t.say("removes the copy: %d", int(w.copied)-1)
		if p.step = forgetterWaits; t.uncopiesLate {
			p.step = forgetterLooksAgain
		}
	case forgetterWaits:
		if t.blocked = !t.settled() && !t.erasesAtOnce; !t.blocked {
			if p.step = forgetterChecks; t.uncopiesLate {
				p.step = forgetterUncopies
			}
			t.say("has waited")
		}
	case forgetterChecks:
		t.say("looks at the copy: %d", int(w.copied)-1)
		if p.step = forgetterLooksAgain; w.copied != 0 {
			p.step = forgetterUncopies
		}
	case forgetterLooksAgain:
		p.row = *row
		t.say("reads the location again: %+v, and the row in %d: %s %d", w.where, p.region, placeStates[row.state], row.ticket)
		if p.step = forgetterReadsLog; w.where.stamp != 0 || row.state != unowned || row.deleted > 0 {
			p.end()
		}
	case forgetterReadsLog:
		t.say("reads the log in %d", p.region)
		if p.step = forgetterErases; w.log[p.region] != [placeEvents]bool{} {
			p.end()
		}
	case forgetterErases:
		if t.atomic = true; row.state == unowned && row.ticket == p.row.ticket {
			*row = placeRow{}
		}
		t.say("erases the row in %d", p.region)
		p.end()
	}
}
