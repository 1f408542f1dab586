package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
)

// takesMinutes skips a test that compiles everything that the tool links, unless
// scripts/check-release runs it.
func takesMinutes(t *testing.T) {
	t.Helper()
	if os.Getenv("AFFINITY_RELEASE") == "" {
		t.Skip("it compiles all that the tool links: scripts/check-release runs it")
	}
}

// TestSameCommitSameBytes builds this machine's archive in two checkouts.
func TestSameCommitSameBytes(t *testing.T) {
	takesMinutes(t)
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if !slices.Contains(platforms, platform) {
		t.Skipf("a release has no archive for %s", platform)
	}
	first := tagged(t)
	second := filepath.Join(t.TempDir(), "another", "folder")
	run(t, "", nil, "git", "clone", "--quiet", first, second)
	one, two := released(t, first, platform), released(t, second, platform)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(one)), slices.Sorted(maps.Keys(two))); diff != "" {
		t.Fatalf("other files (-one +two):\n%s", diff)
	}
	for name := range one {
		if !bytes.Equal(one[name], two[name]) {
			t.Errorf("%s has other bytes in another checkout of the same commit", name)
		}
	}
	checkSums(t, one)
	checkArchive(t, first, one)
}

// released returns the files of a release for one platform, by name.
func released(t *testing.T, checkout, platform string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("GOPROXY", "off")
	if err := release(t.Context(), t.Output(), checkout, dir, tag, []string{platform}); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// checkSums compares SHA256SUMS with the files beside it.
func checkSums(t *testing.T, files map[string][]byte) {
	t.Helper()
	want := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "SHA256SUMS" {
			want += sha256Of(files[name]) + "  " + name + "\n"
		}
	}
	if got := string(files["SHA256SUMS"]); got != want || strings.Count(got, "\n") < 2 {
		t.Errorf("SHA256SUMS is\n%s, want\n%s", got, want)
	}
}

// checkArchive unpacks this machine's archive and runs what is in it.
func checkArchive(t *testing.T, checkout string, files map[string][]byte) {
	t.Helper()
	name := fmt.Sprintf("affinity_%s_%s_%s", api.Version, runtime.GOOS, runtime.GOARCH)
	unpacked := untar(t, files[name+".tar.gz"])
	want := []string{"LICENSE", "THIRD_PARTY_LICENSES", "affinity", "completions/_affinity", "completions/affinity.bash", "completions/affinity.fish", "completions/affinity.ps1"}
	for i := range want {
		want[i] = name + "/" + want[i]
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(unpacked))); diff != "" {
		t.Fatalf("files of the archive (-want +got):\n%s", diff)
	}
	program := filepath.Join(t.TempDir(), "affinity")
	if err := os.WriteFile(program, unpacked[name+"/affinity"], 0o700); err != nil {
		t.Fatal(err)
	}
	commit := run(t, checkout, nil, "git", "rev-parse", "--short=12", "HEAD")
	if got, want := run(t, "", nil, program, "--version"), fmt.Sprintf("affinity %s (commit %s) ", api.Version, commit); !strings.HasPrefix(got, want) {
		t.Errorf("affinity --version says %q, want %q", got, want)
	}
	if text := string(unpacked[name+"/completions/affinity.bash"]); !strings.Contains(text, "__start_affinity") {
		t.Errorf("the completions for bash are not those of affinity: %.200s", text)
	}
	if text := string(unpacked[name+"/THIRD_PARTY_LICENSES"]); !strings.Contains(text, "github.com/spf13/cobra: LICENSE") || !strings.Contains(text, "Go go1.") {
		t.Errorf("no licences of Go and of cobra: %.200s", text)
	}
	checkList(t, files[name+".spdx.json"], files[name+".tar.gz"])
}

// checkList checks that the SPDX list of an archive is of it, and has the modules of the tool.
func checkList(t *testing.T, text, archive []byte) {
	t.Helper()
	var list struct {
		Packages []struct {
			Name, VersionInfo, SourceInfo string
			Checksums                     []struct{ ChecksumValue string }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	main, names := list.Packages[0], map[string]bool{}
	for _, p := range list.Packages {
		names[p.Name] = true
	}
	for _, name := range []string{modulePath, "stdlib", "github.com/spf13/cobra", "cloud.google.com/go/bigtable"} {
		if !names[name] {
			t.Errorf("the list lacks %s", name)
		}
	}
	if main.Name != modulePath || main.VersionInfo != tag || main.Checksums[0].ChecksumValue != sha256Of(archive) || !strings.HasPrefix(main.SourceInfo, "commit ") {
		t.Errorf("the list is of %+v, want the tool, its version, its commit and the hash of the archive", main)
	}
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(plain); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC); !header.ModTime.Equal(want) {
			t.Errorf("%s is of %s, want the time of the commit", header.Name, header.ModTime)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestZipForWindows reads back the other form of an archive.
func TestZipForWindows(t *testing.T) {
	files := map[string]file{"affinity.exe": {[]byte("program"), true}, "LICENSE": {[]byte("terms"), false}}
	data, err := zipped("affinity_1", files, time.Unix(1_800_000_000, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	again, err := zipped("affinity_1", files, time.Unix(1_800_000_000, 0).UTC())
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("the same files give other bytes (%v)", err)
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range r.File {
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = fmt.Sprintf("%s %s %d", text, f.Mode(), f.Modified.Unix())
	}
	want := map[string]string{"affinity_1/affinity.exe": "program -rwxr-xr-x 1800000000", "affinity_1/LICENSE": "terms -rw-r--r-- 1800000000"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestReleaseRefuses(t *testing.T) {
	clean := tagged(t)
	changed := tagged(t)
	if err := os.WriteFile(filepath.Join(changed, "new.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ root, version, platform, epoch, want string }{
		"another version":    {clean, "9.9.9", "linux/amd64", "", "the version is " + api.Version},
		"a changed checkout": {changed, tag, "linux/amd64", "", "new.txt"},
		"no repository":      {t.TempDir(), tag, "linux/amd64", "", "a checkout of Git"},
		"a bad epoch":        {clean, tag, "linux/amd64", "yesterday", "SOURCE_DATE_EPOCH"},
		"an epoch too early": {clean, tag, "linux/amd64", "1", "SOURCE_DATE_EPOCH"},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
		err := release(t.Context(), t.Output(), c.root, t.TempDir(), c.version, []string{c.platform})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	_, err := (&builder{}).release(t.Context(), "plan9/amd64")
	if err == nil || !strings.Contains(err.Error(), "linux/amd64, ") {
		t.Errorf("plan9: error %v, want the platforms of a release", err)
	}
}
