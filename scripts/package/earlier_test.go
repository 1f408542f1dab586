package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A rollback puts the zips of an earlier checkout over today's, as terraform/README.md says:
// functions that the earlier one does not have keep theirs.
func TestEarlierZipsLeaveTheOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("-short builds no program")
	}
	functions, zips := packed(t)
	dist, earlier := t.TempDir(), t.TempDir()
	for _, fn := range functions {
		if err := os.WriteFile(zipPath(dist, fn.Name), zips[fn.Name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum", "functions", "shared", "terraform", "scripts/package"} {
		copyTree(t, filepath.Join(root, name), filepath.Join(earlier, name))
	}
	// Of the two, the function docs is new, and ingest has changed.
	change(t, filepath.Join(earlier, "terraform/functions.json"), `    {"name": "docs", "entryPoint": "Docs", "kind": "public", "env": ["GOOGLE_CLOUD_PROJECT"]},`+"\n", "")
	change(t, filepath.Join(earlier, "functions/ingest/function.go"), "package ingest\n", "package ingest\n\n// Earlier.\n")

	out, err := exec.CommandContext(t.Context(), "go", "-C", earlier, "run", "./scripts/package", "--out", dist).CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	for _, fn := range functions {
		now, err := os.ReadFile(zipPath(dist, fn.Name))
		if err != nil {
			t.Fatal(err)
		}
		if kept := bytes.Equal(now, zips[fn.Name]); kept != (fn.Name == "docs") {
			t.Errorf("%s keeps its zip: %v", fn.Name, kept)
		}
		if fn.Name == "ingest" && !strings.Contains(contents(t, now)["functions/ingest/function.go"], "// Earlier.") {
			t.Error("the zip of ingest is not the earlier one")
		}
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case entry.IsDir() || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// change replaces a text in a file that has it.
func change(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), from) {
		t.Fatalf("%s has no %q (%v)", path, from, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
