package ranker

import (
	"errors"
	"testing"
	"time"
)

// refreshed waits until no entry is read ahead.
func refreshed(c *cache[string, int]) {
	for c.refreshing.Load() {
		time.Sleep(time.Millisecond)
	}
}

// What is used before its end is read again while calls go on with what is there.
func TestCacheReadsAhead(t *testing.T) {
	c, r, clock := newTestCache(1 << 20)
	c.due = 800 * time.Millisecond
	get := func(after time.Duration, calls int, keys ...string) {
		t.Helper()
		clock.now = clock.now.Add(after)
		values, err := getAll(t, c, r, keys...)
		for i, k := range keys {
			if err != nil || values[i] != len(k) {
				t.Fatalf("%s = %d, %v", k, values[i], err)
			}
		}
		if refreshed(c); r.count() != calls {
			t.Fatalf("%d reads, want %d", r.count(), calls)
		}
	}
	get(0, 1, "a", "bb")
	get(799*time.Millisecond, 1, "a", "bb")
	r.gate = make(chan struct{})
	clock.now = clock.now.Add(time.Millisecond)
	if values, err := getAll(t, c, r, "a"); err != nil || values[0] != 1 { // waits for no read
		t.Fatal(values, err)
	}
	close(r.gate)
	refreshed(c)
	get(199*time.Millisecond, 2, "a")  // 199 ms old
	get(time.Millisecond, 3, "bb")     // 1 s old
	get(599*time.Millisecond, 3, "a")  // 799 ms old
	get(time.Millisecond, 5, "a", "x") // x is missing, a is due
}

// A value that cannot be read ahead serves until its end, and no longer.
func TestCacheFailsToReadAhead(t *testing.T) {
	c, r, clock := newTestCache(1 << 20)
	c.due = 800 * time.Millisecond
	if _, err := getAll(t, c, r, "a"); err != nil {
		t.Fatal(err)
	}
	r.err = errors.New("down")
	clock.now = clock.now.Add(999 * time.Millisecond)
	if values, err := getAll(t, c, r, "a"); err != nil || values[0] != 1 {
		t.Errorf("a value of 999 ms: %v, %v", values, err)
	}
	refreshed(c)
	clock.now = clock.now.Add(time.Millisecond)
	if _, err := getAll(t, c, r, "a"); !errors.Is(err, r.err) {
		t.Errorf("a value of 1 s: error %v, want %v", err, r.err)
	}
	if r.count() != 3 {
		t.Errorf("%d reads, want 3", r.count())
	}
}
