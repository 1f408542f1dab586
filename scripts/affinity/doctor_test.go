package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/checkup"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// diagnosed runs the command with --json and returns its checks by name.
func diagnosed(t *testing.T, code int, args ...string) map[string]checkup.Check {
	t.Helper()
	r := affinity(t, "", append([]string{"doctor", "--json"}, args...)...)
	r.wants(t, code)
	var answer struct{ Checks []checkup.Check }
	must(t, json.Unmarshal([]byte(r.out), &answer))
	checks := map[string]checkup.Check{}
	for _, c := range answer.Checks {
		if checks[c.Name] = c; c.State == checkup.Fault && c.Remedy == "" {
			t.Errorf("the fault %q has no remedy", c.Text)
		}
	}
	return checks
}

func TestDoctorNamesFaultsAndTheirRemedies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := startEngine(t, stack.Options{Data: dir})
	found := diagnosed(t, cli.ExitFailed, "--url", s.URL, "--data", dir)
	for name, want := range map[string]checkup.State{
		"engine": checkup.OK, "version": checkup.OK, "clock": checkup.OK, "key": checkup.OK, "folder": checkup.OK,
		checkup.Strategy: checkup.Fault, checkup.Events: checkup.Fault, checkup.DeadLetters: checkup.OK,
		checkup.Statistics: checkup.OK, checkup.Folds: checkup.OK, checkup.Keys: checkup.OK,
	} {
		if found[name].State != want {
			t.Errorf("%s: %+v, want %s", name, found[name], want)
		}
	}
	affinity(t, "", "doctor", "--url", s.URL).wants(t, cli.ExitFailed, "fault    strategy", "-> affinity strategy suggest")

	set := file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":10}],
		"facetsScoring":[{"facetName":"brand","score":100}],"personalizationImpact":50}`)
	shoe := file(t, "objects.ndjson", `{"objectID":"shoe-1","brand":"Acme"}`)
	for _, args := range [][]string{
		{"strategy", "set", set},
		{"catalog", "import", shoe},
		{"events", "send", "ann", "--object", "shoe-1"},
		{"crowd", "build"},
	} {
		affinity(t, "", append(args, "--url", s.URL)...).wants(t, cli.ExitOK)
	}
	var last string
	err := cli.Poll(t.Context(), 30*time.Second, func() (bool, error) { // counts of events are written every 5 seconds
		r := affinity(t, "", "doctor", "--url", s.URL)
		last = r.out + r.err
		return r.code == cli.ExitOK && strings.HasSuffix(r.out, "\nno faults\n"), nil
	})
	if err != nil {
		t.Errorf("after a remedy for each fault: %s", last)
	}
}

func TestDoctorWithoutAnAnswer(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	affinity(t, "", "doctor", "--url", closed.URL).wants(t, cli.ExitFailed, "fault    engine", "-> affinity up")

	s := startEngine(t, stack.Options{})
	found := diagnosed(t, cli.ExitFailed, "--url", s.URL, "--key", "another")
	if c := found["key"]; c.State != checkup.Fault || len(found) != 4 {
		t.Errorf("with a key that the engine does not know: %v", found)
	}

	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(3*time.Minute).UTC().Format(http.TimeFormat))
		if r.URL.Path == "/health" {
			answer(w, http.StatusOK, api.Health{Status: 200, Version: "9.9.9"})
			return
		}
		answer(w, http.StatusForbidden, api.Error{Status: 403, Message: "Method not allowed with this API key"})
	}))
	defer slow.Close()
	found = diagnosed(t, cli.ExitFailed, "--url", slow.URL)
	for name, want := range map[string]checkup.State{
		"version": checkup.Fault, "clock": checkup.Fault, "key": checkup.Unknown, checkup.Strategy: checkup.Unknown,
		checkup.Events: checkup.Unknown, checkup.Keys: checkup.Unknown,
	} {
		if found[name].State != want {
			t.Errorf("%s: %+v, want %s", name, found[name], want)
		}
	}
}

func TestDoctorOfAFolder(t *testing.T) {
	s := startEngine(t, stack.Options{})
	dir := t.TempDir()
	if c := diagnosed(t, cli.ExitFailed, "--url", s.URL, "--data", dir)["folder"]; c.State != checkup.Unknown {
		t.Errorf("an empty folder: %+v", c)
	}
	must(t, os.WriteFile(filepath.Join(dir, "format"), []byte("999\n"), 0o600))
	if c := diagnosed(t, cli.ExitFailed, "--url", s.URL, "--data", dir)["folder"]; c.State != checkup.Fault ||
		!strings.Contains(c.Text, "has format 999") {
		t.Errorf("a folder of a later version: %+v", c)
	}
}

// The help lists every command under a heading.
func TestHelpHasGroups(t *testing.T) {
	r := affinity(t, "", "--help")
	r.wants(t, cli.ExitOK, "Run an engine:", "Data in and out:", "Profiles, orders and feeds:", "Judge and measure:", "Operate:")
	if _, rest, found := strings.Cut(r.out, "Additional Commands:"); found && len(strings.Fields(rest)) > 0 {
		rest, _, _ = strings.Cut(rest, "Flags:")
		for _, line := range strings.Split(strings.TrimSpace(rest), "\n") {
			if name := strings.Fields(line)[0]; name != "completion" && name != "help" {
				t.Errorf("the command %s has no group", name)
			}
		}
	}
}
