package main

import (
	"net/http"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// A Retry-After beyond the time limit ends the command without a second request.
func TestRetryAfterBeyondLimit(t *testing.T) {
	t.Parallel()
	engine := newFakeEngine(t)
	calls := 0
	busy := func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Retry-After", "3600")
		refuse(w, http.StatusTooManyRequests, "slow down")
	}
	engine.failures = append(engine.failures, busy, busy)
	affinity(t, eventLine(1), "import", "--url", engine.URL, "-").wants(t, cli.ExitFailed, "gave up", "429 slow down")
	if calls != 1 {
		t.Errorf("%d requests, want 1", calls)
	}
}
