package ranker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/store"
)

// fakeSource answers with one object for each index, after some time.
type fakeSource struct {
	mu         sync.Mutex
	generation string
	slow       time.Duration
	err        error
	objects    map[string]int // by index; one if it has no entry
	manifests  int
	reads      int
	together   int // reads that run at the moment
	most       int
}

func (f *fakeSource) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeSource) manifest(context.Context, indexName) (crowd.Manifest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manifests++
	return crowd.Manifest{Current: crowd.Generation{Name: f.generation, AsOf: 7}}, nil
}

func (f *fakeSource) index(ctx context.Context, ref store.CrowdRef, g crowd.Generation, maxBytes int) (crowd.Index, error) {
	var slow time.Duration
	f.set(func() { f.reads++; f.together++; f.most = max(f.most, f.together); slow = f.slow })
	defer f.set(func() { f.together-- })
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return crowd.Index{}, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return crowd.Index{}, f.err
	}
	x := g.Index()
	x.Counts = map[string]float64{}
	for i := range max(f.objects[ref.Index], 1) {
		x.Counts[fmt.Sprint(i)] = 1
	}
	if x.Size() > maxBytes {
		return crowd.Index{}, crowd.ErrTooLarge
	}
	return x, nil
}

// inBubble runs a test under a clock that does not wait.
func inBubble(t *testing.T, f *fakeSource, test func(t *testing.T, x *indexes, lines func() int)) {
	inBubbleOf(t, f, indexBytes, test)
}

// inBubbleOf is inBubble with a bound of the memory.
func inBubbleOf(t *testing.T, f *fakeSource, maxBytes int, test func(t *testing.T, x *indexes, lines func() int)) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		x := newIndexes(f, maxBytes, slog.New(slog.NewTextHandler(&log, nil)), time.Now)
		test(t, x, func() int { synctest.Wait(); return strings.Count(log.String(), "\n") })
		time.Sleep(time.Hour) // reads that run end
	})
}

// ask checks the generation that a request gets and how long it waits.
func ask(t *testing.T, x *indexes, index, generation string, wait time.Duration) {
	t.Helper()
	began := time.Now()
	got, err := x.get(t.Context(), "app", index)
	if took := time.Since(began); err != nil || got.ref.Generation != generation || took != wait {
		t.Errorf("generation %q after %v, error %v; want %q after %v", got.ref.Generation, took, err, generation, wait)
	}
}

func TestFirstRequestsWaitForStatistics(t *testing.T) {
	f := &fakeSource{generation: "g1", slow: time.Second}
	inBubble(t, f, func(t *testing.T, x *indexes, lines func() int) {
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { ask(t, x, "i", "g1", time.Second) })
		}
		all.Wait()
		ask(t, x, "i", "g1", 0)
		if f.reads != 1 || lines() != 0 {
			t.Errorf("%d reads and %d log lines, want 1 and 0", f.reads, lines())
		}
	})
}

// A slow table delays the requests of its first read, and logs once.
func TestSlowStatisticsAreNotWaitedFor(t *testing.T) {
	f := &fakeSource{generation: "g1", slow: 5 * time.Second}
	inBubble(t, f, func(t *testing.T, x *indexes, lines func() int) {
		ask(t, x, "i", "", firstWait)
		for range 10 {
			ask(t, x, "i", "", 0)
		}
		if lines() != 1 {
			t.Errorf("%d log lines, want 1", lines())
		}
		time.Sleep(5 * time.Second)
		ask(t, x, "i", "g1", 0) // what has come in the meantime
	})
}

// While a new generation is read, the old one serves.
func TestOldGenerationServes(t *testing.T) {
	f := &fakeSource{generation: "g1"}
	inBubble(t, f, func(t *testing.T, x *indexes, _ func() int) {
		ask(t, x, "i", "g1", 0)
		f.set(func() { f.generation, f.slow = "g2", 3*time.Second })
		ask(t, x, "i", "g1", 0)
		time.Sleep(checkEvery)
		ask(t, x, "i", "g1", nextWait)
		ask(t, x, "i", "g1", 0)
		time.Sleep(3 * time.Second)
		ask(t, x, "i", "g2", 0)
		if f.reads != 2 || f.manifests != 3 && f.manifests != 2 {
			t.Errorf("%d reads and %d manifests", f.reads, f.manifests)
		}
	})
}

