package profile_test

import (
	"flag"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
)

// consentsCampaign makes the cases of TestModelOfConsents larger: go test ./shared/profile -run
// TestModelOfConsents -consents-campaign. They take minutes.
var consentsCampaign = flag.Bool("consents-campaign", false, "TestModelOfConsents visits larger cases")

var (
	oneThenBoth = []int8{0, 1}
	twice       = []int8{0, 0}
	ofFirst     = [2]bool{true, false} // the second purpose must be granted
)

func TestModelOfConsents(t *testing.T) {
	if race.On {
		t.Skip("the model is one goroutine, and its states would take gigabytes under the race detector")
	}
	cases, all := map[string]consentCase{
		"withdrawn and granted": {kinds: []int8{0}, sends: twice, ops: [2][]consentOp{{withdrawFirst, grantFirst}},
			granted: ofFirst, ticks: 2},
		"events ahead": {kinds: []int8{0}, sends: twice, ops: [2][]consentOp{{withdrawFirst, grantFirst}},
			granted: ofFirst, ticks: 2, ahead: 2},
		"a crash": {kinds: []int8{0}, sends: []int8{0}, ops: [2][]consentOp{{withdrawFirst, grantFirst}},
			granted: ofFirst, ticks: 2, crashes: 1},
		"granted first": {kinds: []int8{1}, sends: []int8{0}, ops: [2][]consentOp{{grantSecond}},
			ticks: 2, folds: 1, crashes: 1},
		"a fold": {kinds: []int8{0, 1}, sends: oneThenBoth, ops: [2][]consentOp{{withdrawFirst}},
			granted: [2]bool{true, true}, ticks: 1, folds: 1},
		"a fold and a reader": {kinds: []int8{0}, sends: []int8{0}, ops: [2][]consentOp{{withdrawFirst}},
			granted: [2]bool{true, true}, ticks: 1, folds: 1, reads: 1},
		"two at once": {kinds: []int8{1}, sends: []int8{0}, ops: [2][]consentOp{{withdrawFirst}, {withdrawSecond}},
			granted: [2]bool{true, true}, ticks: 1},
		"forgotten": {kinds: []int8{1}, sends: []int8{0}, ops: [2][]consentOp{{withdrawFirst, forgetBoth}}, granted: ofFirst,
			ticks: 2},
		"an opt-out beside it": {kinds: []int8{2}, sends: []int8{0},
			ops: [2][]consentOp{{withdrawSecond}, {optOutOfKind2, optIn}}, granted: [2]bool{true, true}, ticks: 1},
		"a deletion beside it": {kinds: []int8{0}, sends: []int8{0}, ops: [2][]consentOp{{withdrawFirst, grantFirst}, {deletes}},
			granted: ofFirst, ticks: 1},
		"packed and added": {kinds: []int8{0, 1}, sends: oneThenBoth, ops: [2][]consentOp{{withdrawFirst}},
			granted: [2]bool{true, true}, ticks: 1, packs: true, adds: true, reads: 1},
	}, 0
	if *consentsCampaign {
		cases = map[string]consentCase{
			"withdrawn and granted": {kinds: []int8{0, 1}, sends: []int8{0, 1, 0},
				ops: [2][]consentOp{{withdrawFirst, grantFirst}}, granted: ofFirst, ticks: 3, crashes: 1},
			"granted and withdrawn": {kinds: []int8{2, 1}, sends: []int8{0, 1}, ops: [2][]consentOp{{grantSecond, withdrawSecond}},
				granted: ofFirst, ticks: 3, folds: 1, reads: 1, crashes: 1},
			"two at once": {kinds: []int8{1, 0}, sends: []int8{0, 1}, ops: [2][]consentOp{{withdrawFirst, grantFirst}, {withdrawSecond}},
				granted: [2]bool{true, true}, ticks: 2, folds: 1, crashes: 1},
			"an opt-out beside it": {kinds: []int8{2, 1}, sends: []int8{0, 1},
				ops: [2][]consentOp{{withdrawSecond, grantSecond}, {optOutOfKind2, optIn}}, granted: [2]bool{true, true}, ticks: 2},
			"a deletion beside it": {kinds: []int8{0, 1}, sends: []int8{0, 1, 0},
				ops: [2][]consentOp{{withdrawFirst, grantFirst}, {deletes}}, granted: ofFirst, ticks: 2},
			"all": {kinds: []int8{0, 1}, sends: oneThenBoth, ops: [2][]consentOp{{withdrawFirst, forgetBoth}},
				granted: [2]bool{true, true}, ticks: 3, folds: 1, reads: 1, packs: true, adds: true, crashes: 1},
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := &consentModel{consentCase: c}
			states, fault := m.run()
			all += states
			t.Log(states, "states")
			if fault != "" {
				t.Error(fault)
			}
		})
	}
	t.Log(all, "states")
}

