package profile_test

import (
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
)

// linkHole is a naive form, and a case in which it fails. The campaign alone visits it if it has
// many states.
type linkHole struct {
	name string
	linkRules
	linkCase
	large bool
}

// linkHoles are forms of links, and of unlinking.
func linkHoles() []linkHole {
	K := uint8(tokenK)
	d0, d1, d2 := delivery(0), delivery(1), delivery(2)
	return []linkHole{
		{"links are read before the log", linkRules{linksBeforeLog: true},
			loginEvents.unlinked(0, 0, d1, d2), false},
		{"the row of the first ticket", linkRules{ticketRow: true},
			plainEvents.linked(0, 0, unlinkOf(K, 2), d1), false},
		{"rows of the list first", linkRules{listedFirst: true},
			plainEvents.linked(0, 0, unlinkOf(K, 2), readOf(K)), false},
		{"no ticket of the known token", linkRules{noKnownTicket: true}, plainEvents.linked(0, 0, d1), false},
		{"the known token's ticket first", linkRules{knownFirst: true},
			plainEvents.linked(0, 0, d0, readOf(K)).packed(), false},
		{"the open link only", linkRules{openOnly: true}, lateOfClosed.sharedDevice(0, 0, d1), false},
		{"an unlinking marks first", linkRules{unlinkMarksFirst: true},
			plainEvents.linked(0, 0, unlinkOf(K, 2), readOf(K)), false},
		{"an unlinking does not mark", linkRules{unlinkPlain: true},
			plainEvents.linked(0, 0, unlinkOf(K, 2)), false},
		{"nobody marks for another", linkRules{othersUnmarked: true},
			secondLogin.linked(1, 0, d2, d1, d1), true},
		{"the first known token is not marked", linkRules{closeUnmarked: true},
			secondLogin.linked(0, 0, d1, d2), false},
		{"confirmed before the mark", linkRules{confirmFirst: true},
			secondLogin.linked(1, 0, d2, d1, d1), true},
		{"the entry before the list", linkRules{entryFirst: true}, loginEvents.unlinked(1, 0, d1, d1), false},
		{"a sweep on condition of the list", linkRules{sweepByList: true},
			loginAgain.linked(0, 0, unlinkOf(K, 2), sweepOf(K), d2, readOf(K)), true},
		{"no look at the list", linkRules{listUnseen: true},
			loginAgain.linked(0, 0, unlinkOf(K, 2), sweepOf(K), d2), false},
		{"a sweep of pending entries", linkRules{sweepPending: true},
			judged(plainEvents).linked(1, 0, deletionOf(K, 2), after(0, sweepOf(K)), after(1, deletionOf(K, 2))), false},
		{"an unlinked entry is removed", linkRules{voidRemoved: true},
			loginEvents.unlinked(0, 0, d1, after(0, unlinkOf(K, 3)), d1), false},
	}
}

