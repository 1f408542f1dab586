package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
)

// tag is the tag of the version that the sources state.
const tag = "v" + api.Version

// tagged returns a repository whose one commit holds the files of this checkout,
// changed ones as they are, and has the tag of the version.
func tagged(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	names := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	names.Dir = "../.."
	list, err := names.Output()
	if err != nil {
		t.Skipf("the sources are not a checkout of Git, so no release of them is built: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		copyFile(t, filepath.Join("../..", name), filepath.Join(dir, name))
	}
	run(t, dir, nil, "git", "init", "--quiet", "--initial-branch=main")
	run(t, dir, nil, "git", "add", ".")
	run(t, dir, []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-11-23T12:00:00Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-11-23T12:00:00Z"},
		"git", "commit", "--quiet", "--message", "the sources")
	run(t, dir, nil, "git", "tag", tag)
	return dir
}

// copyFile copies a file; one that was removed since the last commit is left out.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, info.Mode()); err != nil {
		t.Fatal(err)
	}
}

// run runs a command in a folder and returns what it wrote to its standard output.
func run(t *testing.T, dir string, environment []string, name string, args ...string) string {
	t.Helper()
	out, err := output(t.Context(), dir, environment, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(out))
}
