package recent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// written is a store that keeps what it is given, or fails. It has states of all users
// but nobody.
type written struct {
	mu     sync.Mutex
	fails  bool
	events map[string][]store.RecentEvent
	drops  int
	states map[string]store.User
}

func (w *written) AddRecent(_ context.Context, app string, events []store.RecentEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails {
		return errors.New("away")
	}
	w.events[app] = append(w.events[app], events...)
	return nil
}

func (w *written) DropRecent(context.Context, string, time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drops++
	return nil
}

func (w *written) read(_ context.Context, _ string, users []string) (map[string]store.User, error) {
	found := map[string]store.User{}
	for _, u := range users {
		if u != "nobody" {
			found[u] = w.states[u]
		}
	}
	return found, nil
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// recorder returns a Recorder whose timer the test runs, and the waits that it asked for.
func recorder(now *time.Time) (r *tested, w *written, waits *[]time.Duration) {
	w, waits = &written{events: map[string][]store.RecentEvent{}, states: map[string]store.User{}}, new([]time.Duration)
	r = &tested{Recorder: New(w, w.read, func() time.Time { return *now }, slog.New(slog.DiscardHandler))}
	r.writer.After = func(d time.Duration, run func()) { *waits, r.run = append(*waits, d), run }
	return r, w, waits
}

type tested struct {
	*Recorder
	run func() // the timer ends
}

func viewOf(user string, receipt time.Time) store.LogEvent {
	return store.LogEvent{User: user, ID: user, Type: event.View, Name: "Seen", Time: receipt.UnixMilli(), Receipt: receipt.UnixMilli()}
}

func many(n int, receipt time.Time) (events []store.LogEvent) {
	for i := range n {
		events = append(events, viewOf(fmt.Sprint("u", i), receipt))
	}
	return events
}

// Of each app and second a process takes a few events, and writes them at once or a
// second after the write before.
func TestSomeEventsOfEachSecond(t *testing.T) {
	now := noon
	r, w, waits := recorder(&now)
	for range 10 {
		r.Record("shop", consent.Setting{}, many(100, now), false)
		r.Record("zoo", consent.Setting{}, many(1, now), false)
	}
	if len(w.events) != 0 || len(*waits) != 1 || (*waits)[0] != 0 {
		t.Fatalf("%d apps written by messages, writes after %v; want one at once", len(w.events), *waits)
	}
	r.run()
	now = now.Add(time.Second / 2)
	r.Record("shop", consent.Setting{}, many(1, now), false)
	if len(w.events["shop"]) != perSecond || len(w.events["zoo"]) != perSecond || len(*waits) != 1 {
		t.Errorf("%d and %d events, writes after %v; want %d of each", len(w.events["shop"]), len(w.events["zoo"]), *waits, perSecond)
	}
	now = now.Add(time.Second / 2)
	r.Record("shop", consent.Setting{}, many(100, now), false)
	if len(*waits) != 2 || (*waits)[1] != 0 {
		t.Errorf("writes after %v; want the second at once, a second later", *waits)
	}
	now = now.Add(time.Second / 4)
	r.run()
	now = now.Add(time.Second / 4 * 3)
	r.Record("shop", consent.Setting{}, many(1, now), false)
	if len(*waits) != 3 || (*waits)[2] != time.Second/4 {
		t.Errorf("writes after %v; want the third after a pause", *waits)
	}
	if len(w.events["shop"]) != 2*perSecond || w.drops != 2 {
		t.Errorf("%d events, rows dropped %d times; want %d, and twice: once for each app", len(w.events["shop"]), w.drops, 2*perSecond)
	}
}

// The sample keeps an event in short.
func TestEventInShort(t *testing.T) {
	now := noon
	r, w, _ := recorder(&now)
	e := viewOf("ann", noon)
	for i := range 9 {
		e.ObjectIDs = append(e.ObjectIDs, fmt.Sprint(i))
		e.Counts = append(e.Counts, affinity.Count{Facet: "f", Value: strings.Repeat("\u00e9", 99*i), N: 1})
	}
	e.Original = schema.Original{ReceivedAt: 1, Index: "i", Event: []byte(`{}`)}.Append(nil)
	r.Record("shop", consent.Setting{}, []store.LogEvent{e}, false)
	r.run()
	got := w.events["shop"][0]
	if len(got.ObjectIDs) != maxListed || len(got.Filters) != maxListed || got.Index != "i" || got.User != "ann" || got.Receipt != e.Receipt {
		t.Errorf("got %+v", got)
	}
	if last := got.Filters[maxListed-1]; len(last) > maxText+3 || !strings.HasSuffix(last, "...") || !utf8.ValidString(last) {
		t.Errorf("a long filter is %q", last)
	}
}

// Events of users who were deleted or have opted out in the meantime are not written, nor
// those that nobody reads any more.
func TestExcludedEventsAreNotWritten(t *testing.T) {
	now := noon
	r, w, _ := recorder(&now)
	at := noon.UnixMilli()
	w.states["gone"] = store.User{DeletedUntil: at, ReceivedUntil: at}
	w.states["out"] = store.User{OptedOut: event.Views}
	w.states["clicks"] = store.User{OptedOut: event.Clicks}
	for _, user := range []string{"gone", "out", "clicks", "nobody"} {
		r.Record("shop", consent.Setting{}, []store.LogEvent{viewOf(user, noon)}, true)
	}
	r.Record("shop", consent.Setting{}, []store.LogEvent{viewOf("old", noon.Add(-maxHeld))}, false)
	r.run()
	var users []string
	for _, e := range w.events["shop"] {
		users = append(users, e.User)
	}
	if diff := cmp.Diff([]string{"clicks"}, users); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	now = now.Add(time.Second)
	r.Record("zoo", consent.Setting{}, []store.LogEvent{viewOf("ann", noon), viewOf("gone", noon)}, false)
	now = now.Add(time.Minute) // the process had no CPU
	r.run()
	if got := w.events["zoo"]; len(got) != 1 || got[0].User != "ann" {
		t.Errorf("of events that waited for a minute %v are written, want that of ann", got)
	}
}

// A table that fails costs the events that wait, and no more memory than a bound.
func TestFailingTableHoldsNobody(t *testing.T) {
	now := noon
	r, w, waits := recorder(&now)
	w.fails = true
	for i := range maxWaiting {
		r.Record(fmt.Sprint("app", i), consent.Setting{}, many(2, now), false)
	}
	if r.held != maxWaiting {
		t.Errorf("%d events wait, want %d", r.held, maxWaiting)
	}
	r.run()
	if r.held != 0 || len(*waits) != 1 {
		t.Errorf("%d events wait, %d writes are due", r.held, len(*waits))
	}
	w.fails = false
	now = now.Add(time.Minute)
	r.Record("shop", consent.Setting{}, many(1, now), false)
	r.run()
	if len(w.events["shop"]) != 1 {
		t.Errorf("written: %v", w.events)
	}
	var none *Recorder
	none.Record("shop", consent.Setting{}, many(1, now), false)
	if err := none.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

// An event that serves no purpose which its user grants is neither written nor read.
func TestWithheldEventsAreNotWritten(t *testing.T) {
	now := noon
	r, w, _ := recorder(&now)
	of, err := consent.Setting{}.With([]consent.Purpose{{Name: "ads"}, {Name: "personal", Default: true, Types: []event.Type{event.Click}}})
	if err != nil {
		t.Fatal(err)
	}
	granted, _, err := of.Ask(nil, map[string]bool{"ads": true}, affinity.Tombstone{DeletedUntil: noon.UnixMilli() - 1, ReceivedUntil: noon.UnixMilli() - 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.states["ann"], w.states["bad"] = store.User{Consents: granted.Append(nil)}, store.User{Consents: []byte{9}}
	for _, user := range []string{"ann", "bob", "bad"} {
		r.Record("shop", of, []store.LogEvent{viewOf(user, noon)}, true)
	}
	r.run()
	if got := w.events["shop"]; len(got) != 1 || got[0].User != "ann" {
		t.Errorf("%v are written, want that of ann", got)
	}
	if left := Counted(of, w.events["shop"], map[string]store.User{"ann": {}}); len(left) > 0 {
		t.Errorf("%v count once ann has withdrawn", left)
	}
}