func TestModelOfConsentsFindsHoles(t *testing.T) {
	if race.On {
		t.Skip("the model is one goroutine, and its states would take gigabytes under the race detector")
	}
	both := [2]bool{true, true}
	again := consentCase{kinds: []int8{0}, sends: twice, ops: [2][]consentOp{{withdrawFirst, grantFirst}}, granted: ofFirst, ticks: 3}
	ahead := again
	ahead.ahead = 2
	folds := consentCase{kinds: []int8{0}, sends: twice, ops: [2][]consentOp{{withdrawFirst}}, granted: ofFirst, ticks: 2, folds: 1, reads: 1}
	dies := consentCase{kinds: []int8{0}, sends: []int8{0}, ops: [2][]consentOp{{withdrawFirst}}, granted: both, ticks: 1, reads: 1, packs: true, crashes: 1}
	added := consentCase{kinds: []int8{0, 2}, sends: []int8{0, 1}, ops: [2][]consentOp{{withdrawFirst}}, granted: both, ticks: 1, reads: 1, adds: true}
	deleted := consentCase{kinds: []int8{0}, sends: []int8{0}, ops: [2][]consentOp{{withdrawSecond}, {deletes}}, granted: both, ticks: 1}
	for name, c := range map[string]struct {
		consentCase
		consentRules
	}{
		"the clock comes before the ticket":         {again, consentRules{clockFirst: true}},
		"no condition":                              {again, consentRules{noCondition: true}},
		"a grant keeps since":                       {again, consentRules{keepsSince: true}},
		"no mark":                                   {folds, consentRules{noMark: true}},
		"the manifest comes later":                  {folds, consentRules{manifestLater: true}},
		"no second ticket":                          {dies, consentRules{noSecondTicket: true}},
		"a change that died is not finished":        {dies, consentRules{notFinished: true}},
		"a change writes the tombstone of before":   {deleted, consentRules{otherCell: true}},
		"the purge comes first":                     {again, consentRules{purgeFirst: true}},
		"the purge draws no ticket":                 {ahead, consentRules{purgeNoTicket: true}},
		"the purge drops blindly":                   {ahead, consentRules{purgeBlindly: true}},
		"a writer drops blindly":                    {ahead, consentRules{dropBlindly: true}},
		"a writer drops nothing":                    {again, consentRules{keepsRows: true}},
		"readers take all":                          {again, consentRules{readsAll: true}},
		"folds take all":                            {folds, consentRules{foldsAll: true}},
		"an addition looks at no mark":              {added, consentRules{addsOverChanges: true}},
		"a writer judges by the row before its log": {again, consentRules{judgesBeforeSeen: true}},
	} {
		m := &consentModel{consentCase: c.consentCase, consentRules: c.consentRules}
		states, fault := m.run()
		if fault == "" {
			t.Errorf("%s: no fault in %d states", name, states)
		}
		t.Log(name, states, fault)
	}
}
