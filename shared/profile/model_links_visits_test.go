package profile_test

// namedCase is a case that TestModelOfLinks visits; in the campaign alone if it is large.
type namedCase struct {
	name string
	linkCase
	large bool
}

// linkCases are links, unlinkings, second known tokens, late events, folds, deletions, additions.
func linkCases() []namedCase {
	d0, d1, d2 := delivery(0), delivery(1), delivery(2)
	A, K := uint8(tokenA), uint8(tokenK)
	return []namedCase{
		{"link, read", loginEvents.unlinked(0, 0, d1, readOf(K)), false},
		{"link twice delivered", loginEvents.unlinked(1, 1, d1, d1), false},
		{"link, event, read", loginEvents.unlinked(0, 0, d1, d2, readOf(K)), true},
		{"event of A, event of K, read", eventOfKnown.linked(0, 0, d1, d2, readOf(K)), true},
		{"unlink, event, read", plainEvents.linked(0, 0, unlinkOf(K, 2), d1, readOf(K)), false},
		{"unlink twice, read", plainEvents.linked(1, 1, unlinkOf(K, 2), unlinkOf(K, 2), readOf(K)), true},
		{"link, unlink, redelivered", loginEvents.unlinked(1, 0, d1, after(0, unlinkOf(K, 3)), d1), true},
		{"unlink, link again, read", loginAgain.linked(0, 0, unlinkOf(K, 3), d2, readOf(K)), true},
		{"second user, event, read", secondLogin.linked(0, 0, d1, d2, readOf(K)), true},
		{"two users at once", twoLogins.unlinked(0, 0, d1, d2, readOf(K)), true},
		{"second user twice delivered", secondLogin.linked(1, 1, d1, d1), true},
		{"late event of a closed interval", lateOfClosed.sharedDevice(0, 0, d1, d2, readOf(K)), true},
		{"deletion of A, event, read", plainEvents.linked(0, 0, deletionOf(A, 9), d1, readOf(K)), false},
		{"deletion of A twice, read",
			plainEvents.linked(1, 1, deletionOf(A, 9), after(0, deletionOf(A, 9)), readOf(K)), false},
		{"deletion of K, event, reads",
			judged(plainEvents).linked(0, 0, deletionOf(K, 2), d1, readOf(K), readOf(A)), true},
		{"deletion of K twice, read",
			judged(plainEvents).linked(1, 0, deletionOf(K, 2), after(0, deletionOf(K, 2)), readOf(A)), false},
		{"deletion of K dies, link again", loginAgain.linked(1, 0, deletionOf(K, 2), d2, readOf(K)), true},
		{"link meets deletion of K", loginEvents.unlinked(0, 0, d1, deletionOf(K, 3), readOf(K)), true},
		{"link meets earlier deletion of K",
			loginEvents.unlinked(0, 0, d1, deletionOf(K, 2), readOf(K)), true},
		{"link meets deletion of A", loginEvents.unlinked(0, 0, d1, deletionOf(A, 9), readOf(K)), true},
		{"late event, read", plainEvents.linked(0, 0, d0, d1, readOf(K)).packed(), true},
		{"fold, event twice, read", plainEvents.linked(1, 0, foldOfA(), d0, d0, readOf(K)).unsent(), true},
		{"two tokens name each other", cycleOfTokens.unlinked(1, 1, d1, d2, d1), true},
		{"a chain", chainOfTokens.unlinked(1, 1, d1, d2, d1), true},
		{"unlink, sweep, link again", loginAgain.linked(0, 0, sweepOf(K), d2, unlinkOf(K, 3)), false},
		{"additions: events, read", adding(eventOfKnown).linked(0, 0, d1, d2, readOf(K)), true},
		{"additions: unlink, event, read",
			adding(plainEvents).linked(0, 0, unlinkOf(K, 2), d1, readOf(K)), false},
	}
}