// An index that is used is looked after ahead of time, so that no request waits for a newer
// generation.
func TestStatisticsAreReadAhead(t *testing.T) {
	f := &fakeSource{generation: "g1"}
	inBubble(t, f, func(t *testing.T, x *indexes, _ func() int) {
		ask(t, x, "i", "g1", 0)
		for g := range 5 {
			name := fmt.Sprint("g", g+2)
			f.set(func() { f.generation, f.slow = name, 500*time.Millisecond })
			for range 49 { // a request each 100 ms
				time.Sleep(100 * time.Millisecond)
				began := time.Now()
				if _, err := x.get(t.Context(), "app", "i"); err != nil || time.Since(began) != 0 {
					t.Fatalf("a request waits %v, error %v", time.Since(began), err)
				}
			}
			ask(t, x, "i", name, 0)
		}
	})
}

// An error is kept, longer each time, and logged once for each read.
func TestErrorsOfStatisticsAreKept(t *testing.T) {
	f := &fakeSource{generation: "g1", err: errors.New("damaged")}
	inBubble(t, f, func(t *testing.T, x *indexes, lines func() int) {
		for range 600 { // a minute
			ask(t, x, "i", "", 0)
			time.Sleep(100 * time.Millisecond)
		}
		if f.reads != 4 || lines() != 4 { // after 0, 5, 15 and 35 s
			t.Errorf("%d reads and %d log lines in a minute, want 4", f.reads, lines())
		}
		f.set(func() { f.err = nil })
		time.Sleep(retryLast)
		ask(t, x, "i", "g1", 0)
		f.set(func() { f.generation, f.err = "g2", errors.New("damaged") })
		time.Sleep(checkEvery)
		ask(t, x, "i", "g1", 0) // which stays
	})
}

// An index that exceeds the memory is read once for each generation.
func TestTooLargeIndexIsRefused(t *testing.T) {
	f := &fakeSource{generation: "g1", objects: map[string]int{"large": 1000}}
	inBubble(t, f, func(t *testing.T, x *indexes, lines func() int) {
		x.maxBytes = 10_000
		for range 100 {
			ask(t, x, "large", "", 0)
			ask(t, x, "small", "g1", 0)
			time.Sleep(checkEvery)
		}
		if f.reads != 2 || lines() != 1 {
			t.Errorf("%d reads and %d log lines, want 2 and 1", f.reads, lines())
		}
		f.set(func() { f.generation, f.objects = "g2", nil })
		ask(t, x, "large", "g2", 0)
	})
}

// The statistics in memory stay within the bound, and one index is read at a
// time.
func TestIndexesStayWithinTheirBytes(t *testing.T) {
	f := &fakeSource{generation: "g1", slow: time.Millisecond, objects: map[string]int{}}
	for i := range 20 {
		f.objects[fmt.Sprint(i)] = 20
	}
	maxBytes := 5 * (cache.EntryBytes + slotBytes + 2000)
	inBubbleOf(t, f, maxBytes, func(t *testing.T, x *indexes, _ func() int) {
		for range 3 {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					if got, err := x.get(t.Context(), "app", fmt.Sprint(i)); err != nil || len(got.counts) != 20 {
						t.Errorf("%d counts, error %v", len(got.counts), err)
					}
				})
			}
			all.Wait()
			if x.slots.Bytes() > maxBytes || x.slots.Len() < 3 {
				t.Errorf("%d bytes of %d indexes, want at most %d", x.slots.Bytes(), x.slots.Len(), maxBytes)
			}
			time.Sleep(checkEvery)
		}
		if f.most != 1 {
			t.Errorf("%d indexes were read at a time, want 1", f.most)
		}
	})
}
