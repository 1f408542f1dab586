package profile_test

// linkRules are naive forms of the protocol of links. Each test of a hole takes one.
type linkRules struct {
	linksBeforeLog   bool // a message reads the links before it logs its event
	ticketRow        bool // it computes the known token by the row that its ticket has read
	listedFirst      bool // a reader reads the rows of the list before that of the known token
	knownFirst       bool // a message draws the known token's ticket before its own
	noKnownTicket    bool // it draws no ticket of the known token
	openOnly         bool // it draws one for the open link alone
	unlinkMarksFirst bool // an unlinking marks the known token, and then changes the entry
	unlinkPlain      bool // it draws a ticket, and does not mark
	closeUnmarked    bool // the first known token is not marked when a second one is named
	othersUnmarked   bool // who finds a pending entry of another process marks nobody
	confirmFirst     bool // an entry is confirmed before the mark
	confirmBlind     bool // what is confirmed does not name the tombstone
	confirmAll       bool // who marks a known token confirms dead entries, too
	entryFirst       bool // the entry comes before the list, and no ticket looks at the list
	listUnseen       bool // no ticket looks at the list
	sweepByList      bool // the sweep changes a list on condition of the list alone
	sweepPending     bool // it takes off tokens with pending entries
	truthInKnown     bool // the intervals lie in the rows of the known tokens
	overlaps         bool // a lookback goes beyond the end of an earlier entry
	voidRemoved      bool // an unlinking removes the entry
	clockFirst       bool // it reads the clock before its ticket
	knownOwnOnly     bool // the tombstone of a known token covers its own events only
	knownEndsNothing bool // it ends no entries
	oldEntryLinks    bool // an entry from before it passes for a link
	deleteUnmarked   bool // a deletion of an anonymous token marks nobody
	deleteEmpties    bool // it empties the entries, and then marks
	deadUnmarked     bool // a deletion of a known token does not mark the anonymous one
	deadRemoved      bool // dead entries are removed after the purge
	rolesRead        bool // roles are looked at, and not compared
	limitUnseen      bool // no ticket looks whom the limit has closed
	limitForgets     bool // the list forgets whom it has closed
	addTrusts        bool // an addition takes the row of the first ticket
	switchAtOnce     bool // identity is switched on at once

	// Harmless.
	openPlain  bool // a new link draws a plain ticket of the known token, and computes
	addBlindly bool // an addition takes a base of other marks

	// Deletions of both tokens.
	endedDies        bool // an entry is made dead although the tombstone of its own row has ended it
	deadByRow        bool // ... or its tombstone frees what is dead (harmless)
	deleteByClock    bool // a deletion of an anonymous token does not depend on its ticket
	earlierForgotten bool // a deletion does not finish an earlier one first

	// Opt-outs.
	entriesUnseen      bool // the opt-out of a listed token depends on its ticket alone
	outAlways          bool // it takes along a token that others use
	outStays           bool // an opt-in leaves out whom the opt-out has taken along
	optsAllIn          bool // it opts in who has opted out themselves
	changeBlindly      bool // a change does not depend on its ticket
	namingKept         bool // an event that names a token that is out stays
	refusedUnread      bool // the row of a token is not read for evidence that is refused anyway
	dropByRead         bool // it is dropped because of a row that was read without a ticket
	dropUnmarked       bool // its own token is not marked when it is dropped
	dropOthersUnmarked bool // ... nor are those that it is linked to
	dropPacked         bool // ... and a block that holds it stays in use
}
