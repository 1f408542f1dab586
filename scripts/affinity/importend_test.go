package main

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// An import says once, after its last answer, that it has ended, and what follows is no part of
// its success.
func TestImportSaysThatItHasEnded(t *testing.T) {
	t.Parallel()
	at := api.At(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	following := api.ImportEnd{At: &at, Recompute: &api.Recompute{ID: "import-1", State: api.JobRunning}}
	superseded := api.ImportEnd{At: &at, Recompute: &api.Recompute{ID: "import-1", State: api.JobSuperseded, Error: "by another"}}
	three := []string{eventLine(1), eventLine(2), eventLine(3)}
	for name, test := range map[string]struct {
		lines    []string
		args     []string
		end      api.ImportEnd
		failures []func(http.ResponseWriter, *http.Request) // but for nil, which lets a request pass
		code     int
		want     string
		ended    []int
	}{
		"all lines":             {lines: eventLines(4100), want: "imported 4100 events", ended: []int{3}},
		"a bad line":            {lines: append(three, "bad"), code: command.ExitLines, want: "1 refused", ended: []int{1}},
		"bad lines alone":       {lines: []string{"{}"}, code: command.ExitLines, want: "none of 1 line"},
		"a check":               {lines: three, args: []string{"--check"}, want: "nothing was sent"},
		"the import fails":      {lines: three, failures: []func(http.ResponseWriter, *http.Request){refusing(400)}, code: cli.ExitFailed, want: "400"},
		"nobody waits":          {lines: three, args: []string{"--no-wait"}, end: following, want: "in the background", ended: []int{1}},
		"the end fails":         {lines: three, failures: []func(http.ResponseWriter, *http.Request){nil, refusing(404)}, want: "warning: "},
		"the job is superseded": {lines: three, end: superseded, want: "recompute import-1 was superseded: by another\nall events went in", ended: []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := newFakeEngine(t)
			engine.end = test.end
			for _, fail := range test.failures {
				if fail == nil {
					fail = engine.importEvents
				}
				engine.failures = append(engine.failures, fail)
			}
			args := append([]string{"import", "--url", engine.URL, file(t, "e.ndjson", test.lines...)}, test.args...)
			affinity(t, "", args...).wants(t, test.code, test.want)
			if !slices.Equal(engine.ended, test.ended) {
				t.Errorf("the import ended after %v requests, want %v", engine.ended, test.ended)
			}
		})
	}
}

// Ctrl-C ends the wait for jobs, and says that all is in.
func TestImportIsInterruptedAtItsEnd(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	ctx, stop := context.WithCancel(t.Context())
	engine.end.Waiting = true
	engine.failures = []func(http.ResponseWriter, *http.Request){engine.importEvents, func(w http.ResponseWriter, _ *http.Request) {
		stop()
		answer(w, 200, engine.end)
	}}
	r := affinityWith(t, ctx, eventLine(1), func(*program) {}, "import", "--url", engine.URL, "-")
	if r.wants(t, r.code, "imported 1 event", "all events went in"); r.code == cli.ExitOK {
		t.Error("the command did not say that it was interrupted")
	}
}

// When the command returns, histories are folded and the order for a newcomer goes by popularity.
func TestImportReturnsWhenAllIsThere(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	objects := file(t, "o.ndjson", `{"objectID":"o0","brand":"A"}`, `{"objectID":"o1","brand":"B"}`)
	strategy := file(t, "s.json", `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":10}],"facetsScoring":[{"facetName":"brand","score":1}],"personalizationImpact":50}`)
	affinity(t, "", "import", "--url", s.URL, "--objects", objects, "--strategy", strategy, file(t, "e.ndjson", eventLines(100)...)).
		wants(t, cli.ExitOK, "imported 100 events", "folded the histories of 7 users; crowd statistics are as of 20")
	affinity(t, "", "rank", "--url", s.URL, "--user", "newcomer", "--index", "products", "o0", "o1", "--json").
		wants(t, cli.ExitOK, `"fallback":"popularity","items":[{"objectID":"o1"`)
	dump := file(t, "dump.ndjson")
	affinity(t, "", "dump", "--url", s.URL, "--out", dump+".new").wants(t, cli.ExitOK)
	affinity(t, "", "restore", "--url", startEngine(t, stack.Options{ConfigTTL: time.Millisecond}).URL, dump+".new").
		wants(t, cli.ExitOK, "folded the histories of 7 users; crowd statistics are as of 20")
}
