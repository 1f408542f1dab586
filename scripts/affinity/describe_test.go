package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/store"
)

func TestSchemaDescribe(t *testing.T) {
	tables, err := store.Tables()
	must(t, err)
	shown := affinity(t, "", "schema", "describe")
	if shown.code != cli.ExitOK || shown.err != "" {
		t.Fatalf("exit %d: %s", shown.code, shown.err)
	}
	for _, want := range []string{
		"users: one row a user", "personal; a deletion of the user leaves", "personal, for 7 days", "not personal",
		"column p, s: profile, and the same without affinities, format ", "derived from events/e",
	} {
		if !strings.Contains(shown.out, want) {
			t.Errorf("the description lacks %q", want)
		}
	}
	var got struct{ Tables []store.Table }
	if shown = affinity(t, "", "schema", "describe", "--json"); shown.code != cli.ExitOK || json.Unmarshal([]byte(shown.out), &got) != nil {
		t.Fatalf("exit %d: %.200s", shown.code, shown.out)
	}
	if diff := cmp.Diff(tables, got.Tables); diff != "" {
		t.Errorf("tables (-declared +printed):\n%s", diff)
	}
	affinity(t, "", "schema", "describe", "users").wants(t, cli.ExitUsage)
}