// roundCases are the nightly round, more processes at once, the limit, write windows.
func roundCases() []namedCase {
	A, K, K2, P := uint8(tokenA), uint8(tokenK), uint8(tokenK2), uint8(tokenP)
	d0, d1, d2 := delivery(0), delivery(1), delivery(2)
	return []namedCase{
		{"switched on, link, read", loginAgain.switched(d1, d2, readOf(K)), false},
		{"unlink dies, night, event, read",
			plainEvents.linked(1, 0, unlinkOf(K, 2), nightOfA(), d1, readOf(K)), true},
		{"second user dies, night, event", secondLogin.linked(1, 0, d1, d2, nightOfA()), true},
		{"second user, unlink of the first, read",
			secondLogin.linked(0, 0, d1, unlinkOf(K, 3), readOf(K)), true},
		{"second user, deletion of the first, read",
			judged(secondLogin).linked(0, 0, d1, deletionOf(K, 2), readOf(K2)), true},
		{"second user, deletion of A, read", secondLogin.linked(0, 0, d1, deletionOf(A, 9), readOf(K)), true},
		{"unlink, deletion of K, link again, read",
			loginAgain.linked(0, 0, unlinkOf(K, 2), deletionOf(K, 2), d2, readOf(K)), true},
		{"unlink, sweep, link again twice", loginAgain.linked(1, 1, unlinkOf(K, 2), sweepOf(K), d2, d2), true},
		{"deletion of K twice, sweep, read",
			judged(plainEvents).linked(1, 0, deletionOf(K, 2), sweepOf(K), after(0, deletionOf(K, 2)), readOf(A)), true},
		{"deletion of K dies, link again twice", loginAgain.linked(1, 1, deletionOf(K, 2), d2, d2), true},
		{"additions: link twice, event, read",
			adding(loginEvents).unlinked(1, 0, d1, d1, d2, readOf(K)), true},
		{"additions: unlink, two events, read",
			adding(plainEvents).linked(0, 0, unlinkOf(K, 2), d1, d2, readOf(K)), true},
		{"fold, unlink, read",
			plainEvents.linked(0, 0, foldOfA(), d0, unlinkOf(K, 2), readOf(K)).unsent(), true},
		{"fold, link, read", loginEvents.unlinked(0, 0, foldOfA(), d0, d1, readOf(K)).unsent(), true},
		{"fold, deletion of K, read",
			judged(plainEvents).linked(0, 0, foldOfA(), d0, deletionOf(K, 2), readOf(A)), true},
		{"two users, deaths, lost answers", twoLogins.unlinked(1, 1, d1, d2, d2), true},
		{"two users, event, read", twoLogins.unlinked(0, 0, d0, d1, d2, readOf(K)), true},
		{"link, deletion of A twice, read",
			loginEvents.unlinked(1, 0, d1, deletionOf(A, 9), after(1, deletionOf(A, 9)), readOf(K)), true},
		{"link, deletion of K twice, read",
			loginEvents.unlinked(1, 0, d1, deletionOf(K, 2), after(1, deletionOf(K, 2)), readOf(K)), true},
		{"two events, unlink, two reads",
			eventOfKnown.linked(0, 0, d1, d2, unlinkOf(K, 2), readOf(K), readOf(K)), true},
		{"limit: two tokens, read", limitedTokens.unlinked(0, 0, d1, d2, readOf(P)), true},
		{"limit: two tokens of one time, read", sameTime.unlinked(0, 0, d1, d2, readOf(P)), true},
		{"limit: two tokens twice", limitedTokens.unlinked(1, 1, d1, d2, d2), true},
		{"limit: event of the closed one, read", oustedToken.linkedTo(P, 0, 0, d1, d2, readOf(P)), true},
		{"limit: event of the closed one twice", oustedToken.linkedTo(P, 1, 0, d1, d2, d2), true},
		{"window: link, event, read", windowed(loginEvents).unlinked(0, 0, d1, d2, readOf(K)), true},
		{"window: unlink, event, two reads",
			windowed(plainEvents).linked(1, 0, unlinkOf(K, 2), d1, readOf(K), readOf(K)), true},
	}
}

