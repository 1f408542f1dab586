package profile_test

import (
	"fmt"
	"math/bits"
	"strings"
)

// say notes what a turn did, for a trace.
func (t *linkTurn) say(format string, args ...any) {
	if t.tracing {
		t.said = fmt.Sprintf(format, args...)
	}
}

func (c linkCell) String() string {
	var b strings.Builder
	if c.role == known {
		fmt.Fprintf(&b, "known, lists %03b", c.list)
	}
	for _, e := range c.entries {
		if e.known != 0 {
			state := [...]string{"", " void", " dead"}[e.state]
			fmt.Fprintf(&b, "%s[%d,%d)@%d%s ", linkNames[e.known-1], e.since, e.to, e.at, state)
			if e.confirmed == 0 {
				b.WriteString("pending ")
			}
		}
	}
	if b.Len() == 0 {
		return "no links"
	}
	return b.String()
}

// draw draws a ticket, a mark or not, and returns the row of that instant.
func (t *linkTurn) draw(who uint8, mark bool) linkHead {
	row := t.row(who)
	t.atomic = true
	if row.tickets++; mark {
		row.marks++
	}
	return row.linkHead
}

// ticket draws a ticket of a token, to serve it.
func (t *linkTurn) ticket(who uint8, mark bool) {
	t.p.of, t.p.who = t.draw(who, mark), who
	t.say("draws ticket %d of %s, marks %d", t.p.of.tickets, linkNames[who], t.p.of.marks)
}

// compute begins to compute the profile of the token who by the row of: first the rows of its
// list, then the log.
func (t *linkTurn) compute() {
	p := t.p
	p.reading = linkReading{format: t.format(t.s)}
	if p.reading.format == 2 {
		p.reading.left = p.of.cell.list &^ bitOf(p.who)
	}
	t.want(p.who, &p.of)
	t.readOn()
}

// want notes the events of a token that count for the computed one, by the token's row.
func (t *linkTurn) want(who uint8, row *linkHead) {
	p := t.p
	for e := range uint8(linkEvents) {
		if t.events[e].token != who || !t.counted(e, p.who, &p.of, row) {
			continue
		}
		if p.reading.wanted |= bitOf(e); row.covered && e == 0 {
			p.reading.blocks |= bitOf(e)
		}
	}
}

func (t *linkTurn) readOn() {
	switch r := &t.p.reading; {
	case r.left != 0:
		t.p.step = readsRows
	case r.wanted != 0:
		t.p.step = readsLog
	default:
		t.p.step = stores
	}
}

// read reads the next row or the next event of a computation.
func (t *linkTurn) read() {
	p := t.p
	r := &p.reading
	if p.step == readsRows {
		who := uint8(bits.TrailingZeros8(r.left))
		r.left &^= bitOf(who)
		row := &t.row(who).linkHead
		if t.ticketRow && p.kind == linkMessage && who == t.token() {
			row = &p.own
		}
		t.want(who, row)
		t.say("reads the row of %s", linkNames[who])
		t.readOn()
		return
	}
	e := uint8(bits.TrailingZeros8(r.wanted))
	r.wanted &^= bitOf(e)
	there := t.s.log&bitOf(e) != 0
	if r.blocks&bitOf(e) != 0 {
		there = t.s.block == 2
	}
	if there {
		r.got |= bitOf(e)
	}
	t.say("reads event %d for %s: %t", e, linkNames[p.who], there)
	t.readOn()
}

// store stores the computed profile at the ticket of the row that it is computed from.
func (t *linkTurn) store() {
	p := t.p
	t.row(p.who).put(linkProfile{ticket: p.of.tickets, marks: p.of.marks, deleted: p.of.deleted,
		format: p.reading.format, counts: p.reading.got})
	t.say("stores %s at ticket %d: events %03b", linkNames[p.who], p.of.tickets, p.reading.got)
}

func (t *linkTurn) storeServed() {
	p := t.p
	t.store()
	if p.who == t.token() {
		p.step = answers
		return
	}
	if p.step = serves; p.mark && !t.confirmFirst {
		p.step = confirms
		return
	}
	p.done |= bitOf(p.who)
}

// computeOwn computes the profile of the event's token at the ticket drawn first, beside
// those of the known ones.
func (t *linkTurn) computeOwn() {
	p, a := t.p, t.token()
	if p.step = answers; a < t.knownBy && !t.own {
		t.message()
		return
	}
	p.who, p.of = a, p.own
	if t.adds && a >= t.knownBy && p.event != 0 {
		p.step = readsBase
		t.add()
		return
	}
	t.compute()
	t.message()
}

// add adds the event to a base.
func (t *linkTurn) add() {
	p := t.p
	if p.step == readsBase {
		b := &t.row(p.who).profile
		t.say("reads the base of %s at ticket %d", linkNames[p.who], b.ticket)
		fits := b.stored && !b.marker && b.ticket+1 >= p.of.tickets && b.deleted == p.of.deleted &&
			(b.marks == p.of.marks || t.addBlindly) && b.format == t.format(t.s)
		if !fits {
			t.compute()
			return
		}
		p.reading = linkReading{got: b.counts, format: b.format}
		p.step = adds
		return
	}
	a := t.row(t.token()).linkHead
	if t.say("reads the row of %s after the ticket", linkNames[t.token()]); t.addTrusts {
		a = p.own
	}
	if t.token() == p.who || t.counted(p.event, p.who, &p.of, &a) && !(a.covered && p.event == 0) {
		p.reading.got |= bitOf(p.event)
		p.step = stores
		return
	}
	t.compute()
}

// reader computes the profile of a token and stores it.
func (t *linkTurn) reader() {
	p, law := t.p, &t.s.law
	switch p.step {
	case begins:
		p.who, p.sure, p.law = p.known, law.sure[p.known], law.counts[p.known]
		p.of = t.row(p.who).linkHead
		t.say("reads the row of %s: %s", linkNames[p.who], p.of.cell)
		if t.compute(); t.listedFirst {
			for p.reading.left != 0 {
				p.step = readsRows
				t.read()
			}
			p.step = readsRow
		}
	case readsRow: // of rules.listedFirst
		p.of = t.row(p.who).linkHead
		t.say("reads the row of %s", linkNames[p.who])
		t.readOn()
	case readsRows, readsLog:
		t.read()
	case stores:
		if wrong := (p.reading.got ^ p.law) & p.sure; wrong != 0 && p.reading.format == t.format(t.s) && !p.of.out {
			t.bad = fmt.Sprintf("a reader counts the events %03b for %s, not %03b", p.reading.got, linkNames[p.who], p.law)
		}
		t.store()
		p.finish()
	}
}

// fold packs event 0 of a token.
func (t *linkTurn) fold() {
	p, row := t.p, t.row(t.p.token)
	switch p.step {
	case begins:
		p.own = t.draw(p.token, false)
		t.to(packs, "draws ticket %d of %s", p.own.tickets, linkNames[p.token])
		if p.own.covered || p.own.excludes(t.events[0].time) || t.deadAt(&p.own, t.events[0].time) {
			p.finish()
		}
	case packs:
		p.reading.got = t.s.log & 1
		t.to(writesBlock, "reads event 0: %d", p.reading.got)
	case writesBlock:
		t.s.block = 1 + p.reading.got
		t.to(commits, "writes its block")
	case commits:
		row.covered = row.covered || row.tickets == p.own.tickets
		t.say("commits if nobody drew a ticket")
		p.finish()
	}
}
