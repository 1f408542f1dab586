package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/load"
)

const loadTestStrategy = `{"eventsScoring":[{"eventName":"Bought","eventType":"conversion","score":9}],
"facetsScoring":[{"facetName":"brand","score":3},{"facetName":"mood","score":1}],"personalizationImpact":1}`

func TestLoad(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	engine.strategy = json.RawMessage(loadTestStrategy)
	r := affinity(t, "", "load", "--url", engine.URL, "--rate", "200", "--for", "250ms", "--batch", "5", "--reads", "40", "--users", "3", "--index", "shoes",
		"--ranks", "20", "--candidates", "7", "--json")
	r.wants(t, cli.ExitOK)
	var report load.Report
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatalf("--json printed %q: %v", r.out, err)
	}
	if report.Events.Accepted != 50 || report.Events.Refused+report.Events.Errors+report.Events.NotSent != 0 {
		t.Errorf("events %+v, want 50 accepted and no others", report.Events)
	}
	for whose, lag := range map[string]load.Lag{"the users": report.Lag, "new users": report.LagNew} {
		if want := map[string]int64{"the users": 3, "new users": 2}[whose]; lag.Samples != want || lag.NeverSeen != 0 || lag.Max <= 0 {
			t.Errorf("lag %s of %d samples of %s, %d never seen; want %d samples, all seen", lag, lag.Samples, whose, lag.NeverSeen, want)
		}
	}
	if report.Reads.Unknown != 0 || report.Preload != 3 || engine.taken != 1+3*3+50 {
		t.Errorf("%d reads of unknown users, %d events; want none, and three events of each of three users before the 50", report.Reads.Unknown, engine.taken)
	}
	if report.Reads.Answered != 10 || report.Reads.Errors != 0 || report.Reads.P50 <= 0 {
		t.Errorf("reads %+v, want 10 answered", report.Reads)
	}
	if report.Ranks.Answered != 5 || report.Ranks.Errors != 0 || report.Ranks.P50 <= 0 {
		t.Errorf("ranks %+v, want 5 answered", report.Ranks)
	}
	if len(engine.objects["shoes"]) != 7 || valuesAt(engine.objects["shoes"]["load-6"], "mood") == nil {
		t.Errorf("objects %s, want 7 with the facets of the strategy", engine.objects["shoes"])
	}
	for _, event := range engine.events {
		if event.EventName != "Bought" || event.EventType != "conversion" || event.Index != "shoes" || len(event.Filters) != 2 ||
			!strings.HasPrefix(event.Filters[0], "brand:") || !strings.HasPrefix(event.Filters[1], "mood:") {
			t.Fatalf("sent %+v, which the strategy does not count", event)
		}
	}
	if string(engine.strategy) != loadTestStrategy {
		t.Error("the strategy was changed")
	}
}

func TestLoadWithoutStrategy(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	affinity(t, "", "load", "--url", engine.URL, "--rate", "50", "--for", "100ms", "--preload", "0").
		wants(t, cli.ExitOK, "warning: the app has no strategy", "of 0 events before", "events  5 accepted", "of these users)", "of new users)", "reads   p50",
			"of users without events")
}

func TestLoadRefused(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	engine.failures = append(engine.failures, nil) // the event that finds the engine's clock
	engine.failures[0] = engine.takeEvents
	for range 100 {
		engine.failures = append(engine.failures, refusing(429))
	}
	affinity(t, "", "load", "--url", engine.URL, "--rate", "50", "--for", "100ms", "--reads", "0", "--preload", "0").
		wants(t, cli.ExitFailed, "0 accepted", "5 refused", "no event was accepted", "429")
}
