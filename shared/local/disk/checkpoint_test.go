package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
)

// A copy made while others write opens as a folder. It has what was written before the call, and then each write
// after all that its writer wrote before.
func TestCheckpointUnderWrites(t *testing.T) {
	const writers, each = 4, 300
	dir := filepath.Join(t.TempDir(), "data")
	d, err := Open(dir, joinLines, silent)
	must.Succeed(t, err)
	must.Succeed(t, errors.Join(d.WriteFile("cipher.key", []byte("secret")), d.WriteFile("other", nil)))
	must.Succeed(t, set(d, "before", "1"))
	var load sync.WaitGroup
	half := make(chan bool, writers)
	for w := range writers {
		load.Go(func() {
			for n := range each {
				if n == each/2 {
					half <- true
				}
				if err := set(d, string(rune('a'+w))+strconv.Itoa(n), strconv.Itoa(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range writers {
		<-half
	}
	copied, err := d.Checkpoint("cipher.key", "acme/account")
	must.Succeed(t, err)
	load.Wait()
	must.Succeed(t, d.Close())
	to := filepath.Join(t.TempDir(), "copied")
	must.Succeed(t, os.Rename(copied, to))
	if damage, err := Inspect(to, joinLines, func(_, _ []byte) error { return nil }); len(damage) > 0 || err != nil {
		t.Errorf("damage %v, %v", damage, err)
	}
	d, err = Open(to, joinLines, silent)
	must.Succeed(t, err)
	defer d.Close()
	has := func(key string) bool {
		there, err := d.Get([]byte(key), func([]byte) error { return nil })
		must.Succeed(t, err)
		return there
	}
	if !has("before") {
		t.Error("the copy lacks what was written first")
	}
	for w := range writers {
		n := 0
		for n < each && has(string(rune('a'+w))+strconv.Itoa(n)) {
			n++
		}
		for after := n; after < each; after++ {
			if has(string(rune('a'+w)) + strconv.Itoa(after)) {
				t.Fatalf("the copy has write %d of writer %d and lacks write %d", after, w, n)
			}
		}
		if n < each/2 {
			t.Errorf("the copy has %d writes of writer %d, and %d were acknowledged before", n, w, each/2)
		}
	}
	if text, err := d.ReadFile("cipher.key"); string(text) != "secret" {
		t.Errorf("cipher.key holds %q (%v)", text, err)
	}
	if _, err := d.ReadFile("other"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy has a file that was not asked for (%v)", err)
	}
}

// What a process that was killed has left of a copy goes with the next start.
func TestOpenRemovesCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d, err := Open(dir, joinLines, silent)
	must.Succeed(t, err)
	for range 2 {
		if _, err := d.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	must.Succeed(t, d.Close())
	d, err = Open(dir, joinLines, silent)
	must.Succeed(t, err)
	defer d.Close()
	if _, err := os.Stat(filepath.Join(dir, checkpointDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is still there (%v)", err)
	}
	m, err := InMemory(joinLines, silent)
	must.Succeed(t, err)
	defer m.Close()
	if _, err := m.Checkpoint(); !errors.Is(err, ErrInMemory) {
		t.Errorf("a copy of memory: %v", err)
	}
}
