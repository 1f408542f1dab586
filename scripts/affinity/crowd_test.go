package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// crowdBuildJSON is a build as the engine answers it.
func crowdBuildJSON(id, state string, planned, visited int, more string) string {
	return fmt.Sprintf(`{"id":%q,"state":%q,"indexes":["shoes","hats"],"asOf":"2026-11-21T10:00:00.000Z","sampled":false,`+
		`"shards":{"total":8,"done":2,"failed":0},"users":7,"events":900,"withUnknownObjects":0,"startedAt":"2026-11-21T10:00:00.000Z",`+
		`"finishedAt":null,"trigger":"manual","plannedUsers":%d,"visitedUsers":%d%s}`, id, state, planned, visited, more)
}

func crowdJSON(builds ...string) string {
	return `{"generations":[{"index":"shoes","asOf":"2026-11-21T09:00:00.000Z","events":90,"users":9,"sampled":true,"state":"done"}],` +
		`"builds":[` + strings.Join(builds, ",") + `]}`
}

func TestCrowdCommands(t *testing.T) {
	const start, get = "POST /1/crowd {}", "GET /1/crowd"
	planning := crowdBuildJSON("manual-1", "planning", 0, 0, "")
	counting := crowdJSON(crowdBuildJSON("manual-1", "running", 10, 5, ""))
	merging := crowdJSON(crowdBuildJSON("manual-1", "running", 10, 10, ""))
	done := crowdJSON(crowdBuildJSON("manual-1", "done", 10, 10, `,"finishedAt":"2026-11-21T10:00:01.500Z"`))
	for name, c := range map[string]jobTest{
		"to its end": {"build", []string{planning, crowdJSON(planning), counting, merging, done}, cli.ExitOK,
			[]string{"build manual-1 is under way", "waiting to begin", "running, 5 of 10 users",
				"900 events of 7 users: statistics of shoes, hats in 1.5 s\n"},
			[]string{start, get, get, get, get}},
		"of an index": {"build --index shoes", []string{planning, done}, cli.ExitOK, nil, []string{`POST /1/crowd {"index":"shoes"}`, get}},
		"as JSON":     {"build --json", []string{planning, done}, cli.ExitOK, []string{`"id": "manual-1"`, `"state": "done"`}, nil},
		"through an outage": {"build", []string{planning, "503", "500", done}, cli.ExitOK,
			[]string{"said the engine; trying again", "900 events"}, nil},
		"unknown objects": {"build", []string{planning, crowdJSON(strings.Replace(crowdBuildJSON("manual-1", "done", 1, 1, ""), `"withUnknownObjects":0`, `"withUnknownObjects":3`, 1))},
			cli.ExitOK, []string{"which the catalog does not know: 3"}, nil},
		"faulty users": {"build", []string{planning, crowdJSON(crowdBuildJSON("manual-1", "done", 1, 1, `,"faulty":2,"faults":["u1: a row is damaged"]`))},
			cli.ExitOK, []string{"2 users and rows of the log cannot be read and are left out:\n  u1: a row is damaged\n"}, nil},
		"status with faults": {"status", []string{crowdJSON(crowdBuildJSON("manual-1", "done", 1, 1, `,"faulty":2`))},
			cli.ExitOK, []string{"build manual-1 of shoes, hats: 2 users and rows of the log cannot be read and are left out\n"}, nil},
		"replaced by a sample": {"build", []string{planning, crowdJSON(
			strings.Replace(crowdBuildJSON("manual-1-sampled", "done", 1, 1, ""), `"sampled":false`, `"sampled":true`, 1),
			crowdBuildJSON("manual-1", "superseded", 1, 1, ""))}, cli.ExitOK, []string{"900 events of 7 users (a sample)"}, nil},
		"one that fails": {"build", []string{planning, crowdJSON(crowdBuildJSON("manual-1", "failed", 1, 1, `,"error":"a run is damaged"`))}, cli.ExitFailed,
			[]string{"build manual-1 failed: a run is damaged"}, nil},
		"no objects":     {"build", []string{"422"}, cli.ExitFailed, []string{"build crowd statistics", "422 said the engine"}, nil},
		"no job":         {"build", []string{"{}"}, cli.ExitFailed, []string{"is not what an Affinity engine sends about a build of crowd statistics"}, nil},
		"gone":           {"build", []string{planning, crowdJSON()}, cli.ExitFailed, []string{"no longer lists build manual-1"}, nil},
		"an empty index": {"build --index=", nil, cli.ExitUsage, []string{"--index must not be empty"}, nil},
		"an argument":    {"build x", nil, cli.ExitUsage, []string{"unknown command"}, nil},
		"status": {"status", []string{crowdJSON(crowdBuildJSON("manual-2", "cancelled", 1, 1, ""), crowdBuildJSON("manual-1", "done", 1, 1, ""))}, cli.ExitOK,
			[]string{"INDEX  AS OF", "shoes  2026-11-21T09:00:00.000Z  90      9 (a sample)  done\n", "build manual-2 of shoes, hats was cancelled\n"}, []string{get}},
		"status as JSON": {"status --json", []string{crowdJSON()}, cli.ExitOK, []string{`"generations"`}, nil},
		"no statistics":  {"status", []string{`{"generations":[],"builds":[]}`}, cli.ExitOK, []string{"the app has no crowd statistics: `affinity crowd build` builds them"}, nil},
	} {
		t.Run(name, func(t *testing.T) { c.run(t, "", strings.Fields("crowd "+c.args)...) })
	}
}

// TestCrowdOnAnEngine builds the statistics of a catalog and an import.
func TestCrowdOnAnEngine(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	affinity(t, "", "crowd", "build", "--url", s.URL).wants(t, cli.ExitFailed, fmt.Sprint(http.StatusUnprocessableEntity), "The app has no objects")
	strategy := file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],
		"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50}`)
	affinity(t, "", "strategy", "set", strategy, "--url", s.URL).wants(t, cli.ExitOK)
	objects := file(t, "objects.ndjson", `{"objectID":"1","color":"Red"}`, `{"objectID":"2","color":"Blue"}`)
	seen := fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","timestamp":%d,"objectIDs":["1","2","3"]}`,
		s.Backends.Now().UnixMilli()-1000)
	affinity(t, seen, "import", "--index", "i", "--objects", objects, "-", "--url", s.URL).wants(t, cli.ExitOK)
	affinity(t, "", "crowd", "build", "--url", s.URL).wants(t, cli.ExitOK, "1 event of 1 user: statistics of i",
		"which the catalog does not know: 1")
	affinity(t, "", "crowd", "status", "--url", s.URL).wants(t, cli.ExitOK, "i      ", "1      done\n")
	affinity(t, "", "crowd", "build", "--index", "other", "--url", s.URL).wants(t, cli.ExitFailed, `Index "other" has no objects`)
}
