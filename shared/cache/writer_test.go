package cache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
)

// box collects numbers, and takes them out to write them.
type box struct {
	mu      sync.Mutex
	waiting int
	writes  []int
	times   []time.Duration
	start   time.Time
	err     error
	slow    time.Duration
}

func (b *box) write(ctx context.Context) error {
	b.mu.Lock()
	n, slow := b.waiting, b.slow
	b.waiting = 0
	b.times = append(b.times, time.Since(b.start))
	b.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		b.waiting += n
		return b.err
	}
	b.writes = append(b.writes, n)
	return nil
}

func (b *box) waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting > 0
}

func (b *box) add(w *cache.Writer) {
	b.mu.Lock()
	b.waiting++
	b.mu.Unlock()
	w.Add()
}

func (b *box) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func bubble(t *testing.T, test func(t *testing.T, b *box, w *cache.Writer)) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{start: time.Now()}
		w := cache.NewWriter(cache.WriterOptions{
			What: "numbers", Every: time.Second, Longest: 3 * time.Second, Write: b.write, Waits: b.waits, Now: time.Now,
		})
		time.Sleep(time.Minute) // the process has been idle
		b.start = time.Now()
		test(t, b, w)
		time.Sleep(time.Hour)
		if b.waits() {
			t.Error("something waits for ever")
		}
	})
}

// The first addition is written at once, and those of the next second together.
func TestOneWriteInAPeriod(t *testing.T) {
	bubble(t, func(t *testing.T, b *box, w *cache.Writer) {
		for range 25 { // for 2.5 s
			b.add(w)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		b.set(func() {
			if len(b.writes) != 4 || b.writes[0] != 1 || b.writes[1]+b.writes[2]+b.writes[3] != 24 {
				t.Errorf("writes of %v", b.writes)
			}
			for i, at := range b.times {
				if at != time.Duration(i)*time.Second {
					t.Errorf("write %d after %v", i, at)
				}
			}
		})
	})
}

// What comes during a write is written by the next one, and no two run at a time.
func TestAdditionsDuringAWrite(t *testing.T) {
	bubble(t, func(t *testing.T, b *box, w *cache.Writer) {
		b.set(func() { b.slow = 1500 * time.Millisecond })
		b.add(w)
		time.Sleep(time.Second)
		b.add(w)
		if err := w.Flush(t.Context()); err != nil { // it waits for the first write
			t.Error(err)
		}
		b.set(func() {
			if len(b.writes) != 2 || b.times[1] != 1500*time.Millisecond {
				t.Errorf("writes of %v at %v", b.writes, b.times)
			}
			b.slow = time.Hour
		})
		b.add(w)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a flush while a write hangs: %v", err)
		}
	})
}

// While writes fail, the time between them doubles, up to a bound. Nothing is lost.
func TestFailingWrites(t *testing.T) {
	bubble(t, func(t *testing.T, b *box, w *cache.Writer) {
		b.set(func() { b.err = errors.New("away") })
		b.add(w)
		time.Sleep(2 * time.Minute)
		b.set(func() {
			want := []time.Duration{0, 2, 6, 14, 30, 62, 94} // s
			if len(b.times) != len(want) {
				t.Fatalf("writes at %v", b.times)
			}
			for i, at := range want {
				if b.times[i] != at*time.Second {
					t.Errorf("write %d at %v, want %d s", i, b.times[i], at)
				}
			}
			b.err = nil
		})
	})
}

func TestWriteEach(t *testing.T) {
	parts, first := map[int]string{}, errors.New("odd")
	for i := range 100 {
		parts[i] = "x"
	}
	var mu sync.Mutex
	running, most, done := 0, 0, 0
	err := cache.WriteEach(parts, func(i int, _ string) error {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		time.Sleep(time.Microsecond)
		mu.Lock()
		defer mu.Unlock()
		running--
		done++
		if i%2 == 1 {
			return first
		}
		return nil
	})
	if !errors.Is(err, first) || done != 100 || most > 8 {
		t.Errorf("%v; %d writes, up to %d at a time", err, done, most)
	}
	if err := cache.WriteEach(map[int]int{}, func(int, int) error { return first }); err != nil {
		t.Error(err)
	}
}