// exclusionCases are deletions of both tokens.
func exclusionCases() []namedCase {
	d1, d2 := delivery(1), delivery(2)
	A, K := uint8(tokenA), uint8(tokenK)
	return []namedCase{
		{"deletion of A, event, deletion of K",
			judged(plainEvents).linked(1, 1, deletionOf(A, 9), after(0, d2), after(1, secondDeletionOf(K, 4)),
				after(2, secondDeletionOf(K, 4))), false},
		{"deletions of both at once",
			judged(plainEvents).linked(0, 0, deletionOf(A, 9), secondDeletionOf(K, 4), d2, readOf(A)), true},
		{"deletion of A, other user, deletion of K",
			judged(otherAgain).linked(0, 0, deletionOf(A, 9), after(0, d2), secondDeletionOf(K, 4), nightOfA()), true},
		{"deletion of K dies, event, another one",
			judged(plainEvents).linked(1, 0, deletionOf(K, 2), after(0, d1), after(1, secondDeletionOf(K, 4)),
				readOf(A)), false},
		{"deletion of K dies, sweep, another one",
			judged(plainEvents).linked(1, 1, deletionOf(K, 2), after(0, d1), sweepOf(K), after(1,
				secondDeletionOf(K, 4))), true},
		{"naming event meets deletion of K",
			judged(loginEvents).linked(0, 0, d1, deletionOf(K, 3), readOf(A)), true},
		{"naming event twice, deletion of K",
			judged(loginEvents).unlinked(1, 0, d1, deletionOf(K, 3), d1), true},
	}
}

// optOutCases are opt-outs and opt-ins.
func optOutCases() []namedCase {
	A, K := uint8(tokenA), uint8(tokenK)
	d0, d1, d2 := delivery(0), delivery(1), delivery(2)
	twice := func(p linkProc) linkProc { return after(0, p) }
	return []namedCase{
		{"opt-out of A, event, read", plainEvents.linked(0, 0, ownOptOut(), d1, readOf(K)), false},
		{"opt-out of A twice, event, read",
			judged(loginAgain).linked(1, 1, ownOptOut(), twice(ownOptOut()), d2), true},
		{"opt-out of A, opt-in twice, link",
			judged(loginAgain).linked(1, 0, ownOptOut(), twice(optInOf(A)), twice(optInOf(A)), d2), true},
		{"opt-out of K, event, read", judged(plainEvents).linked(0, 0, optOutOf(K), d1, readOf(A)), true},
		{"opt-out of K twice, event",
			judged(plainEvents).linked(1, 1, optOutOf(K), twice(optOutOf(K)), d1), true},
		{"opt-out of K, link", judged(loginEvents).unlinked(0, 0, optOutOf(K), d1, readOf(A)), true},
		{"opt-out of K, link again twice", judged(loginAgain).linked(1, 0, optOutOf(K), d2, d2), true},
		{"opt-out of K, second user", judged(secondLogin).linked(0, 0, optOutOf(K), d1), false},
		{"opt-out of K, second user twice", judged(secondLogin).linked(1, 0, optOutOf(K), d1, d1), true},
		{"opt-out of K, shared device, event",
			judged(plainEvents).sharedDevice(1, 1, optOutOf(K), twice(optOutOf(K)), d2), true},
		{"opt-out of K meets unlink", judged(plainEvents).linked(0, 0, optOutOf(K), unlinkOf(K, 3), d1), true},
		{"opt-out and opt-in of K, event",
			judged(plainEvents).linked(0, 0, optOutOf(K), twice(optInOf(K)), d2), false},
		{"opt-out and opt-in of K twice, event",
			judged(plainEvents).linked(1, 1, optOutOf(K), twice(optInOf(K)), after(1, optInOf(K)), d2), true},
		{"opt-out meets opt-in of K, event",
			judged(plainEvents).linked(0, 0, optOutOf(K), optInOf(K), d2), true},
		{"opt-outs of both, opt-in of K",
			judged(plainEvents).linked(0, 0, ownOptOut(), optOutOf(K), after(1, optInOf(K))), true},
		{"opt-outs of both, opt-in of K, crash",
			judged(plainEvents).linked(1, 0, ownOptOut(), twice(ownOptOut()), optOutOf(K), after(2, optInOf(K))), true},
		{"opt-out and deletion of K",
			judged(plainEvents).linked(1, 0, optOutOf(K), twice(secondDeletionOf(K, 4)), after(1,
				secondDeletionOf(K, 4))), false},
		{"deletion of A, opt-out of K",
			judged(plainEvents).linked(0, 0, deletionOf(A, 9), optOutOf(K), d2, readOf(A)), true},
		{"naming event while K is out, twice, read",
			judged(loginEvents).unlinked(1, 1, d1, d1, readOf(A)).excludedBefore(K, 1, true), true},
		{"naming event meets opt-in",
			judged(loginEvents).unlinked(1, 0, optInOf(K), d1, d1, readOf(A)).excludedBefore(K, 1, true), true},
		{"naming event of a token linked to another",
			judged(loginEvents).linkedTo(tokenK2, 1, 0, d1, d1, readOf(tokenK2)).excludedBefore(K, 1, true), false},
		{"late naming event while K is out", judged(twoLogins).unlinked(0, 0, d2, d1).excludedBefore(K, 1, true), false},
		{"naming event, two users, deletion of the first",
			judged(twoLogins).unlinked(0, 0, d1, d2, deletionOf(K, 4), readOf(tokenK2)), true},
		{"naming event, fold, read",
			judged(firstNames).unlinked(1, 0, d0, d0, foldOfA(), readOf(A)).unsent().excludedBefore(K, 1, true), true},
	}
}

