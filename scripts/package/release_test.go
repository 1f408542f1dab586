package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The lists that lie beside the zips have their sums, and the modules of each function.
func TestListsOfZips(t *testing.T) {
	functions, zips := packed(t)
	files, err := packOnce()
	if err != nil {
		t.Fatal(err)
	}
	var release Release
	if err := json.Unmarshal(files[releaseFile], &release); err != nil {
		t.Fatal(err)
	}
	if len(release.Sums) != len(functions) || release.Commit == "" || release.Version == "" {
		t.Errorf("the release is %+v", release)
	}
	version, err := toolchain("../..")
	if err != nil || strings.Count(version, ".") != 2 || strings.HasSuffix(version, ".0") {
		t.Fatalf("functions are built with %s, want toolchain of go.mod (%v)", version, err)
	}
	for _, fn := range functions {
		sum := sha256.Sum256(zips[fn.Name])
		if got := release.Sums[fn.Name]; got != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: the release has the sum %s, the zip %x", fn.Name, got, sum)
		}
		var list struct {
			Packages []struct {
				Name, VersionInfo string
				Checksums         []struct{ ChecksumValue string }
			}
		}
		if err := json.Unmarshal(files[fn.Name+".spdx.json"], &list); err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for _, p := range list.Packages {
			versions[p.Name] = p.VersionInfo
		}
		if list.Packages[0].Checksums[0].ChecksumValue != release.Sums[fn.Name] || "go"+versions["stdlib"] != version {
			t.Errorf("%s: the list is of %+v", fn.Name, list.Packages[:2])
		}
		if versions["github.com/GoogleCloudPlatform/functions-framework-go"] == "" ||
			(versions["cloud.google.com/go/bigtable"] != "") != needsVariables(fn) {
			t.Errorf("%s: the list has other modules than the function: %v", fn.Name, versions)
		}
	}
}

// A checkout is named by its commit, and says so if it differs from it.
func TestReleaseOfCheckout(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-11-23T12:00:00Z")
		if _, err := output(cmd); err != nil {
			t.Fatal(err)
		}
	}
	identity := func() (string, time.Time) {
		t.Helper()
		r, at, err := releaseOf(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		return r.identity(), at
	}
	if got, _ := identity(); got != "unknown-dirty" {
		t.Errorf("outside of Git: %s", got)
	}
	git("init", "--quiet")
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.tfvars\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "--quiet", "--message", "m")
	if err := os.WriteFile(filepath.Join(root, "prod.tfvars"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	clean, at := identity()
	if len(clean) != 40 || !at.Equal(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("the commit is %s of %s", clean, at)
	}
	if err := os.WriteFile(filepath.Join(root, "new.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := identity(); got != clean+"-dirty" {
		t.Errorf("a changed checkout is %s", got)
	}
	root = filepath.Join(root, "sources") // unpacked into a checkout of something else
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, _ := identity(); !strings.HasPrefix(got, "unknown") {
		t.Errorf("a folder of another checkout is %s", got)
	}
}

// The zips of a commit are those that a checkout of it gives, whatever the checkout is now.
func TestZipsOfCommit(t *testing.T) {
	head, err := output(exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD"))
	if err != nil {
		t.Skipf("the sources are not a checkout of Git: %v", err)
	}
	commit, elsewhere := strings.TrimSpace(string(head)), t.TempDir()
	release, _, err := sourcesAt(t.Context(), "../..", commit, elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if release.identity() != commit || release.Configuration != commit || release.Version == "" {
		t.Errorf("the release is %+v, want that of %s", release, commit)
	}
	sources := filepath.Join(elsewhere, "functions")
	if err := os.RemoveAll(filepath.Join(sources, "docs")); err != nil { // as before there was one
		t.Fatal(err)
	}
	functions, _ := packed(t)
	roots := split("../..", elsewhere, functions)
	if got := strings.Join(roots["../.."], " "); got != "docs" || len(roots[elsewhere]) != len(functions)-1 {
		t.Errorf("from the checkout are packed %q, and of the commit %q", got, roots[elsewhere])
	}
	if _, err := pack(t.Context(), elsewhere, "ingest"); err != nil {
		t.Error(err)
	}
	if out, err := run(t, "--commit", "unknown-dirty", "--out", t.TempDir()); err == nil || !strings.Contains(err.Error(), "--commit unknown-dirty") {
		t.Errorf("an unknown commit: %v; %s", err, out)
	}
}
