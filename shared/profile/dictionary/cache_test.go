package dictionary_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile/dictionary"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
)

const app = "shop"

var errFault = errors.New("an injected fault")

// rows is a store in memory whose calls a test can hold or make fail.
type rows struct {
	mu    sync.Mutex
	rows  map[int64][]byte
	calls map[string]int
	gate  func(ctx context.Context, what string) error
}

func newRows() *rows { return &rows{rows: map[int64][]byte{}, calls: map[string]int{}} }

func (r *rows) call(ctx context.Context, what string, do func()) error {
	r.mu.Lock()
	r.calls[what]++
	gate := r.gate
	r.mu.Unlock()
	if gate != nil {
		if err := gate(ctx, what); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	return nil
}

func (r *rows) Dictionaries(ctx context.Context, _ string, limit int) (all []int64, err error) {
	err = r.call(ctx, "list", func() {
		for g := range r.rows {
			all = append(all, g)
		}
	})
	slices.Sort(all)
	slices.Reverse(all)
	return all[:min(limit, len(all))], err
}

func (r *rows) ReadDictionary(ctx context.Context, _ string, g int64) (value []byte, err error) {
	err = r.call(ctx, "read", func() { value = r.rows[g] })
	return value, err
}

func (r *rows) CreateDictionary(ctx context.Context, _ string, g int64, value []byte) (created bool, err error) {
	err = r.call(ctx, "create", func() {
		if _, exists := r.rows[g]; !exists {
			r.rows[g], created = value, true
		}
	})
	return created, err
}

func (r *rows) DeleteDictionary(ctx context.Context, _ string, g int64) error {
	return r.call(ctx, "delete", func() { delete(r.rows, g) })
}

// world is a store, and a clock that caches share.
type world struct {
	*rows
	now time.Time
}

func newWorld() *world {
	return &world{rows: newRows(), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
}

func (w *world) cache(bytes int64) *dictionary.Cache {
	return dictionary.NewCache(w.rows, bytes, func() time.Time { return w.now }, slog.New(slog.DiscardHandler))
}

// users views things of some colors, two each, and name something of their own.
func users(n int, colors ...string) []dictionary.User {
	all := make([]dictionary.User, n)
	for i := range all {
		all[i].Token = fmt.Sprint("user", i)
		for j := range 4 {
			all[i].Events = append(all[i].Events, affinity.Event{Time: int64(1000 * j), Type: event.View, Name: "Product Viewed",
				Counts: []affinity.Count{{Facet: "color", Value: colors[(i+j)%len(colors)], N: 1}, {Facet: "own", Value: fmt.Sprint("secret of ", i), N: 1}}})
		}
	}
	return all
}

func made(generation int64, colors ...string) []byte {
	v := history.NewVocabulary()
	for _, u := range users(9, colors...) {
		for _, e := range u.Events {
			v.Add(u.Token, e)
		}
	}
	return v.Dictionary(generation, history.Limits{}).AppendBinary(nil)
}

// A process reads a dictionary once, however many requests ask for it at a time.
func TestCacheReadsOnce(t *testing.T) {
	w := newWorld()
	w.rows.rows[7] = made(7, "Red", "Blue")
	c, held := w.cache(1<<20), make(chan struct{})
	w.gate = func(context.Context, string) error { <-held; return nil }
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if d, err := c.Of(t.Context(), app).Dictionary(7); err != nil || d.Generation() != 7 {
				t.Error(err)
			}
		})
	}
	close(held)
	all.Wait()
	if w.calls["read"] != 1 {
		t.Errorf("%d readings, want one", w.calls["read"])
	}
}

