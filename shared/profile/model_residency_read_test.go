package profile_test

import "fmt"

// answer checks what a reader answers.
func (t *placeTurn) answer(counts uint8) {
	for e := range uint8(placeEvents) {
		if counts&bitOf(e) != 0 && e < t.p.deleted {
			t.bad = fmt.Sprintf("event %d was deleted, and counts", e)
		}
		if counts&bitOf(e) == 0 && t.p.acked&bitOf(e) != 0 && e >= t.w.tried {
			t.bad = fmt.Sprintf("event %d was acknowledged, and does not count", e)
		}
	}
	t.p.end()
}

// scan reads an event of the log, and reports whether it was the last one.
func (t *placeTurn) scan() bool {
	p := t.p
	if p.next >= p.row.deleted && t.w.log[p.region][p.next] {
		p.counts |= bitOf(p.next)
	}
	p.next++
	return p.next == placeEvents
}

func (t *placeTurn) scanned() { t.p.next, t.p.counts = 0, 0 }

func (t *placeTurn) read() {
	w, p := t.w, t.p
	switch p.step {
	case placeReadsRow:
		row := w.rows[p.region]
		t.say("reads the row in %d: %s %d", p.region, placeStates[row.state], row.epoch)
		if p.row.state == movedAway && row.epoch < p.row.epoch { // it has not arrived: the row before has everything
			p.region, p.departed = 1-p.region, true
			t.serve()
			return
		}
		switch p.row = row; {
		case row.here():
			t.serve()
		case row.state == movedAway:
			p.region = 1 - p.region
		case row.state == unowned && row.ticket > 0 && p.region == 0: // from before locations
			t.serve()
		case t.trustsCache:
			t.answer(0)
		default:
			p.step = placeLooksAgain
		}
	case placeReadsEvents:
		last := t.scan()
		t.say("reads the log in %d", p.region)
		if !last {
			return
		}
		p.step = placeAnswers
	case placeAnswers: // looks at the row again, which may have been left
		row := w.rows[p.region]
		t.say("looks at the row again: %s", placeStates[row.state])
		if row.state != p.row.state || row.epoch != p.row.epoch {
			p.row, p.departed = placeRow{}, false
			p.step = placeLocates
			return
		}
		t.answer(p.counts)
	}
}

// serve answers from the stored profile, or computes.
func (t *placeTurn) serve() {
	p := t.p
	if r := &p.row; r.stored && r.under == r.deleted && r.at == r.ticket {
		t.answer(r.counts)
		return
	}
	t.scanned()
	p.step = placeReadsEvents
}
