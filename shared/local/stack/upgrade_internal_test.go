package stack

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
)

// An engine of another version keeps a copy of the folder until it has served for a while and can write and read. The
// folder of before, in its place, is that of the version before.
func TestUpgradeIsProven(t *testing.T) {
	root := t.TempDir()
	data := filepath.Join(root, "data")
	before := filepath.Join(data, "before-upgrade")
	run := func() *Stack {
		t.Helper()
		s, err := Start(t.Context(), Options{Data: data})
		must.Succeed(t, err)
		return s
	}
	there := func(want bool) {
		t.Helper()
		if _, err := os.Stat(before); (err == nil) != want {
			t.Fatalf("a copy is there: %v, want %v (%v)", err == nil, want, err)
		}
	}
	must.Succeed(t, run().Close())
	there(false)
	must.Succeed(t, os.WriteFile(filepath.Join(data, "version"), []byte("0.0.9\n"), 0o600)) // an engine of before
	token, err := os.ReadFile(filepath.Join(data, OperatorFile))
	must.Succeed(t, err)
	must.Succeed(t, run().Close())
	there(true)

	must.Succeed(t, errors.Join(os.Rename(before, filepath.Join(root, "before")), os.RemoveAll(data),
		os.Rename(filepath.Join(root, "before"), data)))
	s := run() // another version again
	there(true)
	if text, err := os.ReadFile(filepath.Join(data, OperatorFile)); string(text) != string(token) || err != nil {
		t.Errorf("the operator's token is %q (%v), want that of before", text, err)
	}
	records := &cell{broken: errors.New("the disk is away")}
	check := newHealth(records, func() error { return nil }, time.Now)
	asked := func() int {
		check.mu.Lock()
		defer check.mu.Unlock()
		return records.writes
	}
	s.prove(check, time.Millisecond, slog.New(slog.DiscardHandler))
	wait(t, func() bool { return asked() > 0 })
	there(true)
	check.mu.Lock()
	records.broken, check.at = nil, time.Time{}
	check.mu.Unlock()
	wait(t, func() bool { _, err := os.Stat(before); return err != nil })
	must.Succeed(t, s.Close())
	if text, err := os.ReadFile(filepath.Join(data, "version")); strings.TrimSpace(string(text)) != build() || err != nil {
		t.Errorf("the folder was proven with %q (%v), want %q", text, err, build())
	}
	must.Succeed(t, run().Close())
	there(false)
}

// wait ends the test unless something comes true.
func wait(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come true")
		}
	}
}
