package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

func TestVersionIsOneLine(t *testing.T) {
	want := "affinity " + api.Version + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	for _, args := range [][]string{{"--version"}, {"version"}} {
		r := affinity(t, "", args...)
		if r.code != cli.ExitOK || r.out != want || r.err != "" {
			t.Errorf("affinity %s: exit code %d, stdout %q, stderr %q; want 0 and %q", args[0], r.code, r.out, r.err, want)
		}
	}
}

func TestVersionNamesTheCommit(t *testing.T) {
	platform := " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for name, c := range map[string]struct {
		settings []debug.BuildSetting
		want     string
	}{
		"no commit":        {nil, ""},
		"clean":            {[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}, " (commit 0123456789ab)"},
		"modified":         {[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}, " (commit 0123456789ab, modified)"},
		"modified, no VCS": {[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}, ""},
	} {
		want := "affinity " + api.Version + c.want + platform
		if got := describe(&debug.BuildInfo{Settings: c.settings}); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got, want := describe(nil), "affinity "+api.Version+platform; got != want {
		t.Errorf("no build information: %q, want %q", got, want)
	}
}

func TestVersionNamesTheModule(t *testing.T) {
	for module, want := range map[string]string{
		"(devel)": "", "v" + api.Version: "",
		"v0.0.0-20261123181534-43894df4b0c1": " (module v0.0.0-20261123181534-43894df4b0c1)",
	} {
		got := describe(&debug.BuildInfo{Main: debug.Module{Version: module}})
		if want := "affinity " + api.Version + want + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH; got != want {
			t.Errorf("%s: %q, want %q", module, got, want)
		}
	}
}
