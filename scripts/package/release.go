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
	Commit string `json:"commit"` // "unknown" outside of Git
	Dirty  bool   `json:"dirty"`  // the checkout differed from the commit
	// Configuration is the commit of the checkout, whose Terraform configuration deploys the
	// zips. With --commit these are of another one.
	Configuration string `json:"configuration"`
	Version       string `json:"version"`
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
	r := Release{Commit: "unknown", Dirty: true, Configuration: "unknown", Version: api.Version, Sums: map[string]string{}}
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil || !sameFolder(top, root) { // sources that were unpacked, perhaps into another project's checkout
		return r, time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), ctx.Err()
	}
	log, err := git("log", "-1", "--format=%H %ct")
	if err != nil {
		return r, time.Time{}, err
	}
	commit, at, err := readLog([]byte(log))
	if err != nil {
		return r, at, err
	}
	changed, err := git("status", "--porcelain")
	r.Commit, r.Configuration, r.Dirty = commit, commit, changed != ""
	return r, at, err
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
	file, err := modfile.Parse(path, text, nil)
	if err != nil {
		return "", err
	}
	if file.Toolchain == nil { // of a commit that named none
		return "go" + file.Go.Version, nil
	}
	return file.Toolchain.Name, nil
}

// sourcesAt unpacks the sources of a commit into a folder, and returns what releaseOf returns
// of it. The version is the one that these sources state.
func sourcesAt(ctx context.Context, root, commit, dir string) (Release, time.Time, error) {
	fail := func(err error) (Release, time.Time, error) {
		return Release{}, time.Time{}, fmt.Errorf("--commit %s: %w", commit, err)
	}
	here, _, err := releaseOf(ctx, root)
	if err != nil {
		return fail(err)
	}
	cmd := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H %ct", commit+"^{commit}", "--")
	cmd.Dir = root
	log, err := output(cmd)
	if err != nil {
		return fail(err)
	}
	hash, at, err := readLog(log)
	if err != nil {
		return fail(err)
	}
	cmd = exec.CommandContext(ctx, "git", "archive", "--format=zip", hash)
	cmd.Dir = root
	data, err := output(cmd)
	if err == nil {
		err = unpack(data, dir)
	}
	if err != nil {
		return fail(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "shared/api/version.go"))
	if err != nil {
		return fail(err)
	}
	_, version, _ := strings.Cut(string(text), "const Version = \"")
	version, _, _ = strings.Cut(version, "\"")
	return Release{Commit: hash, Configuration: here.Configuration, Version: version, Sums: map[string]string{}}, at, nil
}

// readLog decodes a line with the hash of a commit and its time.
func readLog(line []byte) (hash string, at time.Time, err error) {
	hash, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return hash, at, fmt.Errorf("the time of commit %s: %w", hash, err)
	}
	return hash, time.Unix(seconds, 0).UTC(), nil
}

// write writes the SPDX list of a zip, and adds its sum to the release.
func (r Release) write(dir, name, goVersion string, at time.Time, b bundle) error {
	sum := sha256.Sum256(b.data)
	r.Sums[name] = hex.EncodeToString(sum[:])
	list, err := spdx.List(spdx.Source{File: name + ".zip", SHA256: r.Sums[name], Version: r.Version,
		Commit: r.identity(), At: at, Go: goVersion, Modules: b.modules})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".spdx.json"), list, 0o644)
}

// writeFile writes the release file.
func (r Release) writeFile(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, releaseFile), append(text, '\n'), 0o644)
}
