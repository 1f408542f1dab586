package terraform

import (
	"strings"
	"testing"
)

func TestReadDeployment(t *testing.T) {
	d, err := ReadDeployment()
	if err != nil {
		t.Fatal(err)
	}
	if fn, err := d.Function("worker"); err != nil || fn.Name != "worker" || fn.EntryPoint != "Worker" {
		t.Errorf("worker: %+v, %v", fn, err)
	}
	if _, err := d.Function("Worker"); err == nil || !strings.Contains(err.Error(), "only ingest, ") {
		t.Errorf("unknown function: got error %v, want one that lists the known names", err)
	}
}

func TestDecodeRejectsInvalidDeployment(t *testing.T) {
	const good = `{"topics": {"events": {"name": "a", "subscription": "b"}, "slowEvents": {"name": "e", "subscription": "f"}, "deadLetters": {"name": "c", "subscription": "d"}, "warehouse": "w"}, "queue": "q", "purgeQueue": "p", "refreshQueues": {"name": "r", "count": 2},
		"functions": [{"name": "ingest", "entryPoint": "Ingest", "kind": "public", "env": ["A", "B_2"]}]}`
	if _, err := decodeDeployment(good); err != nil {
		t.Fatal(err)
	}
	for old, to := range map[string]string{
		good:                   good[1:],
		`"kind"`:               `"sort"`,
		`"public"`:             `"private"`,
		`"ingest"`:             `"in/gest"`,
		`"Ingest"`:             `"ingest"`,
		`"B_2"`:                `"A"`,
		`"A"`:                  `"A=B"`,
		`"B_2"]`:               `"B_2"], "secrets": ["A"]`,
		`"q"`:                  `""`,
		`"p"`:                  `""`,
		`"r"`:                  `""`,
		`"w"`:                  `""`,
		`"count": 2`:           `"count": 0`,
		`"subscription": "d"`:  `"subscription": "D"`,
		`"subscription": "b"}`: `"subscription": "b", "push": true}`,
		`[{`:                   `[{"name": "ingest", "entryPoint": "Other", "kind": "public"}, {`,
		`["A", "B_2"]}`:        `["A"]}, {"name": "other", "entryPoint": "Ingest", "kind": "tasks"}`,
		`[{"name": "ingest", "entryPoint": "Ingest", "kind": "public", "env": ["A", "B_2"]}]`: `[]`,
	} {
		text := strings.Replace(good, old, to, 1)
		if text == good {
			t.Fatalf("the valid text does not contain %s", old)
		}
		if d, err := decodeDeployment(text); err == nil {
			t.Errorf("with %s in place of %s: got %+v, want an error", to, old, d)
		}
	}
}
