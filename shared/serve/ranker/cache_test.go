package ranker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// reader counts the reads of each key, and answers a key with its length.
type reader struct {
	mu    sync.Mutex
	reads map[string]int
	calls int
	err   error
	gate  chan struct{} // nil, or closed when reads may go on
}

func (r *reader) read(_ context.Context, keys []string, values []int) error {
	if r.gate != nil {
		<-r.gate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	for i, k := range keys {
		r.reads[k]++
		values[i] = len(k)
	}
	return r.err
}

func (r *reader) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

type clock struct{ now time.Time }

func newTestCache(maxBytes int) (*cache[string, int], *reader, *clock) {
	at := &clock{time.Unix(0, 0)}
	c := newCache(time.Second, maxBytes, func() time.Time { return at.now }, func(k string, v int) int { return len(k) + v })
	c.due = c.ttl // nothing is read ahead
	return c, &reader{reads: map[string]int{}}, at
}

// want asks for keys, all with one of two hashes.
func want(r *reader, into []int, keys ...string) wanted[string, int] {
	return wanted[string, int]{
		n: len(keys), key: func(i int) string { return keys[i] }, hash: func(i int) uint64 { return uint64(len(keys[i]) % 2) },
		keep: func(k string) string { return k }, read: r.read, take: func(i, v int) { into[i] = v },
	}
}

func getAll(t *testing.T, c *cache[string, int], r *reader, keys ...string) ([]int, error) {
	t.Helper()
	values := make([]int, len(keys))
	return values, c.get(t.Context(), want(r, values, keys...))
}

func TestCacheReadsMissesInOneBatch(t *testing.T) {
	c, r, clock := newTestCache(1 << 20)
	for _, step := range []struct {
		after time.Duration
		keys  []string
		calls int
	}{
		{0, []string{"a", "bb", "ccc"}, 1},
		{0, []string{"ccc", "a"}, 1},
		{500 * time.Millisecond, []string{"a", "dddd", "bb", "e"}, 2},
		{500 * time.Millisecond, []string{"a", "dddd"}, 3}, // a is a second old
		{499 * time.Millisecond, []string{"e", "a"}, 3},
		{0, nil, 3},
	} {
		clock.now = clock.now.Add(step.after)
		values, err := getAll(t, c, r, step.keys...)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range step.keys {
			if values[i] != len(k) {
				t.Errorf("%s = %d, want %d", k, values[i], len(k))
			}
		}
		if r.count() != step.calls {
			t.Errorf("%d reads up to %v, want %d", r.count(), step.keys, step.calls)
		}
	}
	if want := map[string]int{"a": 2, "bb": 1, "ccc": 1, "dddd": 1, "e": 1}; fmt.Sprint(r.reads) != fmt.Sprint(want) {
		t.Errorf("keys read %v, want %v", r.reads, want)
	}
}

func TestCacheStaysWithinItsBytes(t *testing.T) {
	const maxBytes = 3*(entryBytes+20) + 10
	c, r, _ := newTestCache(maxBytes)
	for i := range 100 {
		if _, err := getAll(t, c, r, fmt.Sprintf("%010d", i), fmt.Sprintf("%010d", i+1)); err != nil {
			t.Fatal(err)
		}
		held := 0
		for e := c.entries.oldest; e != nil; e = e.newer {
			held += e.size
		}
		if held != c.bytes || c.bytes > maxBytes {
			t.Fatalf("%d bytes are counted and %d held, want at most %d", c.bytes, held, maxBytes)
		}
	}
	if c.entries.length != 3 || r.count() != 100 {
		t.Errorf("%d entries after %d reads, want 3 entries after 100", c.entries.length, r.count())
	}
}

// A request that alone exceeds the bytes still gets its values.
func TestCacheAnswersMoreThanItHolds(t *testing.T) {
	c, r, _ := newTestCache(entryBytes)
	values, err := getAll(t, c, r, "a", "bb", "ccc")
	if err != nil || !slices.Equal(values, []int{1, 2, 3}) || c.entries.length != 1 {
		t.Errorf("%v, %v; %d entries are kept, want 1", values, err, c.entries.length)
	}
}

func TestCacheSharesConcurrentReads(t *testing.T) {
	c, r, _ := newTestCache(1 << 20)
	r.gate = make(chan struct{})
	first := want(r, nil, "a", "bb")
	missing, _ := c.lookUp(&first, make([]*entry[string, int], 2))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if values, err := getAll(t, c, r, "bb", "a"); err != nil || !slices.Equal(values, []int{2, 1}) {
				t.Errorf("%v, %v", values, err)
			}
		})
	}
	all.Go(func() { c.fetch(t.Context(), missing, r.read) })
	close(r.gate)
	all.Wait()
	if r.count() != 1 {
		t.Errorf("%d reads, want 1", r.count())
	}
}

func TestCacheKeepsNoErrors(t *testing.T) {
	c, r, _ := newTestCache(1 << 20)
	if _, err := getAll(t, c, r, "a"); err != nil {
		t.Fatal(err)
	}
	r.err = errors.New("down")
	if _, err := getAll(t, c, r, "a", "bb"); !errors.Is(err, r.err) {
		t.Errorf("error %v, want %v", err, r.err)
	}
	r.err = nil
	if values, err := getAll(t, c, r, "a", "bb"); err != nil || !slices.Equal(values, []int{1, 2}) {
		t.Errorf("after the error: %v, %v", values, err)
	}
	if r.reads["a"] != 1 || r.reads["bb"] != 2 {
		t.Errorf("keys read %v, want a once and bb twice", r.reads)
	}
}

// A caller that gives up does not end the read that others wait for.
func TestCacheReadOutlivesItsCaller(t *testing.T) {
	c, r, _ := newTestCache(1 << 20)
	r.gate = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.get(ctx, want(r, make([]int, 1), "a")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	close(r.gate)
	if values, err := getAll(t, c, r, "a"); err != nil || values[0] != 1 || r.count() != 1 {
		t.Errorf("%v, %v after %d reads, want 1 after one read", values, err, r.count())
	}
}
