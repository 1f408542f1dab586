package profile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// aloneRows is the number of rows from which a message writes the log alone: its
	// request is large enough, and others would wait for it.
	aloneRows = 100
	// groupRows and groupBytes bound the rows that messages write together: one request
	// holds them.
	groupRows  = 1_000
	groupBytes = 512 << 10
	// maxGroupWrite is the time limit of a write of several messages. Then each writes
	// alone, so that a row that Bigtable cannot write at the moment holds up no other
	// message for longer.
	maxGroupWrite = 5 * time.Second
	// maxApart is the number of messages of a failed group that write at a time. A
	// Bigtable that did not take one request for all of them must not get hundreds at once.
	maxApart = 16
)

// appends lets the messages of an app write the log together within a process. A message
// writes at once if no write is under way. Otherwise it waits, and when that write ends,
// one request writes the rows of all messages that wait.
//
// Two messages of a group may write the same row. Bigtable applies the two writes in any
// order, each as a whole, as if the messages had written apart.
type appends struct {
	logs   *logs
	mu     sync.Mutex
	queues map[appendKey]*appendQueue // only with a write under way
}

// appendKey selects the messages that may share a write: those of an app and of the same
// schemas of its log.
type appendKey struct {
	app        string
	generation int64
}

// appendQueue holds the groups that wait for the write under way, in order.
type appendQueue struct{ waiting []*appendGroup }

// appendGroup is what some messages write together.
type appendGroup struct {
	messages []*appended
	rows     int
	bytes    int
	done     chan struct{}
	refused  store.RefusedEvents
	err      error
	apart    *semaphore.Weighted // the messages that write apart if err is set
}

// errGroupPanicked fails all messages of a group. They do not write apart, because one of
// them would panic again.
var errGroupPanicked = errors.New("the write of several messages panicked")

// appended is a message in a group.
type appended struct {
	ctx    context.Context
	app    config.App
	events []store.LogEvent
	bytes  int
}

func newAppends(l *logs) *appends { return &appends{logs: l, queues: map[appendKey]*appendQueue{}} }

// append writes events to the log of an app, as Log.Append does. An error is of these
// events alone. When it returns, no write of them is under way.
func (a *appends) append(ctx context.Context, app config.App, events []store.LogEvent) error {
	if len(events) >= aloneRows {
		return a.logs.of(app).Append(ctx, events)
	}
	m := &appended{ctx: ctx, app: app, events: events}
	for i := range events {
		m.bytes += events[i].Size()
	}
	key := appendKey{app.ID, app.Log.Generation}
	g := a.join(key, m)
	if g == nil {
		defer a.next(key)
		return a.logs.of(app).Append(ctx, events)
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		if !a.leave(key, g, m) {
			<-g.done // its write ends soon
		}
		return fmt.Errorf("wait to write the log of %s: %w", app.ID, ctx.Err())
	}
	switch {
	case errors.Is(g.err, errGroupPanicked):
		return fmt.Errorf("append to log of %s: %w", app.ID, g.err)
	case g.err != nil: // perhaps because of another message
		return a.writeApart(ctx, g, app, events)
	}
	if refused := g.refused.Among(app.ID, events); len(refused) > 0 {
		return refused
	}
	return nil
}

// writeApart writes the events of one message of a group whose write has failed.
func (a *appends) writeApart(ctx context.Context, g *appendGroup, app config.App, events []store.LogEvent) error {
	if err := g.apart.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait to write the log of %s: %w", app.ID, err)
	}
	defer g.apart.Release(1)
	return a.logs.of(app).Append(ctx, events)
}

// join adds a message to a group. nil means that no write is under way: the message
// writes alone, and then calls next.
func (a *appends) join(key appendKey, m *appended) *appendGroup {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.queues[key]
	if q == nil {
		a.queues[key] = &appendQueue{}
		return nil
	}
	var g *appendGroup
	if n := len(q.waiting); n > 0 {
		g = q.waiting[n-1]
	}
	if g == nil || g.rows+len(m.events) > groupRows || g.bytes+m.bytes > groupBytes {
		g = &appendGroup{done: make(chan struct{}), err: errCutShort, apart: semaphore.NewWeighted(maxApart)}
		q.waiting = append(q.waiting, g)
	}
	g.messages = append(g.messages, m)
	g.rows, g.bytes = g.rows+len(m.events), g.bytes+m.bytes
	return g
}

// leave takes a message out of a group that still waits. False means that its write has
// begun.
func (a *appends) leave(key appendKey, g *appendGroup, m *appended) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.queues[key]; q == nil || !slices.Contains(q.waiting, g) {
		return false
	}
	g.messages = slices.DeleteFunc(g.messages, func(o *appended) bool { return o == m })
	return true
}

// next begins the write of the next group. Nobody else writes under the key.
func (a *appends) next(key appendKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.queues[key]
	for len(q.waiting) > 0 {
		g := q.waiting[0]
		q.waiting = q.waiting[1:]
		if len(g.messages) > 0 {
			go a.write(key, g)
			return
		}
	}
	delete(a.queues, key)
}

// write writes the rows of a group. Its messages wait for it, so the end of the request of one of them
// does not end it, as long as the request may send anything. No request recovers a panic of this
// goroutine, so write does.
func (a *appends) write(key appendKey, g *appendGroup) {
	defer a.next(key)
	defer close(g.done)
	defer func() {
		if cause := recover(); cause != nil {
			a.logs.log.LogAttrs(context.Background(), slog.LevelError, "the write of several messages panicked",
				slog.String("app", key.app), slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
			g.err = fmt.Errorf("%w: %v", errGroupPanicked, cause)
		}
	}()
	first := g.messages[0]
	life := maxGroupWrite
	for _, m := range g.messages {
		if end, ok := deadline.End(m.ctx); ok {
			life = min(life, time.Until(end)) // nothing is sent for a message that is over
		}
	}
	ctx, cancel := deadline.Detach(first.ctx, life)
	defer cancel()
	events := make([]store.LogEvent, 0, g.rows)
	for _, m := range g.messages {
		events = append(events, m.events...)
	}
	err := a.logs.of(first.app).Append(ctx, events)
	if refused, ok := errors.AsType[store.RefusedEvents](err); ok {
		g.refused, err = refused, nil
	}
	g.err = err
	a.logs.counters.LogGroups.Add(1)
	a.logs.counters.Grouped.Add(int64(len(g.messages)))
}
