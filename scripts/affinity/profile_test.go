package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// TestDrawProfile draws the answers in testdata/bars. Arguments: half-life=DAYS and color.
func TestDrawProfile(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/bars", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "draw" {
			d.Fatalf(t, "unknown command %s", d.Cmd)
		}
		var p profileAnswer
		if err := json.Unmarshal([]byte(d.Input), &p); err != nil {
			d.Fatalf(t, "%v", err)
		}
		halfLife := 0
		d.MaybeScanArgs(t, "half-life", &halfLife)
		var out bytes.Buffer
		if err := drawProfile(&out, p, halfLife, newPalette(d.HasArg("color"))); err != nil {
			d.Fatalf(t, "%v", err)
		}
		return strings.ReplaceAll(out.String(), "\x1b", "ESC")
	})
}

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

	r := affinity(t, "", "profile", "a/b+c", "--json", "--url", engine.URL)
	r.wants(t, cli.ExitOK)
	var raw profileAnswer
	if err := json.Unmarshal([]byte(r.out), &raw); err != nil || raw.UserToken != "a/b+c" || len(raw.Affinities) != 2 {
		t.Errorf("--json printed %q (%v), want the engine's answer", r.out, err)
	}
}

func TestStrategyGetAndSet(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	strategy := `{"eventsScoring":[{"eventName":"n","eventType":"view","score":2}],"facetsScoring":[]}`
	affinity(t, strategy, "strategy", "set", "-", "--url", engine.URL).wants(t, cli.ExitOK, "has no personalizationImpact: it is sent with 50")
	affinity(t, "", "strategy", "get", "--url", engine.URL).wants(t, cli.ExitOK, `"eventName": "n"`, `"personalizationImpact": 50`)

	engine.failures = append(engine.failures, refusing(422))
	affinity(t, strategy, "strategy", "set", "-", "--url", engine.URL).wants(t, cli.ExitFailed, "set the strategy: POST", "422")
}
