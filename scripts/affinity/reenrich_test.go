package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// reenrichJSON is a re-enrichment as the engine answers it.
func reenrichJSON(state string, dryRun bool, planned, visited int, more string) string {
	return fmt.Sprintf(`{"id":"reenrich-1","state":%q,"dryRun":%v,"shards":{"total":2,"done":1,"failed":1},"users":7,"events":900,"withUnknownObjects":50,`+
		`"resolved":30,"stillUnknown":20,"faulty":0,"startedAt":"2026-11-21T10:00:00.000Z","finishedAt":null,"plannedUsers":%d,"visitedUsers":%d%s}`,
		state, dryRun, planned, visited, more)
}

func TestReenrichCommands(t *testing.T) {
	const start, get = `POST /1/reenrich {"dryRun":false}`, "GET /1/reenrich/reenrich-1"
	planning, running := reenrichJSON("planning", false, 0, 0, ""), reenrichJSON("running", false, 10, 5, "")
	done := reenrichJSON("done", false, 10, 10, "")
	for name, c := range map[string]jobTest{
		"to its end": {"", []string{planning, planning, running, done}, cli.ExitOK,
			[]string{"re-enrichment reenrich-1 is under way", "waiting to begin", "running, 5 of 10 users",
				"900 events read, 50 with unknown objects: 30 resolved now, 20 still unknown\n"},
			[]string{start, get, get, get}},
		"dry run": {"--dry-run", []string{reenrichJSON("done", true, 1, 1, "")}, cli.ExitOK,
			[]string{"50 with unknown objects: 30 would be resolved now, 20 still unknown"}, []string{`POST /1/reenrich {"dryRun":true}`, get}},
		"through an outage": {"", []string{planning, "503", "500", done}, cli.ExitOK, []string{"said the engine; trying again", "30 resolved now"}, nil},
		"a dry run is under way": {"", []string{reenrichJSON("running", true, 1, 1, "")}, cli.ExitFailed,
			[]string{"reenrich-1 is under way and is a dry run", "affinity reenrich cancel reenrich-1"}, []string{start}},
		"one that publishes is under way": {"--dry-run", []string{running}, cli.ExitFailed, []string{"is under way and changes events"}, nil},
		"rows that cannot be read": {"", []string{planning, strings.Replace(reenrichJSON("done", false, 1, 1, `,"faults":["demo,u,x: bad\u001b[2J"]`), `"faulty":0`, `"faulty":3`, 1)}, cli.ExitFailed,
			[]string{"demo,u,x: bad\ufffd[2J", "30 resolved now", "rows of the log that cannot be read and were left out: 3"}, nil},
		"one that fails": {"", []string{planning, reenrichJSON("failed", false, 1, 1, `,"error":"shard 3 is poisoned"`)}, cli.ExitFailed,
			[]string{"900 events read", "re-enrichment reenrich-1 failed: shard 3 is poisoned"}, nil},
		"one that is cancelled": {"", []string{planning, reenrichJSON("cancelled", false, 1, 1, "")}, cli.ExitFailed, []string{"reenrich-1 was cancelled"}, nil},
		"refused":               {"", []string{"403"}, cli.ExitFailed, []string{"start a re-enrichment", "403 said the engine", "--key a key that has the permission"}, nil},
		"no job":                {"", []string{"{}"}, cli.ExitFailed, []string{"is not what an Affinity engine sends about a re-enrichment"}, nil},
		"gone":                  {"", []string{planning, "404"}, cli.ExitFailed, []string{"watch re-enrichment reenrich-1", "404 said the engine"}, nil},
		"cancel":                {"cancel a/b", []string{reenrichJSON("cancelled", false, 1, 1, "")}, cli.ExitOK, []string{"reenrich-1 is cancelled"}, []string{"POST /1/reenrich/a%2Fb/cancel"}},
		"cancel what has ended": {"cancel x", []string{"409"}, cli.ExitFailed, []string{"cancel re-enrichment x", "409 said the engine"}, nil},
		"cancel nothing":        {"cancel", nil, cli.ExitUsage, []string{"ID is missing: affinity reenrich cancel ID"}, nil},
		"with an argument":      {"x", nil, cli.ExitUsage, []string{"unknown command"}, nil},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "", strings.Fields("reenrich "+c.args)...) })
	}
}