// walkedCases are too large to visit.
func walkedCases() []namedCase {
	d0, d1, d2 := delivery(0), delivery(1), delivery(2)
	A, K, K2, P := uint8(tokenA), uint8(tokenK), uint8(tokenK2), uint8(tokenP)
	full := func(c linkCase) linkCase { return judged(adding(c)) }
	return []namedCase{
		{"two users, unlink, reads",
			full(twoLogins).unlinked(1, 1, d1, d2, d1, unlinkOf(K, 3), readOf(K), readOf(K2)), true},
		{"link, event, deletion of K twice, night",
			full(loginAgain).linked(2, 1, d2, d1, deletionOf(K, 2), after(2, deletionOf(K, 2)), nightOfA(), readOf(K)), true},
		{"link, deletion of A twice, unlink",
			full(loginAgain).linked(2, 1, d2, d2, deletionOf(A, 9), after(2, deletionOf(A, 9)), unlinkOf(K, 2),
				readOf(K)), true},
		{"fold, late event, second user, deletion",
			full(twoLogins).unlinked(1, 1, foldOfA(), d0, d1, d2, deletionOf(K, 3), readOf(K)).unsent(), true},
		{"unlink, sweep, link again, event, night",
			adding(loginAgain).linked(1, 1, unlinkOf(K, 2), sweepOf(K), d2, d1, nightOfA(), readOf(K)), true},
		{"limit: three messages, night",
			oustedToken.linkedTo(P, 1, 1, d1, d2, d2, nightOfA(), readOf(P), sweepOf(P)), true},
		{"shared device, late events, deletion",
			full(lateOfClosed).sharedDevice(1, 1, d1, d2, unlinkOf(K, 2), deletionOf(K2, 3), readOf(K), readOf(K2)), true},
		{"deletions of both, events, night, sweep",
			full(loginAgain).linked(2, 1, deletionOf(A, 9), d2, secondDeletionOf(K, 4), after(2,
				secondDeletionOf(K, 4)), nightOfA(), sweepOf(K)), true},
		{"opt-out and opt-in of K, logins",
			full(twoLogins).unlinked(1, 1, d1, d2, optOutOf(K), after(2, optInOf(K)), d1, readOf(A)), true},
		{"opt-outs of both, opt-in, events",
			full(loginAgain).linked(2, 1, ownOptOut(), optOutOf(K), after(1, optInOf(K)), d2, d1, readOf(A)), true},
		{"opt-out of K, fold, naming event, night",
			full(firstNames).unlinked(1, 1, d0, d0, foldOfA(), optOutOf(K), nightOfA(), readOf(A)).unsent(), true},
	}
}
