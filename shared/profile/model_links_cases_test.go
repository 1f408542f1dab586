package profile_test

// The tokens of the cases. With a limit, B is a second anonymous token, and P the known one.
const (
	tokenA, tokenK, tokenK2 = 0, 1, 2
	tokenB, tokenP          = 1, 2
)

func names(token uint8) uint8 { return token + 1 }

// linkEventsOf returns the events of most cases: event 0 of A at 1, and two more.
func linkEventsOf(second, third linkEvent) linkCase {
	return linkCase{events: [linkEvents]linkEvent{{token: tokenA, time: 1}, second, third}, lookback: 9, knownBy: 1}
}

var (
	plainEvents   = linkEventsOf(linkEvent{tokenA, 2, 0}, linkEvent{tokenA, 3, 0})
	loginEvents   = linkEventsOf(linkEvent{tokenA, 2, names(tokenK)}, linkEvent{tokenA, 3, 0})
	twoLogins     = linkEventsOf(linkEvent{tokenA, 2, names(tokenK)}, linkEvent{tokenA, 3, names(tokenK2)})
	secondLogin   = linkEventsOf(linkEvent{tokenA, 2, names(tokenK2)}, linkEvent{tokenA, 3, 0})
	eventOfKnown  = linkEventsOf(linkEvent{tokenA, 2, 0}, linkEvent{tokenK, 3, 0})
	loginAgain    = linkEventsOf(linkEvent{tokenA, 2, 0}, linkEvent{tokenA, 3, names(tokenK)})
	otherAgain    = linkEventsOf(linkEvent{tokenA, 2, 0}, linkEvent{tokenA, 3, names(tokenK2)})
	lateOfClosed  = linkEventsOf(linkEvent{tokenA, 1, 0}, linkEvent{tokenA, 3, 0})
	cycleOfTokens = allRoles(linkEventsOf(linkEvent{tokenA, 2, names(tokenK)}, linkEvent{tokenK, 3, names(tokenA)}))
	chainOfTokens = allRoles(linkEventsOf(linkEvent{tokenA, 2, names(tokenK)}, linkEvent{tokenK, 3, names(tokenK2)}))

	limitedTokens = limitOne(linkEventsOf(linkEvent{tokenA, 2, names(tokenP)}, linkEvent{tokenB, 3, names(tokenP)}))
	sameTime      = limitOne(linkEventsOf(linkEvent{tokenA, 2, names(tokenP)}, linkEvent{tokenB, 2, names(tokenP)}))
	oustedToken   = limitOne(linkEventsOf(linkEvent{tokenA, 4, 0}, linkEvent{tokenB, 3, names(tokenP)}))
	firstNames    = func() linkCase {
		c := plainEvents
		c.events[0].names = names(tokenK)
		return c
	}()
)

func allRoles(c linkCase) linkCase { c.knownBy = linkTokens; return c }
func limitOne(c linkCase) linkCase { c.limit, c.knownBy = 1, 2; return c }
func judged(c linkCase) linkCase   { c.own = true; return c } // profiles of anonymous tokens, too
func adding(c linkCase) linkCase   { c.adds = true; return c }
func windowed(c linkCase) linkCase { c.window = true; return c }

func delivery(event uint8) linkProc { return linkProc{kind: linkMessage, event: event} }
func readOf(who uint8) linkProc     { return linkProc{kind: linkReader, known: who, op: 7} }
func unlinkOf(who, until uint8) linkProc {
	return linkProc{kind: linkUnlinker, token: tokenA, known: who, clock: until, op: 3}
}
func deletionOf(who, until uint8) linkProc {
	return linkProc{kind: linkDeleter, token: who, clock: until, op: 4}
}
func secondDeletionOf(who, until uint8) linkProc {
	return linkProc{kind: linkDeleter, token: who, clock: until, op: 5}
}
func optOutOf(who uint8) linkProc { return linkProc{kind: linkChanger, token: who, out: true, op: 6} }
func ownOptOut() linkProc         { return linkProc{kind: linkChanger, token: tokenA, out: true, op: 3} }
func optInOf(who uint8) linkProc  { return linkProc{kind: linkChanger, token: who, op: 7} }
func foldOfA() linkProc           { return linkProc{kind: linkFolder, token: tokenA, op: 7} }
func nightOfA() linkProc          { return linkProc{kind: linkNightly, token: tokenA, op: 7} }
func sweepOf(who uint8) linkProc {
	return linkProc{kind: linkSweeper, token: tokenA, known: who, op: 7}
}
func after(n uint8, p linkProc) linkProc { p.after = n + 1; return p }

// unlinked begins with event 0 of A, acknowledged, and no links. crashes and lost answers may
// happen.
func (c linkCase) unlinked(crashes, lost uint8, procs ...linkProc) linkCase {
	s := linkState{phase: 2, crashes: crashes, lost: lost, log: 1}
	s.law.acked = 1
	for who := range s.rows {
		s.rows[who].tickets = 1
		s.rows[who].put(linkProfile{ticket: 1, format: 2})
	}
	s.rows[tokenA].profile.counts = 1
	copy(s.procs[:], procs)
	c.start = s
	return c
}

// linkedTo begins with an open link of A to a known token, from before event 0.
func (c linkCase) linkedTo(who, crashes, lost uint8, procs ...linkProc) linkCase {
	c = c.unlinked(crashes, lost, procs...)
	rows := &c.start.rows
	rows[tokenA].cell.role = anonymous
	rows[tokenA].cell.entries[0] = linkEntry{known: who + 1, to: openEnd, at: 1, confirmed: 1}
	rows[who].cell = linkCell{role: known, list: bitOf(tokenA)}
	rows[who].profile.counts = 1
	return c
}

func (c linkCase) linked(crashes, lost uint8, procs ...linkProc) linkCase {
	return c.linkedTo(tokenK, crashes, lost, procs...)
}

// sharedDevice is linked, with an open link to K2 that has closed that to K at 2.
func (c linkCase) sharedDevice(crashes, lost uint8, procs ...linkProc) linkCase {
	c = c.linked(crashes, lost, procs...)
	c.start.rows[tokenA].cell.entries[0].to = 2
	c.start.rows[tokenA].cell.entries[1] = linkEntry{known: names(tokenK2), since: 2, to: openEnd, at: 2, confirmed: 1}
	c.start.rows[tokenK2].cell = linkCell{role: known, list: bitOf(tokenA)}
	return c
}

// unsent begins without event 0; packed with a block over its place, too.
func (c linkCase) unsent() linkCase {
	c.start.log, c.start.law.acked = 0, 0
	for who := range c.start.rows {
		c.start.rows[who].profile.counts = 0
	}
	return c
}

func (c linkCase) packed() linkCase {
	c = c.unsent()
	c.start.block = 1
	c.start.rows[tokenA].covered = true
	return c
}

// switched begins with identity off. Process 0 may have an old configuration.
func (c linkCase) switched(procs ...linkProc) linkCase {
	procs[0].stale = true
	c = c.unlinked(0, 0, procs...)
	c.start.phase = 0
	for who := range c.start.rows {
		c.start.rows[who].profile.format = 1
	}
	c.start.procs[linkProcs-1] = linkProc{kind: linkSwitcher, op: 5}
	return c
}

// before is a case in which a row has a tombstone, or an opt-out, of earlier.
func (c linkCase) excludedBefore(who, until uint8, out bool) linkCase {
	r := &c.start.rows[who]
	r.deleted, r.out = until, out
	r.profile.deleted, r.profile.counts = until, 0
	return c
}
