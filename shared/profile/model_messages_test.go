package profile_test

import (
	"context"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// hotProcess is a process that stays, so that it keeps what its refreshes read. It
// serves one message at a time.
type hotProcess struct {
	engine *profile.Engine
	busy   bool
}

// receipt is one of an event, of a message that was sent.
type receipt struct {
	at    int64
	acked bool
}

// message holds events, by index, with the resolution of one state of the
// catalog. All deliveries of a message are equal.
type message struct {
	events   []int
	catalog  int
	received int64
}

// value returns the value that an event counts for under one state of the
// catalog. For two events in three it never changes.
func value(n, catalog int) string {
	if n%3 > 0 {
		catalog = 0
	}
	return fmt.Sprintf("c%d.%d", n%3, catalog)
}

// deliver starts a process on a message.
func (w *simulation) deliver(m message, bulk bool) {
	app := w.app() // which may be out of date when it is used
	if w.us != nil {
		app = w.known()
	}
	events := w.eventsOf(&m)
	if len(events) == 0 {
		return
	}
	do, done := w.applier(bulk)
	w.pending = append(w.pending, m)
	var err error
	w.startThen(fmt.Sprint("message ", m), func(ctx context.Context) error {
		_, err = do(ctx, app, events)
		return err
	}, func() {
		done()
		if err == nil {
			w.ack(m)
		}
	})
}

// eventsOf returns the events of a message, which is sent now or was before.
func (w *simulation) eventsOf(m *message) []store.LogEvent {
	// Ingest gives an event that is further ahead another time.
	m.events = slices.DeleteFunc(m.events, func(n int) bool { return w.events[n].Time > m.received+event.MaxAhead.Milliseconds() })
	events := make([]store.LogEvent, len(m.events))
	for i, n := range m.events {
		events[i] = received(w.events[n], m.received)
		if !slices.Contains(w.receipts[n], receipt{at: m.received}) {
			w.receipts[n] = append(w.receipts[n], receipt{at: m.received})
		}
		events[i].Counts = []affinity.Count{{Facet: "color", Value: value(n, m.catalog), N: 1 + n%2}}
		if w.resolved[n] == nil {
			w.resolved[n] = map[string]bool{}
		}
		w.resolved[n][value(n, m.catalog)] = true
	}
	return events
}

// applier returns how a process applies a message, and what to call afterwards. It is a
// new process, or one that has refreshed the user before.
func (w *simulation) applier(bulk bool) (do func(context.Context, config.App, []store.LogEvent) (profile.Outcome, error), done func()) {
	if bulk {
		return w.process().Import, func() {}
	}
	i := rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(w.t, "process")
	if i == len(w.hot) || w.hot[i].busy {
		return w.process().Apply, func() {}
	}
	p := &w.hot[i]
	if p.engine == nil || rapid.IntRange(0, 7).Draw(w.t, "restart") == 0 {
		p.engine = w.process()
	}
	p.busy = true
	return p.engine.Apply, func() { p.busy = false }
}

func (w *simulation) ack(m message) {
	for _, n := range m.events {
		w.acked[n] = true
		for i := range w.receipts[n] {
			r := &w.receipts[n][i]
			r.acked = r.acked || r.at == m.received
		}
	}
	w.pending = slices.DeleteFunc(w.pending, func(p message) bool {
		return p.catalog == m.catalog && p.received == m.received && slices.Equal(p.events, m.events)
	})
}
