package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

func (r *reader) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *reader) read(ctx context.Context, keys []string) (map[string]int, error) {
	r.mu.Lock()
	gate := r.gate
	r.calls++
	r.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	values := map[string]int{}
	for _, k := range keys {
		r.reads[k]++
		values[k] = len(k)
	}
	return values, r.err
}

func (r *reader) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// each runs a test in a bubble, whose clock does not wait, for each storage. Who looks at the
// clock later sees a later time.
func each(t *testing.T, o Options[string, int], test func(t *testing.T, c *reads[string, int], r *reader)) {
	var looks atomic.Int64
	o.Fresh, o.Now = time.Second, func() time.Time { return time.Now().Add(time.Duration(looks.Add(1))) }
	o.Size = func(k string, v int) int { return len(k) + v }
	if o.Bytes == 0 {
		o.Bytes = 1 << 20
	}
	for name, hash := range map[string]func(string) uint64{
		"map": nil, "table": func(k string) uint64 { return uint64(len(k) % 2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := o
				o.Hash = hash
				test(t, newReads(o), &reader{reads: map[string]int{}})
				time.Sleep(2 * readTimeout) // reads that hang end
			})
		})
	}
}

func getAll(ctx context.Context, c *reads[string, int], r *reader, keys ...string) ([]int, error) {
	found, err := c.Get(ctx, Ask[string, int]{Group: "app", Keys: keys, Load: r.read})
	values := make([]int, len(found))
	for i, e := range found {
		if values[i] = -1; e != nil {
			values[i] = e.Value
		}
	}
	return values, err
}

// want checks that a call gets the values of all keys, and how many reads there were then.
func want(t *testing.T, c *reads[string, int], r *reader, reads int, keys ...string) {
	t.Helper()
	values, err := getAll(t.Context(), c, r, keys...)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if values[i] != len(k) {
			t.Errorf("%s = %d, want %d", k, values[i], len(k))
		}
	}
	if synctest.Wait(); r.count() != reads {
		t.Errorf("%d reads up to %v, want %d", r.count(), keys, reads)
	}
}

func TestMissesAreReadInOneBatch(t *testing.T) {
	each(t, Options[string, int]{}, func(t *testing.T, c *reads[string, int], r *reader) {
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
			time.Sleep(step.after)
			want(t, c, r, step.calls, step.keys...)
		}
		if want := map[string]int{"a": 2, "bb": 1, "ccc": 1, "dddd": 1, "e": 1}; fmt.Sprint(r.reads) != fmt.Sprint(want) {
			t.Errorf("keys read %v, want %v", r.reads, want)
		}
	})
}

func TestReadsStayWithinTheirBytes(t *testing.T) {
	const maxBytes = 3*(EntryBytes+20) + 10
	each(t, Options[string, int]{Bytes: maxBytes}, func(t *testing.T, c *reads[string, int], r *reader) {
		for i := range 100 {
			if _, err := getAll(t.Context(), c, r, fmt.Sprintf("%010d", i), fmt.Sprintf("%010d", i+1)); err != nil {
				t.Fatal(err)
			}
			held, counted := 0, 0
			switch kept := c.kept.(type) {
			case *table[string, int]:
				counted = kept.bytes
				for s := kept.oldest; s != nil; s = s.newer {
					held += s.size
				}
			case entries[string, int]:
				counted, held = kept.m.Bytes(), kept.m.Len()*(EntryBytes+20)
			}
			if held != counted || held > maxBytes || held < EntryBytes {
				t.Fatalf("%d bytes are counted and %d held, want at most %d", counted, held, maxBytes)
			}
		}
	})
}

// A call that alone exceeds the bytes still gets its values.
func TestMoreThanIsKept(t *testing.T) {
	each(t, Options[string, int]{Bytes: EntryBytes}, func(t *testing.T, c *reads[string, int], r *reader) {
		want(t, c, r, 1, "a", "bb", "ccc")
	})
}

