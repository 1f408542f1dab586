package refused

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/store"
)

// written is a store that keeps what it is given, or fails.
type written struct {
	mu    sync.Mutex
	fails bool
	gate  chan struct{} // nil: no write waits
	lists []store.Refusals
}

func (w *written) RecordRefused(ctx context.Context, _ string, _ time.Time, r store.Refusals) error {
	if w.gate != nil {
		select {
		case <-w.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails {
		return errors.New("away")
	}
	w.lists = append(w.lists, r)
	return nil
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// recorder returns a Recorder whose timer the test runs, and the waits that it asked
// for.
func recorder(w *written, now *time.Time) (r *tested, waits *[]time.Duration) {
	r, waits = &tested{Recorder: New(w, func() time.Time { return *now }, slog.New(slog.DiscardHandler))}, new([]time.Duration)
	r.writer.After = func(d time.Duration, run func()) { *waits, r.run = append(*waits, d), run }
	return r, waits
}

type tested struct {
	*Recorder
	run func() // the timer ends
}

func TestManyRefusalsAreOneWrite(t *testing.T) {
	now, w := noon, &written{}
	r, waits := recorder(w, &now)
	for range 1000 {
		r.Record("shop", store.Refused{At: noon, Reason: "junk", Event: json.RawMessage(`{}`)})
	}
	r.Record("shop", store.Refused{At: noon, Reason: "rare"})
	r.Count("shop", "too many", 7)
	if len(w.lists) != 0 || len(*waits) != 1 || (*waits)[0] != 0 {
		t.Fatalf("%d writes by requests, writes after %v; want one at once", len(w.lists), *waits)
	}
	r.run()
	if len(w.lists) != 1 {
		t.Fatalf("%d writes, want 1", len(w.lists))
	}
	got := w.lists[0]
	if diff := cmp.Diff(map[string]int64{"junk": 1000, "rare": 1, "too many": 7}, got.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Events) != store.RefusedOfReason+1 {
		t.Errorf("%d events, want those that a row keeps", len(got.Events))
	}
	if len(*waits) != 1 {
		t.Error("another write is due without refusals")
	}
	r.Count("shop", "junk", 1)
	if len(*waits) != 2 || (*waits)[1] != every {
		t.Errorf("writes after %v; want the second after a pause", *waits)
	}
}

// Refusals wait while the store fails, in their order, and are written once.
func TestFailingStoreLosesNothing(t *testing.T) {
	now, w := noon, &written{fails: true}
	r, waits := recorder(w, &now)
	for i := range 3 {
		r.Record("shop", store.Refused{At: noon, Reason: "r", Event: json.RawMessage([]byte{'0' + byte(i)})})
		r.run()
	}
	if diff := cmp.Diff([]time.Duration{0, 2 * every, 4 * every, 8 * every}, *waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	w.fails = false
	r.run()
	if len(w.lists) != 1 || w.lists[0].Counts["r"] != 3 || len(w.lists[0].Events) != 3 || string(w.lists[0].Events[2].Event) != "2" {
		t.Errorf("written: %+v", w.lists)
	}
	for i := 1; i < len(w.lists[0].Events); i++ {
		if w.lists[0].Events[i].Sequence <= w.lists[0].Events[i-1].Sequence {
			t.Error("sequences do not grow")
		}
	}
}

// Nobody waits for a store that hangs, and its write ends with its context.
func TestHangingStoreHoldsNobody(t *testing.T) {
	now, w := noon, &written{gate: make(chan struct{})}
	r, _ := recorder(w, &now)
	r.Record("shop", store.Refused{At: noon, Reason: "r"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Flush(ctx) }()
	r.Record("shop", store.Refused{At: noon, Reason: "r"})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
	close(w.gate)
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, list := range w.lists {
		total += list.Counts["r"]
	}
	if total != 2 {
		t.Errorf("%d refusals are counted, want 2", total)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	now, w := noon, &written{}
	r, _ := recorder(w, &now)
	event := json.RawMessage(strings.Repeat("1", 4<<10))
	for i := range maxReasons + 5 {
		r.Record("shop", store.Refused{At: noon, Reason: string(rune(i + 0x10000)), Event: event})
	}
	held := 0
	for _, of := range r.waiting {
		for _, e := range of.events {
			held += len(e.Event)
		}
	}
	if held > maxBytes || held != r.bytes || len(r.waiting) != maxReasons || r.lost != 5 {
		t.Errorf("%d bytes (counted %d) of %d reasons are held, %d are lost", held, r.bytes, len(r.waiting), r.lost)
	}
	if err := r.Flush(t.Context()); err != nil || r.bytes != 0 || len(w.lists[0].Counts) != maxReasons {
		t.Errorf("%v, %d bytes left, %d reasons written", err, r.bytes, len(w.lists[0].Counts))
	}
}

// The event of a refusal is not written long after its receipt: its user may have
// been deleted and purged since.
func TestOldEventsAreCountedOnly(t *testing.T) {
	now, w := noon, &written{fails: true}
	r, _ := recorder(w, &now)
	r.Record("shop", store.Refused{At: noon, Reason: "r", Event: json.RawMessage(`{"userToken":"ann"}`)})
	r.run()
	now, w.fails = noon.Add(MaxHeld), false
	r.run()
	if len(w.lists) != 1 || w.lists[0].Counts["r"] != 1 || len(w.lists[0].Events) != 0 {
		t.Errorf("written: %+v, want a count alone", w.lists)
	}
}

// An event that no store can write does not hold up the others.
func TestInvalidEventIsCounted(t *testing.T) {
	now, w := noon, &written{}
	r, _ := recorder(w, &now)
	r.Record("shop", store.Refused{At: noon, Reason: "r", Event: json.RawMessage(`{`)})
	if err := r.Flush(t.Context()); err != nil || w.lists[0].Counts["r"] != 1 || w.lists[0].Events[0].Event != nil {
		t.Errorf("%v, %+v", err, w.lists)
	}
}

// A refusal keeps no part of the memory of its request's body.
func TestEventIsCopied(t *testing.T) {
	now, w := noon, &written{}
	r, _ := recorder(w, &now)
	body := []byte(`{"a":1}`)
	r.Record("shop", store.Refused{At: noon, Reason: "r", Event: body})
	copy(body, `???????`)
	if err := r.Flush(t.Context()); err != nil || string(w.lists[0].Events[0].Event) != `{"a":1}` {
		t.Errorf("%v, %s", err, w.lists[0].Events[0].Event)
	}
}
