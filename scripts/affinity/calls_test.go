package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// A call without a time, which an SDK delivers again and again, is one event in its engine,
// in one that restores the archive, and in one that restores a dump.
func TestCallIsOneEventEverywhere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	archived := startArchiving(t, folder)
	deliver := func(s *stack.Stack) {
		t.Helper()
		rawPost(t, s, "/v1/batch?index=shoes", `{"batch":[{"type":"track","event":"Product Viewed","userId":"ann","messageId":"m1","properties":{"product_id":"1"}}]}`)
		settle(t, s)
	}
	expect := func(s *stack.Stack) {
		t.Helper()
		if e, err := clientOf(t, s.URL).Profiles().Explain(t.Context(), "ann", api.ExplainQuery{}); err != nil || e.Events.Accepted != 1 {
			t.Errorf("%d events, %v; want 1", e.Events.Accepted, err)
		}
	}
	for range 3 {
		deliver(archived)
	}
	expect(archived)
	dump := filepath.Join(t.TempDir(), "dump.ndjson")
	affinity(t, "", "dump", "--url", archived.URL, "--out", dump).wants(t, cli.ExitOK)
	if lines := strings.Join(dumpOf(t, dump), ""); strings.Count(lines, `"call":true`) != 1 {
		t.Errorf("the dump does not say that the event is a call:\n%s", lines)
	}
	stop(t, archived)

	fresh := startEngine(t, stack.Options{RetentionDays: 90})
	affinity(t, "", "import", "--archive", folder, "--url", fresh.URL).wants(t, cli.ExitOK)
	deliver(fresh)
	expect(fresh)

	restored := startEngine(t, stack.Options{RetentionDays: 90})
	affinity(t, "", "restore", "--url", restored.URL, dump).wants(t, cli.ExitOK)
	deliver(restored)
	expect(restored)
}
