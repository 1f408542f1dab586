package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/affinityengine/affinity/scripts/release/spdx"
	"github.com/affinityengine/affinity/shared/api"
)

// releaseFile is the name of the file beside the zips with their Release. Terraform reads
// it. The zips do not name the commit: a new one would then deploy every function.
const releaseFile = "release.json"

// Release says which sources a folder of zips was made from. The same sources give the
// same bytes.
type Release struct {
	Commit  string `json:"commit"` // "unknown" outside of Git
	Dirty   bool   `json:"dirty"`  // the checkout differed from the commit
	Version string `json:"version"`
	// Sums are the SHA-256 sums of the zips, by function.
	Sums map[string]string `json:"sums"`
}

// releaseOf returns the Release of a checkout, without its sums, and the time of the
// commit, or of the epoch of zips outside of Git.
func releaseOf(ctx context.Context, root string) (Release, time.Time, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = root
		out, err := output(cmd)
		return strings.TrimSpace(string(out)), err
	}
	r := Release{Commit: "unknown", Dirty: true, Version: api.Version, Sums: map[string]string{}}
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil || !sameFolder(top, root) { // sources that were unpacked, perhaps into another project's checkout
		return r, time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), ctx.Err()
	}
	log, err := git("log", "-1", "--format=%H %ct")
	if err != nil {
		return r, time.Time{}, err
	}
	commit, at, _ := strings.Cut(log, " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return r, time.Time{}, fmt.Errorf("the time of commit %s: %w", commit, err)
	}
	changed, err := git("status", "--porcelain")
	r.Commit, r.Dirty = commit, changed != ""
	return r, time.Unix(seconds, 0).UTC(), err
}

func sameFolder(a, b string) bool {
	x, err := os.Stat(a)
	y, other := os.Stat(b)
	return err == nil && other == nil && os.SameFile(x, y)
}

// identity is the name of a Release: what Terraform wants to hear of another one.
func (r Release) identity() string {
	if r.Dirty {
		return r.Commit + "-dirty"
	}
	return r.Commit
}

// toolchain returns the version of Go that functions are built with, of go.mod.
func toolchain(root string) (string, error) {
	path := filepath.Join(root, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	file, err := modfile.ParseLax(path, text, nil)
	if err != nil {
		return "", err
	}
	if file.Toolchain == nil {
		return "go" + file.Go.Version, nil
	}
	return file.Toolchain.Name, nil
}

// writeLists writes the SPDX list of each zip and, if all is set, the release file: a zip
// that is made alone leaves it, and Terraform refuses the zip if it has other bytes.
func writeLists(ctx context.Context, root, dir string, names []string, zips []bundle, all bool) (Release, error) {
	release, at, err := releaseOf(ctx, root)
	if err != nil {
		return release, err
	}
	version, err := toolchain(root)
	if err != nil {
		return release, err
	}
	for i, name := range names {
		sum := sha256.Sum256(zips[i].data)
		release.Sums[name] = hex.EncodeToString(sum[:])
		list, err := spdx.List(spdx.Source{File: name + ".zip", SHA256: release.Sums[name], Version: release.Version,
			Commit: release.identity(), At: at, Go: version, Modules: zips[i].modules})
		if err != nil {
			return release, err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".spdx.json"), list, 0o644); err != nil {
			return release, err
		}
	}
	if !all {
		return release, nil
	}
	text, err := json.MarshalIndent(release, "", "  ")
	if err != nil {
		return release, err
	}
	return release, os.WriteFile(filepath.Join(dir, releaseFile), append(text, '\n'), 0o644)
}
