package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// filledFolder makes a data folder whose tables hold what fill gives an app, and whose log holds
// some objects more. It returns the lines of the app's dump, too.
func filledFolder(t *testing.T) (dir string, dump []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	use := func(do func(*client.Client, string)) {
		s, err := stack.Start(t.Context(), stack.Options{Data: dir, Apps: []stack.App{{ID: "demo", Key: stack.DemoKey}}})
		must(t, err)
		c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: stack.DemoKey})
		must(t, err)
		do(c, s.URL)
		must(t, errors.Join(s.Idle(t.Context()), s.Close()))
	}
	use(func(c *client.Client, _ string) { fill(t, c) })
	use(func(c *client.Client, url string) { // what was in the log is in tables now
		_, err := c.Catalog().Batch(t.Context(), "late", api.BatchAction{Action: api.ActionAddObject, Body: []byte(`{"objectID":"late","color":"Grey"}`)})
		must(t, err)
		path := filepath.Join(t.TempDir(), "dump")
		affinity(t, "", "dump", "--out", path, "--url", url).wants(t, cli.ExitOK)
		dump = dumpOf(t, path)
	})
	return dir, dump
}

// filesOf returns the files of Pebble in a data folder that match a pattern, the largest first.
func filesOf(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "db", pattern))
	must(t, err)
	size := func(name string) int {
		info, err := os.Stat(name)
		must(t, err)
		return int(info.Size())
	}
	slices.SortFunc(names, func(a, b string) int { return size(b) - size(a) })
	if len(names) == 0 {
		t.Fatalf("no %s in %s", pattern, dir)
	}
	return names
}

func TestDataOfADamagedFolder(t *testing.T) {
	dir, before := filledFolder(t)
	affinity(t, "", "data", "check", dir).wants(t, cli.ExitOK, "values can be read", "are in order")
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		says   string
		all    bool // comes back
		late   bool // what the log alone holds does
	}{
		"options cut": {func(t *testing.T, dir string) { must(t, os.Truncate(filesOf(t, dir, "OPTIONS-*")[0], 300)) }, "the options of the database cannot be read", true, true},
		"table cut": {func(t *testing.T, dir string) {
			for _, name := range filesOf(t, dir, "*.sst") {
				must(t, os.Truncate(name, 200))
			}
		}, "cannot be read", false, true},
		"table missing": {func(t *testing.T, dir string) { must(t, os.Remove(filesOf(t, dir, "*.sst")[0])) }, "is missing", false, true},
		"bit of the log": {func(t *testing.T, dir string) {
			// Damage in a log that is not the last one is never a torn end.
			name := filesOf(t, dir, "*.log")[0]
			log, err := os.ReadFile(name)
			must(t, err)
			log[bytes.Index(log, []byte("Grey"))] ^= 1
			must(t, errors.Join(os.WriteFile(name, log, 0o600), os.WriteFile(filepath.Join(dir, "db", "900000.log"), nil, 0o600)))
		}, "the log of the latest writes is damaged", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			damaged, to := filepath.Join(t.TempDir(), "damaged"), filepath.Join(t.TempDir(), "new")
			must(t, os.CopyFS(damaged, os.DirFS(dir)))
			c.damage(t, damaged)
			affinity(t, "", "data", "check", damaged).wants(t, cli.ExitFailed, c.says, "affinity data salvage "+damaged)
			o := stack.Options{Data: damaged, Apps: []stack.App{{ID: "demo", Key: stack.DemoKey}}}
			if _, err := stack.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "affinity data check "+damaged) {
				t.Errorf("starts with it: %v", err)
			}
			affinity(t, "", "data", "salvage", damaged, to).wants(t, cli.ExitOK, c.says, "affinity up --data "+to)
			affinity(t, "", "data", "check", to).wants(t, cli.ExitOK, "are in order")
			affinity(t, "", "data", "salvage", damaged, to).wants(t, cli.ExitFailed, "name a new or an empty one")
			s := startEngine(t, stack.Options{Data: to})
			path := filepath.Join(t.TempDir(), "dump")
			affinity(t, "", "dump", "--out", path, "--url", s.URL).wants(t, cli.ExitOK)
			after := dumpOf(t, path)
			t.Logf("%d of %d lines of the dump come back", len(after), len(before))
			if c.all != slices.Equal(after, before) {
				t.Errorf("of %d lines of the dump %d come back", len(before), len(after))
			}
			if late := slices.ContainsFunc(after, func(line string) bool { return strings.Contains(line, "Grey") }); late != c.late {
				t.Errorf("what the log alone holds comes back: %v, want %v", late, c.late)
			}
			for _, line := range after { // a table that is lost leaves older settings of another one
				if !slices.Contains(before, line) && !strings.HasPrefix(line, `{"exportEnd":`) && !strings.HasPrefix(line, `{"exportedSettings":`) {
					t.Errorf("a line that the app never had: %s", line)
				}
			}
		})
	}
}

// TestDataOfALostKey takes cipher.key from a folder, or replaces it.
func TestDataOfALostKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	o := stack.Options{Data: dir, Apps: []stack.App{{ID: "demo", Key: stack.DemoKey}}}
	restart := func(says string) {
		t.Helper()
		s, err := stack.Start(t.Context(), o)
		if err == nil {
			err = s.Close()
		}
		if text := fmt.Sprint(err); says == "" && err != nil || !strings.Contains(text, says) {
			t.Errorf("starts: %v, want %q", err, says)
		}
	}
	restart("")
	key := filepath.Join(dir, "cipher.key")
	own, err := os.ReadFile(key)
	must(t, err)
	affinity(t, "", "data", "rekey", dir).wants(t, cli.ExitFailed, "nothing is to be done")
	for what, change := range map[string]func() error{
		"is missing":         func() error { return os.Remove(key) },
		"is not the one":     func() error { return os.WriteFile(key, bytes.Repeat([]byte{1}, len(own)), 0o600) },
		"has 3 bytes, want ": func() error { return os.WriteFile(key, own[:3], 0o600) },
	} {
		must(t, change())
		restart("cipher.key of the data folder " + what)
		affinity(t, "", "data", "check", dir).wants(t, cli.ExitFailed, what, "affinity data rekey", "all else is in order")
		must(t, os.WriteFile(key, own, 0o600))
		restart("")
	}
	must(t, os.Remove(key))
	affinity(t, "", "data", "rekey", dir).wants(t, cli.ExitOK, "new cipher.key")
	restart("")
	affinity(t, "", "data", "check", dir).wants(t, cli.ExitOK, "in order")
}

func TestDataOfNoFolder(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"check", none}, {"salvage", none, filepath.Join(t.TempDir(), "new")}, {"rekey", none}} {
		affinity(t, "", append([]string{"data"}, args...)...).wants(t, cli.ExitFailed, none)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("a command has made the folder")
	}
	s := filepath.Join(t.TempDir(), "used")
	startEngine(t, stack.Options{Data: s})
	affinity(t, "", "data", "check", s).wants(t, cli.ExitFailed, "is in use by another process")
}
