package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/affinityengine/affinity/shared/api"
)

const modulePath = "github.com/affinityengine/affinity"

// TestGoInstall installs the tool from a module proxy that serves the tag of a
// repository, as a machine without a checkout does.
func TestGoInstall(t *testing.T) {
	takesMinutes(t)
	proxy, bin := proxyOf(t, tagged(t)), t.TempDir()
	cache := run(t, "", nil, "go", "env", "GOMODCACHE")
	run(t, t.TempDir(), []string{
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download"), "GOSUMDB=off", "GOWORK=off",
		"GOMODCACHE=" + t.TempDir(), // the user's may hold the version of a real release
		// With these flags Go finds most packages compiled: the archives have them too.
		"GOFLAGS=-trimpath -tags=disable_grpc_modules -modcacherw", "CGO_ENABLED=0", "GOBIN=" + bin,
	}, "go", "install", modulePath+"/scripts/affinity@"+tag)
	got := run(t, "", nil, filepath.Join(bin, "affinity"), "--version")
	if want := "affinity " + api.Version + " "; !strings.HasPrefix(got, want+runtime.Version()) {
		t.Errorf("affinity --version says %q, want %q and Go's version", got, want)
	}
	if got := run(t, "", nil, "go", "version", "-m", filepath.Join(bin, "affinity")); !strings.Contains(got, modulePath+"\t"+tag) {
		t.Errorf("the binary is not one of %s:\n%s", tag, got)
	}
}

// TestNoReplacedModules: Go installs no module of another's go.mod that replaces
// or excludes modules.
func TestNoReplacedModules(t *testing.T) {
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(file.Replace) + len(file.Exclude); n != 0 {
		t.Errorf("go.mod replaces or excludes %d modules, so `go install` refuses it", n)
	}
}

// proxyOf returns a folder that serves the tag of a repository as a module proxy.
func proxyOf(t *testing.T, repository string) string {
	t.Helper()
	proxy := t.TempDir()
	dir := filepath.Join(proxy, modulePath, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Create(filepath.Join(dir, tag+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.CreateFromVCS(packed, module.Version{Path: modulePath, Version: tag}, repository, tag, ""); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]string{"Version": tag, "Time": "2026-11-23T12:00:00Z"})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"list": []byte(tag + "\n"), tag + ".info": info} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copyFile(t, filepath.Join(repository, "go.mod"), filepath.Join(dir, tag+".mod"))
	return proxy
}