// A dictionary that is lost or damaged is not a fault, and a fault is not a loss.
func TestLossAndFault(t *testing.T) {
	w := newWorld()
	good := made(8, "Red", "Blue")
	w.rows.rows[8], w.rows.rows[9] = good, good
	w.rows.rows[10] = append(slices.Clone(made(10, "Red", "Blue")), 0)
	newer := slices.Clone(made(11, "Red", "Blue"))
	newer[0] = 200
	w.rows.rows[11] = newer
	c := w.cache(1 << 20)
	of := c.Of(t.Context(), app)
	for _, lost := range []int64{7, 9, 10, 11} { // absent, of another generation, damaged, of a newer version
		for range 2 {
			if d, err := of.Dictionary(lost); d != nil || !errors.Is(err, history.ErrNoDictionary) {
				t.Errorf("%d: %v, %v; want that it is lost", lost, d, err)
			}
		}
	}
	if w.calls["read"] != 4 {
		t.Errorf("%d readings of 4 lost dictionaries", w.calls["read"])
	}
	w.rows.rows[7] = made(7, "Red", "Blue") // as a restored table has it
	w.now = w.now.Add(time.Minute)
	if d, err := of.Dictionary(7); err != nil || d.Generation() != 7 {
		t.Errorf("a minute later: %v", err)
	}
	w.gate = func(context.Context, string) error { return errFault }
	if _, err := of.Dictionary(8); !errors.Is(err, errFault) || errors.Is(err, history.ErrNoDictionary) {
		t.Errorf("while the store fails: %v", err)
	}
	w.gate = nil
	if d, err := of.Dictionary(8); err != nil || d.Generation() != 8 {
		t.Errorf("after the fault: %v", err)
	}
}

// A request that ends while it reads does not fail those that wait for it.
func TestReaderThatEnds(t *testing.T) {
	w := newWorld()
	w.rows.rows[7] = made(7, "Red", "Blue")
	c := w.cache(1 << 20)
	reached, held := make(chan struct{}, 2), make(chan struct{})
	w.gate = func(context.Context, string) error {
		reached <- struct{}{}
		<-held
		return nil
	}
	ctx, end := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	go func() { _, err := c.Of(ctx, app).Dictionary(7); first <- err }()
	<-reached
	go func() { _, err := c.Of(t.Context(), app).Dictionary(7); second <- err }()
	end()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the request that ended: %v", err)
	}
	close(held)
	if err := <-second; err != nil {
		t.Errorf("the one that waits: %v", err)
	}
	if w.calls["read"] != 1 {
		t.Errorf("%d readings, want one", w.calls["read"])
	}
}

func TestCacheIsBounded(t *testing.T) {
	w := newWorld()
	for g := range int64(20) {
		w.rows.rows[g] = made(g, "Red", "Blue")
	}
	c := w.cache(4_000)
	of := c.Of(t.Context(), app)
	for range 2 {
		for g := range int64(20) {
			if _, err := of.Dictionary(g); err != nil {
				t.Fatal(err)
			}
		}
	}
	if read := w.calls["read"]; read < 30 { // which ones stay is up to the library
		t.Errorf("%d readings of 20 dictionaries, twice, with room for a few", read)
	}
}

// A process looks for a newer dictionary once a minute, and keeps to the one that it
// knows while the store fails.
func TestNewest(t *testing.T) {
	w := newWorld()
	c := w.cache(1 << 20)
	want := func(generation int64, listed int) {
		t.Helper()
		d := c.Newest(t.Context(), app)
		if (d == nil) != (generation == 0) || d != nil && d.Generation() != generation || w.calls["list"] != listed {
			t.Errorf("%v after %d lists, want generation %d after %d", d, w.calls["list"], generation, listed)
		}
	}
	want(0, 1)
	w.rows.rows[7] = made(7, "Red", "Blue")
	want(0, 1)
	w.now = w.now.Add(time.Minute)
	want(7, 2)
	w.now = w.now.Add(time.Minute)
	w.gate = func(context.Context, string) error { return errFault }
	want(7, 3)
	w.gate = nil
	want(7, 3)
	w.rows.rows[8] = []byte("damaged")
	w.now = w.now.Add(time.Minute)
	want(0, 4)
	delete(w.rows.rows, 8)
	w.now = w.now.Add(time.Minute)
	want(7, 5)
	w.now = w.now.Add(-time.Hour) // by a clock that was set back
	want(7, 6)
}
