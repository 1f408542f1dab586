package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/command"
	"github.com/affinityengine/affinity/scripts/affinity/contexts"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// A context names an engine, an app and a key; anything that is given takes its place as
// a whole.
func TestContexts(t *testing.T) {
	keyring.MockInit()
	testContexts(t, "keyring")
}

func TestContextsWithoutKeyring(t *testing.T) {
	keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
	testContexts(t, "file")
}

func testContexts(t *testing.T, where string) {
	s := startEngine(t, stack.Options{RetentionDays: 90})
	folder := filepath.Join(t.TempDir(), "affinity")
	for _, variable := range []string{command.URLVariable, command.AppVariable, command.KeyVariable, command.KeyFileVariable} {
		t.Setenv(variable, "")
	}
	run := func(args ...string) ran {
		return affinityWith(t, t.Context(), "", func(tl *program) { tl.Contexts = contexts.New(folder) }, args...)
	}
	run("context", "list").wants(t, cli.ExitOK, "no contexts")
	run("context", "current").wants(t, cli.ExitFailed, "no context is current")
	run("context", "add", "local", "--url", s.URL, "--key", stack.DemoKey).wants(t, cli.ExitOK, "context local is app demo at "+s.URL, "in ")
	run("context", "add", "bad name", "--url", s.URL).wants(t, cli.ExitFailed, "must have 1 to 64 letters")
	run("context", "add", "other", "--url", s.URL, "--key", "wrong").wants(t, cli.ExitOK)
	run("context", "list").wants(t, cli.ExitOK, "*  local", "   other", where)
	run("context", "current").wants(t, cli.ExitOK, "local\n")
	run("events", "refused").wants(t, cli.ExitOK, "no event was refused")
	run("events", "refused", "--context", "other").wants(t, cli.ExitFailed, "401")
	run("events", "refused", "--context", "none").wants(t, cli.ExitUsage, "there is no such context")
	run("events", "refused", "--context", "local", "--url", s.URL).wants(t, cli.ExitUsage, "--context and --url cannot both be given")
	run("context", "use", "other").wants(t, cli.ExitOK)
	run("events", "refused").wants(t, cli.ExitFailed, "401")
	// What is given takes the place of the whole context: its key does not go elsewhere.
	run("events", "refused", "--url", s.URL).wants(t, cli.ExitOK, "no event was refused")
	t.Setenv(command.URLVariable, s.URL)
	run("events", "refused").wants(t, cli.ExitOK, "no event was refused")
	run("events", "refused", "--context", "other").wants(t, cli.ExitFailed, "401")
	run("context", "delete", "other").wants(t, cli.ExitOK)
	run("context", "delete", "other").wants(t, cli.ExitFailed, "no such context")
	run("context", "use", "other").wants(t, cli.ExitFailed, "no such context")
	run("context", "current").wants(t, cli.ExitFailed, "no context is current")
	run("__complete", "context", "use", "").wants(t, cli.ExitOK, "local\n")
	info, err := os.Stat(filepath.Join(folder, "contexts.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may read the file", info.Mode(), err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "contexts.json"))
	if held := string(text); err != nil || (where == "file") != strings.Contains(held, stack.DemoKey) {
		t.Errorf("the file holds %s, %v", held, err)
	}
	must(t, os.WriteFile(filepath.Join(folder, "contexts.json"), []byte("{"), 0o600))
	t.Setenv(command.URLVariable, "")
	run("events", "refused").wants(t, cli.ExitFailed, "read the contexts in ")
	run("version").wants(t, cli.ExitOK)
}
