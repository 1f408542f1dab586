package main

import (
	"encoding/json"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

func TestProfileCommand(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	engine.strategy = json.RawMessage(`{"eventsScoring":[{"eventName":"n","eventType":"view","score":2}],"facetsScoring":[{"facetName":"brand","score":3}]}`)
	engine.version = 4
	for i, filter := range []string{"brand:Apple", "brand:Apple", "brand:Sony"} {
		event := fakeEvent{EventType: "view", EventName: "n", UserToken: "a/b+c", Timestamp: 1_600_000_000_000 + int64(i), Filters: []string{filter}}
		engine.keep(event)
	}
	affinity(t, "", "profile", "a/b+c", "--url", engine.URL).
		wants(t, cli.ExitOK, "strategy version 4", "last event 2020-09-13T12:26:40Z", "brand:Apple", "12\n", "brand:Sony", "6\n")
	affinity(t, "", "profile", "a/b+c", "--limit", "1", "--url", engine.URL).wants(t, cli.ExitOK, "and 1 more (--limit 2 shows all)")

	affinity(t, "", "profile", "a/b+c", "--at", "2020-09-13 12:26:40", "--strategy-version", "2", "--url", engine.URL).
		wants(t, cli.ExitOK, "as of 20", "of all events up to then that are not deleted", "brand:Apple")
	if q := engine.asked; q.Get("at") != "1600000000000" || q.Get("strategyVersion") != "2" {
		t.Errorf("the command asked for %v", q)
	}
	affinity(t, "", "profile", "nobody", "--at", "2020-09-13", "--url", engine.URL).wants(t, cli.ExitFailed, "read the profile of nobody: ")
	affinity(t, "", "profile", "ann", "--at", "then", "--url", engine.URL).wants(t, cli.ExitUsage, `--at "then": The timestamp has no form`)
	affinity(t, "", "profile", "ann", "--strategy-version", "2", "--url", engine.URL).wants(t, cli.ExitUsage, "--strategy-version needs --at")
	affinity(t, "", "profile", "ann", "--at", "2020-09-13", "--strategy-version", "-1", "--url", engine.URL).wants(t, cli.ExitUsage, "must be 1 or more")

	r := affinity(t, "", "profile", "a/b+c", "--json", "--url", engine.URL)
	r.wants(t, cli.ExitOK)
	var raw api.Profile
	if err := json.Unmarshal([]byte(r.out), &raw); err != nil || raw.UserToken != "a/b+c" || len(raw.Affinities) != 2 {
		t.Errorf("--json printed %q (%v), want the engine's answer", r.out, err)
	}
}

func TestStrategyGetAndSet(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	strategy := `{"eventsScoring":[{"eventName":"n","eventType":"view","score":2}],"facetsScoring":[]}`
	affinity(t, strategy, "strategy", "set", "-", "--url", engine.URL).wants(t, cli.ExitOK, "has no personalizationImpact: it is sent with 50")
	affinity(t, strategy, "strategy", "set", "-", "--if-version", "-1", "--url", engine.URL).wants(t, cli.ExitUsage, "must be 0 or more")
	affinity(t, "", "strategy", "get", "--url", engine.URL).wants(t, cli.ExitOK, `"eventName": "n"`, `"personalizationImpact": 50`)

	engine.failures = append(engine.failures, refusing(422))
	affinity(t, strategy, "strategy", "set", "-", "--url", engine.URL).wants(t, cli.ExitFailed, "set the strategy: POST", "422")
}
