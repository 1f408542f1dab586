package profile_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
)

// linksCampaign makes the tests of links larger: go test ./shared/profile -run
// TestModelOfLinks -links-campaign -timeout 3h. linksWays are random ways through cases that
// are larger still.
var (
	linksCampaign = flag.Bool("links-campaign", false, "the tests of links visit all cases and forms")
	linksMost     = flag.Int("links-most", 3_000_000, "how many states of a case the campaign visits at most")
	linksWays     = flag.Int("links-ways", 0, "how many random ways TestModelOfLinks takes through its largest cases")
)

func TestModelOfLinks(t *testing.T) {
	if race.On {
		t.Skip("the model is one goroutine, and its states would take gigabytes under the race detector")
	}
	all, bounded := 0, 0
	for _, c := range slices.Concat(linkCases(), roundCases(), exclusionCases(), optOutCases()) {
		if c.large && !*linksCampaign {
			continue
		}
		m := &linkModel{linkCase: c.linkCase, most: *linksMost}
		states, way, done := m.search()
		t.Log(c.name, states, done)
		if all += states; !done {
			bounded++
		}
		if way != "" {
			t.Errorf("%s: %s", c.name, way)
		}
	}
	t.Log(all, "states,", bounded, "cases not to their end")
	for _, c := range walkedCases() {
		if *linksWays == 0 {
			break
		}
		m := &linkModel{linkCase: c.linkCase}
		steps, fault := m.walk(*linksWays)
		t.Log(c.name, steps, "steps")
		if fault != "" {
			t.Errorf("%s: %s", c.name, fault)
		}
	}
}

// TestModelOfLinksAllows visits cases under forms that are simpler than the protocol, and right.
func TestModelOfLinksAllows(t *testing.T) {
	if race.On {
		t.Skip("the model is one goroutine, and its states would take gigabytes under the race detector")
	}
	K, d1 := uint8(tokenK), delivery(1)
	cases := map[string]linkModel{
		"a base of other marks": {
			linkCase:  adding(plainEvents).linked(0, 0, unlinkOf(K, 2), d1, readOf(K)),
			linkRules: linkRules{addBlindly: true},
		},
		"a tombstone of A frees what is dead": {
			linkCase:  judged(plainEvents).linked(0, 0, secondDeletionOf(K, 4), deletionOf(tokenA, 9), d1),
			linkRules: linkRules{deadByRow: true},
		},
	}
	if *linksCampaign {
		cases["a plain ticket for a new link"] = linkModel{
			linkCase:  adding(loginEvents).unlinked(1, 1, d1, d1, readOf(K)),
			linkRules: linkRules{openPlain: true},
		}
	}
	for name, m := range cases {
		states, way, _ := m.search()
		if t.Log(name, states); way != "" {
			t.Errorf("%s: %s", name, way)
		}
	}
}
