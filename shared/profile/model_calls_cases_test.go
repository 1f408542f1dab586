package profile_test

import (
	"flag"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
)

// callsCampaign makes the cases of TestModelOfCalls larger: go test ./shared/profile -run
// TestModelOfCalls -calls-campaign. They take minutes.
var callsCampaign = flag.Bool("calls-campaign", false, "TestModelOfCalls visits larger cases")

func TestModelOfCalls(t *testing.T) {
	if race.On {
		t.Skip("the model is one goroutine, and its states would take gigabytes under the race detector")
	}
	cases, all := map[string]callScenario{
		"three deliveries":         {deliveries: 3, ticks: 3, crashes: 1},
		"a deletion":               {deliveries: 2, ticks: 3, deletes: true, crashes: 1},
		"a deletion of three":      {deliveries: 3, ticks: 3, deletes: true},
		"an opt-out and an opt-in": {deliveries: 2, ticks: 3, optsOut: true, crashes: 1},
		"a move":                   {deliveries: 2, ticks: 2, moves: true, crashes: 1},
		"a move and a deletion":    {deliveries: 2, ticks: 2, moves: true, deletes: true},
	}, 0
	if *callsCampaign {
		cases = map[string]callScenario{
			"three deliveries":      {deliveries: 3, ticks: 4, crashes: 2},
			"a deletion":            {deliveries: 3, ticks: 4, deletes: true, crashes: 1},
			"an opt-out":            {deliveries: 3, ticks: 4, optsOut: true},
			"a move of three":       {deliveries: 3, ticks: 3, moves: true},
			"a move and a deletion": {deliveries: 2, ticks: 3, moves: true, deletes: true, crashes: 1},
		}
	}
	for name, c := range cases {
		m := &callModel{callScenario: c}
		states, fault := m.run()
		all += states
		t.Log(name, states)
		if fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
	}
	t.Log(all, "states")
}

func TestModelOfCallsFindsHoles(t *testing.T) {
	if race.On {
		t.Skip("the model is one goroutine, and its states would take gigabytes under the race detector")
	}
	rest := callScenario{deliveries: 2, ticks: 2}
	deletion := callScenario{deliveries: 3, ticks: 3, deletes: true}
	move := callScenario{deliveries: 3, ticks: 3, moves: true}
	both := callScenario{deliveries: 3, ticks: 3, moves: true, deletes: true}
	for name, c := range map[string]struct {
		callScenario
		callRules
	}{
		"the memory is read and then written":     {rest, callRules{notAtomic: true}},
		"the log comes first":                     {rest, callRules{logFirst: true}},
		"a purge forgets later calls":             {deletion, callRules{purgeAll: true}},
		"a purge forgets blindly":                 {deletion, callRules{purgeBlindly: true}},
		"a writer forgets later calls":            {deletion, callRules{dropAll: true}},
		"a writer forgets blindly":                {deletion, callRules{dropBlindly: true}},
		"nobody forgets":                          {deletion, callRules{keepAll: true}},
		"a message asks its entry alone":          {move, callRules{askEntry: true}},
		"a message asks the new callRegion alone": {move, callRules{askNew: true}},
		"the first memory decides":                {both, callRules{decideFirst: true}},
		"the memory stays behind":                 {move, callRules{notCopied: true}},
		"nobody waits":                            {move, callRules{noWait: true}},
	} {
		m := &callModel{callScenario: c.callScenario, callRules: c.callRules}
		states, fault := m.run()
		if fault == "" {
			t.Errorf("%s: no fault in %d states", name, states)
		}
		t.Log(name, states, fault)
	}
}