// Calls at the same time read each key once, whatever other keys they name.
func TestConcurrentCallsShareReads(t *testing.T) {
	each(t, Options[string, int]{}, func(t *testing.T, c *reads[string, int], r *reader) {
		r.gate = make(chan struct{})
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() {
				keys := []string{"a", fmt.Sprint(i % 20), fmt.Sprint(i % 7)}
				if _, err := getAll(t.Context(), c, r, keys...); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(r.gate)
		all.Wait()
		for k, n := range r.reads {
			if n != 1 {
				t.Errorf("%s was read %d times, want once", k, n)
			}
		}
		if len(r.reads) != 21 {
			t.Errorf("%d keys were read, want 21", len(r.reads))
		}
	})
}

// A call that has looked before another one, and is slower, joins the read of that one.
func TestSlowerCallJoins(t *testing.T) {
	each(t, Options[string, int]{}, func(t *testing.T, c *reads[string, int], r *reader) {
		r.gate = make(chan struct{})
		now, looked, other := c.Now, false, make(chan error, 1)
		c.Now = func() time.Time {
			at := now()
			if !looked {
				looked = true
				go func() { _, err := getAll(t.Context(), c, r, "a"); other <- err }()
				synctest.Wait()
				close(r.gate)
			}
			return at
		}
		want(t, c, r, 1, "a")
		if err := <-other; err != nil {
			t.Error(err)
		}
	})
}

func TestErrorsAreNotKept(t *testing.T) {
	each(t, Options[string, int]{}, func(t *testing.T, c *reads[string, int], r *reader) {
		want(t, c, r, 1, "a")
		r.err = errors.New("down")
		if values, err := getAll(t.Context(), c, r, "a", "bb"); !errors.Is(err, r.err) || !slices.Equal(values, []int{1, -1}) {
			t.Errorf("%v, %v; want the one that is kept, and %v", values, err, r.err)
		}
		r.err = nil
		want(t, c, r, 3, "a", "bb")
		if r.reads["a"] != 1 || r.reads["bb"] != 2 {
			t.Errorf("keys read %v, want a once and bb twice", r.reads)
		}
	})
}

// A read may fail because of the call that began it. Those that waited for it try once more.
func TestFailureOfAnotherCall(t *testing.T) {
	each(t, Options[string, int]{}, func(t *testing.T, c *reads[string, int], r *reader) {
		gate, refused := make(chan struct{}), errors.New("the other keys of this call are too large")
		first := make(chan error, 1)
		go func() {
			_, err := c.Get(t.Context(), Ask[string, int]{Keys: []string{"a", "large"}, Load: func(context.Context, []string) (map[string]int, error) {
				<-gate
				return nil, refused
			}})
			first <- err
		}()
		synctest.Wait()
		second := make(chan error, 1)
		go func() {
			_, err := getAll(t.Context(), c, r, "a")
			second <- err
		}()
		synctest.Wait()
		close(gate)
		if err := <-first; !errors.Is(err, refused) {
			t.Errorf("the call that was refused: %v", err)
		}
		if err := <-second; err != nil || r.count() != 1 {
			t.Errorf("the call that waited: %v after %d reads", err, r.count())
		}
	})
}

// A caller that gives up does not end the read that others wait for.
func TestReadOutlivesItsCall(t *testing.T) {
	each(t, Options[string, int]{}, func(t *testing.T, c *reads[string, int], r *reader) {
		r.gate = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := getAll(ctx, c, r, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
		close(r.gate)
		want(t, c, r, 1, "a")
	})
}

// What is used before its end is read again while calls go on with what is there.
func TestReadAhead(t *testing.T) {
	each(t, Options[string, int]{Ahead: true}, func(t *testing.T, c *reads[string, int], r *reader) {
		get := func(after time.Duration, reads int, keys ...string) {
			t.Helper()
			time.Sleep(after)
			want(t, c, r, reads, keys...)
		}
		get(0, 1, "a", "bb")
		get(799*time.Millisecond, 1, "a", "bb")
		r.gate = make(chan struct{})
		time.Sleep(time.Millisecond)
		want(t, c, r, 2, "a") // waits for no read
		close(r.gate)
		synctest.Wait()
		get(199*time.Millisecond, 2, "a")  // 199 ms old
		get(time.Millisecond, 3, "bb")     // 1 s old
		get(599*time.Millisecond, 3, "a")  // 799 ms old
		get(time.Millisecond, 5, "a", "x") // x is missing, a is due
	})
}

// A value that cannot be read ahead serves until its end, and then as long as Stale says, to
// calls that permit it.
func TestStale(t *testing.T) {
	each(t, Options[string, int]{Ahead: true, Stale: time.Minute, Wait: 100 * time.Millisecond}, func(t *testing.T, c *reads[string, int], r *reader) {
		want(t, c, r, 1, "a")
		down := errors.New("down")
		r.set(func() { r.err = down })
		time.Sleep(999 * time.Millisecond)
		want(t, c, r, 2, "a") // as if nothing were
		time.Sleep(time.Millisecond)
		for range 50 {
			if values, err := getAll(t.Context(), c, r, "a"); err == nil || values[0] != 1 {
				t.Fatalf("%v, %v; want the older value and why", values, err)
			}
			if _, err := c.Get(t.Context(), Ask[string, int]{Keys: []string{"a"}, Load: r.read, Exact: true}); !errors.Is(err, down) {
				t.Fatalf("an exact call: %v", err)
			}
			time.Sleep(time.Second)
		}
		r.set(func() { r.err, r.gate = nil, make(chan struct{}) })
		time.Sleep(pause)
		for i, wait := range []time.Duration{100 * time.Millisecond, 0} {
			began := time.Now()
			if values, err := getAll(t.Context(), c, r, "a"); !errors.Is(err, errSlow) || values[0] != 1 || time.Since(began) != wait {
				t.Errorf("slow call %d: %v, %v after %v", i, values, err, time.Since(began))
			}
		}
		time.Sleep(7 * time.Second)
		if values, err := getAll(t.Context(), c, r, "a"); err == nil || values[0] != -1 {
			t.Errorf("after %v: %v, %v", time.Minute, values, err)
		}
	})
}

// A change takes the place of a read that may not have seen it.
func TestChanges(t *testing.T) {
	each(t, Options[string, int]{}, func(t *testing.T, c *reads[string, int], r *reader) {
		for what, change := range map[string]func(){"evicted": func() { c.Evict("a") }, "set": func() { c.Set("a", 1) }} {
			r.set(func() { r.gate = make(chan struct{}) })
			before := make(chan error, 1)
			go func() { _, err := getAll(t.Context(), c, r, "a"); before <- err }()
			synctest.Wait()
			change()
			gate := r.gate
			r.set(func() { r.gate = nil })
			reads := r.count()
			if what == "evicted" {
				reads++
			}
			want(t, c, r, reads, "a")
			close(gate)
			if err := <-before; err != nil {
				t.Error(err)
			}
			want(t, c, r, reads, "a")
			c.Evict("a")
		}
	})
}

func TestPrefetch(t *testing.T) {
	each(t, Options[string, int]{}, func(t *testing.T, c *reads[string, int], r *reader) {
		for range 3 {
			c.Prefetch(t.Context(), "a", Ask[string, int]{Load: r.read})
		}
		synctest.Wait()
		want(t, c, r, 1, "a")
		if v, ok := c.Last("a"); v != 1 || !ok {
			t.Errorf("%d, %v", v, ok)
		}
	})
}