// TestReenrichOnAnEngine imports a catalog after its events, and replays a dead
// letter of a re-enrichment.
func TestReenrichOnAnEngine(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	strategy := file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],
		"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50}`)
	affinity(t, "", "strategy", "set", strategy, "--url", s.URL).wants(t, cli.ExitOK)
	now := s.Backends.Now().UnixMilli()
	seen := fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","timestamp":%d,"objectIDs":["1","2"]}`, now-1000)
	affinity(t, seen+"\n"+strings.Replace(seen, `"u"`, `"v"`, 1), "import", "-", "--url", s.URL).wants(t, cli.ExitOK)
	affinity(t, "", "reenrich", "--url", s.URL).wants(t, cli.ExitOK, "2 events read, 2 with unknown objects: 0 resolved now, 2 still unknown\n")
	objects := file(t, "objects.ndjson", `{"objectID":"1","color":"Red"}`)
	nothing := file(t, "events.ndjson")
	affinity(t, "", "import", "--index", "i", "--objects", objects, nothing, "--url", s.URL).wants(t, cli.ExitOK)
	affinity(t, "", "reenrich", "--dry-run", "--url", s.URL).wants(t, cli.ExitOK, "2 with unknown objects: 2 would be resolved now, 0 still unknown\n")
	affinity(t, "", "reenrich", "--url", s.URL).wants(t, cli.ExitOK, "2 with unknown objects: 2 resolved now, 0 still unknown\n")
	must(t, s.Idle(t.Context()))
	want := []realProfile{{"u", now - 1000, map[string]map[string]float64{"color": {"Red": 1}}}, {"v", now - 1000, map[string]map[string]float64{"color": {"Red": 1}}}}
	compare(t, s, want)
	affinity(t, "", "reenrich", "--url", s.URL).wants(t, cli.ExitOK, "2 with unknown objects: 0 resolved now, 2 still unknown\n")

	replayReenriched(t, s, seen, now)
	want[0].Scores = map[string]map[string]float64{"color": {"Red": 1, "Blue": 1}}
	compare(t, s, want)

	damaged := store.LogEvent{User: "u", Time: now - 2000, ID: "damaged", Type: event.View, Name: "Seen", Original: []byte("{")}
	must(t, s.Backends.Store.Events.Log("demo", layoutOf(t, s.Backends.Config)).Append(t.Context(), []store.LogEvent{damaged}))
	affinity(t, "", "reenrich", "--url", s.URL).wants(t, cli.ExitFailed, "demo,u,", ",damaged: ", "cannot be read and were left out: 1")
}

func layoutOf(t *testing.T, apps *config.Store) schema.Layout {
	t.Helper()
	app, err := apps.App(t.Context(), "demo")
	must(t, err)
	return app.Log
}

// replayReenriched makes a dead letter with both objects of an event and replays
// it.
func replayReenriched(t *testing.T, s *stack.Stack, seen string, now int64) {
	t.Helper()
	e, err := event.Decode([]byte(seen), event.Rules{Now: time.UnixMilli(now)})
	must(t, err)
	m, err := bus.NewReenriched("demo", time.UnixMilli(now), []bus.Logged{{User: "u", Time: e.Time, ID: e.ID(), ReceivedAt: now, Event: e}},
		bus.Resolution{Objects: bus.Objects{"i": {"1": {{"color", "Red"}}, "2": {{"color", "Blue"}}}}})
	must(t, err)
	var push bus.Push
	if push.Message.Data, err = m.Encode(); err != nil {
		t.Fatal(err)
	}
	push.Message.MessageID = "7"
	must(t, s.Backends.Bus.Bury(t.Context(), push, "a backend was away"))
	t.Setenv(operator.Variable, s.Operator)
	affinity(t, "", "replay", "--url", s.URL).wants(t, cli.ExitOK, "a backend was away")
	must(t, s.Idle(t.Context()))
}
