package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// recomputeJSON is a recompute as the engine answers it.
func recomputeJSON(id, state string, planned, visited int, more string) string {
	return fmt.Sprintf(`{"id":%q,"state":%q,"strategyVersion":3,"shards":{"total":2,"done":1,"failed":1},"users":7,"events":9,`+
		`"startedAt":"2026-11-21T10:00:00.000Z","finishedAt":null,"plannedUsers":%d,"visitedUsers":%d%s}`, id, state, planned, visited, more)
}

// recomputeEngine answers requests for a job with one text after the other and then
// repeats the last. A text that begins with a number is a refusal with that status.
func recomputeEngine(t *testing.T, list string, answers ...string) (url string, requests *[]string) {
	t.Helper()
	var mu sync.Mutex
	requests = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var body [300]byte
		n, _ := r.Body.Read(body[:])
		*requests = append(*requests, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body[:n])))
		if r.Method == http.MethodGet && r.URL.Path == "/1/recomputes" {
			fmt.Fprintf(w, `{"recomputes":[%s]}`, list)
			return
		}
		text := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		var code int
		if _, err := fmt.Sscan(text, &code); err == nil {
			refuse(w, code, "said the engine")
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

// jobTest is a command about jobs, what the engine answers, and its outcome.
type jobTest struct {
	args     string
	answers  []string
	code     int
	wants    []string
	requests []string // none: not looked at
}

// run runs the command with args, on an engine with these recomputes.
func (c jobTest) run(t *testing.T, recomputes string, args ...string) {
	t.Helper()
	t.Parallel()
	url, requests := recomputeEngine(t, recomputes, c.answers...)
	affinity(t, "", append(args, "--url", url)...).wants(t, c.code, c.wants...)
	if c.requests != nil {
		if diff := cmp.Diff(c.requests, *requests); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
}

func TestRecomputeCommands(t *testing.T) {
	newest := recomputeJSON("strategy-3", "running", 10, 5, "")
	done := recomputeJSON("strategy-3", "done", 10, 10, `,"finishedAt":"2026-11-21T10:00:12.500Z"`)
	for name, c := range map[string]struct {
		args, list string
		answers    []string
		code       int
		wants      []string
		requests   []string // none: not looked at
	}{
		"start": {"start", "", []string{recomputeJSON("manual-1", "planning", 0, 0, "")}, cli.ExitOK, []string{"manual-1"},
			[]string{`POST /1/recomputes {"onlyStale":false}`}},
		"start only stale": {"start --only-stale", "", []string{recomputeJSON("manual-1", "planning", 0, 0, "")}, cli.ExitOK, []string{"manual-1"},
			[]string{`POST /1/recomputes {"onlyStale":true}`}},
		"start with folds": {"start --only-stale --fold", "", []string{recomputeJSON("manual-1", "planning", 0, 0, "")}, cli.ExitOK, []string{"manual-1"},
			[]string{`POST /1/recomputes {"onlyStale":true,"fold":true}`}},
		"start a full one": {"start --full", "", []string{recomputeJSON("manual-1", "planning", 0, 0, "")}, cli.ExitOK, []string{"manual-1"},
			[]string{`POST /1/recomputes {"onlyStale":false,"full":true}`}},
		"full and only stale": {"start --full --only-stale", "", []string{"500"}, cli.ExitUsage, []string{"--full and --only-stale exclude each other"}, nil},
		"one user": {"user ann", "", []string{`{"userToken":"ann","source":"computed","total":1,"affinities":[{"facet":"color","operator":":","value":"Red","score":3}]}`},
			cli.ExitOK, []string{"Red"}, []string{`POST /1/recomputes {"onlyStale":false,"userToken":"ann"}`}},
		"one user as JSON": {"user ann --json", "", []string{`{"userToken":"ann","affinities":[]}`}, cli.ExitOK, []string{`{"userToken":"ann","affinities":[]}`}, nil},
		"unknown user":     {"user ann", "", []string{"404"}, cli.ExitFailed, []string{"no profile of ann"}, nil},
		"malformed user":   {"user a,b", "", []string{"500"}, cli.ExitUsage, []string{`USER "a,b"`}, nil},

		"watch one that folds": {"watch x", "", []string{recomputeJSON("x", "done", 7, 7, `,"fold":true,"foldedUsers":5`)}, cli.ExitOK,
			[]string{"recompute x is done", "folded the histories of 5 users"}, nil},
		"start and watch": {"start --watch", "", []string{recomputeJSON("strategy-3", "planning", 0, 0, ""), newest, done}, cli.ExitOK,
			[]string{"recompute strategy-3 started", "strategy-3 is done"},
			[]string{`POST /1/recomputes {"onlyStale":false}`, "GET /1/recomputes/strategy-3", "GET /1/recomputes/strategy-3"}},
		"start refused": {"start", "", []string{"403"}, cli.ExitFailed, []string{"403 said the engine", "--key a key that has the permission"}, nil},

		"watch the newest": {"watch", newest + "," + done, []string{recomputeJSON("strategy-3", "planning", 0, 0, ""), newest, done}, cli.ExitOK,
			[]string{"waiting to begin", "running, 5 of 10 users", "recompute strategy-3 is done: 7 users, 9 events, 1 of 2 shards in 12.5 s"},
			[]string{"GET /1/recomputes", "GET /1/recomputes/strategy-3", "GET /1/recomputes/strategy-3", "GET /1/recomputes/strategy-3"}},
		"watch one": {"watch a/b", "", []string{done}, cli.ExitOK, []string{"is done"}, []string{"GET /1/recomputes/a%2Fb"}},
		"watch one that fails": {"watch x", "", []string{newest, recomputeJSON("x", "failed", 10, 8, `,"error":"shard 3 is poisoned"`)}, cli.ExitFailed,
			[]string{"recompute x failed", "shard 3 is poisoned"}, nil},
		"watch one that is superseded": {"watch x", "", []string{recomputeJSON("x", "superseded", 0, 0, `,"error":"recompute y takes its place"`)},
			cli.ExitFailed, []string{"recompute x was superseded", "y takes its place"}, nil},
		"watch one that is cancelled": {"watch x", "", []string{recomputeJSON("x", "cancelled", 0, 0, "")}, cli.ExitFailed, []string{"recompute x was cancelled"}, nil},
		"watch through an outage":     {"watch x", "", []string{newest, "503", "500", done}, cli.ExitOK, []string{"said the engine; trying again", "is done"}, nil},
		"watch one that is not there": {"watch x", "", []string{"404"}, cli.ExitFailed, []string{"watch recompute x", "404 said the engine"}, nil},
		"watch what is no job":        {"watch x", "", []string{"{}"}, cli.ExitFailed, []string{"is not what an Affinity engine sends"}, nil},
		"watch where there is none":   {"watch", "", nil, cli.ExitFailed, []string{"has had no recompute", "affinity recompute start"}, nil},

		"cancel the newest": {"cancel", newest, []string{recomputeJSON("strategy-3", "cancelled", 0, 0, "")}, cli.ExitOK,
			[]string{"recompute strategy-3 is cancelled"}, []string{"GET /1/recomputes", "POST /1/recomputes/strategy-3/cancel"}},
		"cancel one": {"cancel x", "", []string{recomputeJSON("x", "cancelled", 0, 0, "")}, cli.ExitOK, []string{"x is cancelled"},
			[]string{"POST /1/recomputes/x/cancel"}},
		"cancel one that has ended":  {"cancel x", "", []string{"409"}, cli.ExitFailed, []string{"cancel recompute x", "409 said the engine"}, nil},
		"cancel where there is none": {"cancel", "", nil, cli.ExitFailed, []string{"has had no recompute"}, nil},

		"list": {"list", newest + "," + recomputeJSON("nightly-2026-11-21", "failed", 0, 0, `,"finishedAt":"2026-11-21T10:01:02Z","error":"why\u001b[2J"`), nil, cli.ExitOK,
			[]string{"strategy-3 ", "running", "strategy version 3", "7 users, 9 events", "started 2026-11-21T10:00:00Z", "took 1m2s", "why\ufffd[2J"}, nil},
		"list of one that waits": {"list", recomputeJSON("strategy-3", "planning", 0, 0, `,"jobsBefore":2`), nil, cli.ExitOK,
			[]string{"started 2026-11-21T10:00:00Z, 2 jobs before it in the queue"}, nil},
		"list of one at work": {"list", recomputeJSON("strategy-3", "running", 10, 5, `,"jobsBefore":0,"estimatedEndAt":"2026-11-21T10:01:02.000Z"`), nil, cli.ExitOK,
			[]string{"started 2026-11-21T10:00:00Z, may end at 10:01:02 UTC"}, nil},
		"watch one that waits": {"watch x", "", []string{recomputeJSON("x", "planning", 0, 0, `,"jobsBefore":1`), done}, cli.ExitOK,
			[]string{"waiting to begin, until every instance has the latest configuration, 1 job before it in the queue"}, nil},
		"list of none": {"list", "", nil, cli.ExitOK, []string{"has had no recompute"}, nil},

		"alone":          {"", "", nil, cli.ExitUsage, []string{"needs a command"}, nil},
		"watch two":      {"watch a b", "", nil, cli.ExitUsage, []string{`unexpected argument "b" after ID`}, nil},
		"start with one": {"start a", "", nil, cli.ExitUsage, []string{"unknown command"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			jobTest{c.args, c.answers, c.code, c.wants, c.requests}.run(t, c.list, strings.Fields("recompute "+c.args)...)
		})
	}
}

// TestRecomputeOnAnEngine sets a strategy and follows the recompute that it starts.
func TestRecomputeOnAnEngine(t *testing.T) {
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	for i := range 3 {
		must(t, sendSeen(t.Context(), s, realEvent{"view", "Seen", fmt.Sprint("u", i), s.Backends.Now().UnixMilli() - 1000, "i", nil}))
	}
	must(t, s.Idle(t.Context()))
	strategy := file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1}],
		"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50}`)
	affinity(t, "", "strategy", "set", strategy, "--url", s.URL).wants(t, cli.ExitOK)
	affinity(t, "", "recompute", "watch", "--url", s.URL).wants(t, cli.ExitOK, "recompute strategy-1 is done: 3 users, 3 events, 1 of 1 shard")
	affinity(t, "", "recompute", "start", "--only-stale", "--watch", "--url", s.URL).wants(t, cli.ExitOK, "is done: 3 users, 0 events")
	affinity(t, "", "recompute", "cancel", "--url", s.URL).wants(t, cli.ExitFailed, "409", "it cannot be cancelled any more")
	affinity(t, "", "recompute", "list", "--url", s.URL).wants(t, cli.ExitOK, "strategy-1 ", "manual-")
}
