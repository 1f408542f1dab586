package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The index names each module's entries with the version that repaired them, and leaves out
// what was withdrawn.
func TestIndex(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"GO-1.json": `{"id": "GO-1", "modified": "2026-01-02T00:00:00Z", "aliases": ["CVE-1"], "affected": [
			{"package": {"name": "stdlib"}, "ranges": [{"events": [{"introduced": "0"}, {"fixed": "1.25.1"}, {"introduced": "1.26.0"}, {"fixed": "1.26.9"}]}]},
			{"package": {"name": "example.com/a"}, "ranges": [{"events": [{"introduced": "0"}]}]}]}`,
		"GO-2.json": `{"id": "GO-2", "modified": "2026-01-01T00:00:00Z", "affected": [{"package": {"name": "stdlib"}}]}`,
		"GO-3.json": `{"id": "GO-3", "modified": "2026-03-01T00:00:00Z", "withdrawn": "2026-03-01T00:00:00Z"}`,
	} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := index(from, to); err != nil || n != 2 {
		t.Fatalf("%d entries, %v", n, err)
	}
	var modules []moduleIndex
	text, err := os.ReadFile(filepath.Join(to, "index", "modules.json"))
	if err == nil {
		err = json.Unmarshal(text, &modules)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []moduleIndex{
		{"example.com/a", []moduleVuln{{"GO-1", "2026-01-02T00:00:00Z", ""}}},
		{"stdlib", []moduleVuln{{"GO-1", "2026-01-02T00:00:00Z", "1.26.9"}, {"GO-2", "2026-01-01T00:00:00Z", ""}}},
	}
	if diff := cmp.Diff(want, modules); diff != "" {
		t.Errorf("modules of the index (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(to, "ID", "GO-3.json")); err == nil {
		t.Error("an entry that was withdrawn is in the database")
	}
	if _, err := index(t.TempDir(), to); err == nil {
		t.Error("a folder without entries is a database")
	}
}