// deletionHoles are forms of deletions, and others that came to light with them.
func deletionHoles() []linkHole {
	A, K := uint8(tokenA), uint8(tokenK)
	d0, d1, d2 := delivery(0), delivery(1), delivery(2)
	return []linkHole{
		{"a deletion of A marks nobody", linkRules{deleteUnmarked: true},
			plainEvents.linked(0, 0, deletionOf(A, 2)), false},
		{"confirmed without the tombstone", linkRules{confirmBlind: true},
			plainEvents.linked(0, 0, deletionOf(A, 2)), false},
		{"a deletion of A empties the links", linkRules{deleteEmpties: true},
			plainEvents.linked(1, 0, deletionOf(A, 2), after(0, deletionOf(A, 2))), false},
		{"a tombstone covers own events only", linkRules{knownOwnOnly: true},
			plainEvents.linked(0, 0, deletionOf(K, 2), readOf(K)), false},
		{"a tombstone ends no entries", linkRules{knownEndsNothing: true},
			plainEvents.linked(0, 0, deletionOf(K, 2), d1, readOf(K)), false},
		{"an old entry passes for a link", linkRules{oldEntryLinks: true},
			loginAgain.linked(1, 0, deletionOf(K, 2), d2), false},
		{"a deletion of K does not mark A", linkRules{deadUnmarked: true},
			judged(plainEvents).linked(0, 0, deletionOf(K, 2)), false},
		{"dead entries are removed", linkRules{deadRemoved: true},
			judged(plainEvents).linked(0, 0, d0, deletionOf(K, 2), readOf(A)), false},
		{"an addition trusts the first ticket", linkRules{addTrusts: true},
			adding(plainEvents).linked(0, 0, unlinkOf(K, 2), d1, readOf(K)), false},
		{"lookback beyond an end", linkRules{overlaps: true}, secondLogin.linked(0, 0, d1), false},
		{"roles are looked at", linkRules{rolesRead: true}, cycleOfTokens.unlinked(0, 0, d1, d2), false},
		{"switched on at once", linkRules{switchAtOnce: true}, loginAgain.switched(d1, d2), false},
		{"the clock before the ticket", linkRules{clockFirst: true},
			loginAgain.linked(0, 0, unlinkOf(K, 3), d2, d2), false},
		{"intervals in rows of known tokens", linkRules{truthInKnown: true},
			twoLogins.unlinked(1, 0, d1, d2, after(0, d1), readOf(K)), true},
		{"dead entries are confirmed by any", linkRules{confirmAll: true},
			judged(plainEvents).linked(0, 1, deletionOf(K, 2), d1, d0), false},
		{"no ticket looks at the limit", linkRules{limitUnseen: true}, sameTime.unlinked(0, 0, d1, d2), false},
		{"the limit forgets", linkRules{limitForgets: true}, sameTime.unlinked(0, 0, d1, d2), false},

		{"an ended entry is made dead", linkRules{endedDies: true},
			judged(loginEvents).linked(0, 0, deletionOf(A, 2), after(0, d2), after(1, secondDeletionOf(K, 4))), false},
		{"a deletion of A does not depend on its ticket", linkRules{deleteByClock: true},
			judged(plainEvents).linked(0, 0, d1, secondDeletionOf(K, 4), deletionOf(A, 2)), false},
		{"an earlier deletion is forgotten", linkRules{earlierForgotten: true},
			judged(plainEvents).linked(1, 0, deletionOf(K, 2), after(0, d1), after(1, secondDeletionOf(K, 4))), false},
	}
}

// optOutHoles are forms of opt-outs.
func optOutHoles() []linkHole {
	A, K := uint8(tokenA), uint8(tokenK)
	d0, d1, d2 := delivery(0), delivery(1), delivery(2)
	return []linkHole{
		{"an opt-out takes along by the ticket alone", linkRules{entriesUnseen: true},
			secondLogin.linked(0, 0, optOutOf(K), d1), false},
		{"an opt-out takes along tokens of others", linkRules{outAlways: true},
			plainEvents.sharedDevice(0, 0, optOutOf(K)), false},
		{"an opt-in leaves others out", linkRules{outStays: true},
			plainEvents.linked(0, 0, optOutOf(K), after(0, optInOf(K))), false},
		{"an opt-in brings in all", linkRules{optsAllIn: true},
			plainEvents.linked(0, 0, ownOptOut(), after(0, optInOf(K))), false},
		{"a change does not depend on its ticket", linkRules{changeBlindly: true},
			judged(loginEvents).unlinked(0, 0, optInOf(K), d1, d1).excludedBefore(K, 1, true), false},
		{"a naming event stays", linkRules{namingKept: true},
			judged(loginEvents).unlinked(0, 0, d1).excludedBefore(K, 2, true), false},
		{"a naming event is dropped by a read", linkRules{dropByRead: true},
			judged(loginEvents).unlinked(0, 0, optInOf(K), d1, d1).excludedBefore(K, 1, true), false},
		{"refused evidence stays", linkRules{refusedUnread: true},
			judged(twoLogins).unlinked(0, 0, d2, after(0, d1)).excludedBefore(K, 1, true), false},
		{"a drop does not mark", linkRules{dropUnmarked: true},
			judged(loginEvents).unlinked(0, 0, d1, readOf(A)).excludedBefore(K, 2, true), false},
		{"a drop does not mark another known token", linkRules{dropOthersUnmarked: true},
			judged(loginEvents).linkedTo(tokenK2, 0, 0, d1, readOf(tokenK2)).excludedBefore(K, 1, true), false},
		{"a drop leaves the block", linkRules{dropPacked: true},
			judged(firstNames).unlinked(0, 0, d0, foldOfA(), readOf(A)).unsent().excludedBefore(K, 1, true), false},
	}

}

func TestModelOfLinksFindsHoles(t *testing.T) {
	if race.On {
		t.Skip("the model is one goroutine, and its states would take gigabytes under the race detector")
	}
	for _, h := range slices.Concat(linkHoles(), deletionHoles(), optOutHoles()) {
		if h.large && !*linksCampaign {
			continue
		}
		m := &linkModel{linkCase: h.linkCase, linkRules: h.linkRules}
		states, way, _ := m.search()
		if way == "" {
			t.Errorf("%s: no fault in %d states", h.name, states)
		}
		t.Log(h.name, states, way)
	}
}
