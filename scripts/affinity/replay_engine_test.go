package main

import (
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// TestReplayOnAnEngine puts back two dead letters, one of which was applied before.
// Each counts once.
func TestReplayOnAnEngine(t *testing.T) {
	s := startEngine(t, stack.Options{RetentionDays: 90})
	t.Setenv(operator.Variable, s.Operator)
	strategy := file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],
		"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50}`)
	affinity(t, "", "strategy", "set", strategy, "--url", s.URL).wants(t, cli.ExitOK)
	now := s.Backends.Now().UnixMilli()
	for i, age := range []int64{1000, 2000} {
		e := realEvent{"view", "Seen", "u", now - age, "i", nil}
		if i == 0 {
			must(t, sendSeen(t.Context(), s, e))
		}
		m := bus.Message{App: "demo", ReceivedAt: now, Resolved: true, Body: fmt.Appendf(nil,
			`{"events":[{"eventType":"view","eventName":"Seen","userToken":"u","timestamp":%d,"index":"i","filters":["color:Red"]}]}`, e.Timestamp)}
		data, err := m.Encode()
		must(t, err)
		var push bus.Push
		push.Message.Data, push.Message.MessageID = data, fmt.Sprint("m", i)
		must(t, s.Backends.Bus.Bury(t.Context(), push, "a backend was away"))
	}
	affinity(t, "", "replay", "--dry-run", "--url", s.URL).wants(t, cli.ExitOK, "a backend was away")
	affinity(t, "", "replay", "--url", s.URL).wants(t, cli.ExitOK, "a backend was away")
	must(t, s.Idle(t.Context()))
	compare(t, s, []realProfile{{"u", now - 1000, map[string]map[string]float64{"color": {"Red": 2}}}})
	affinity(t, "", "replay", "--url", s.URL).wants(t, cli.ExitOK, "no dead letters")
}
