package bus

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// Windows of a Packer: that of a deployment unless it says another, and the longest. Some
// clients give up after two seconds, and Pub/Sub takes its time, too.
const (
	DefaultWindow = 5 * time.Millisecond
	MaxWindow     = 500 * time.Millisecond
)

const (
	// packEvents and packBytes bound what requests publish together, in events and in
	// bytes of bodies and filters. A larger request gains nothing from company. So a
	// message of several requests is one that process applies without marks.
	packEvents = 100
	packBytes  = 128 << 10
)

// Packer publishes the requests of an app that arrive within a window in one message,
// because a message costs more than an event. A request waits only if another one of
// its app and lane was published within a window before it, and then for a window at most.
//
// The message is an ordinary one, as if one request held the events. Its time of receipt
// is that at which it is made: after each of its requests has arrived, and before any is
// answered. So a deletion that ends before a request covers none of its events, and one
// that begins after the answer covers all.
//
// A Packer is safe for concurrent use.
type Packer struct {
	publish func(context.Context, Message) error
	now     func() time.Time
	window  time.Duration

	mu sync.Mutex
	// open holds the requests that wait, and nil for a key under which one was published
	// within the window and none waits.
	open map[packKey]*pack
}

// packKey selects the requests that may share a message.
type packKey struct {
	app      string
	region   string
	lane     Lane
	calls    bool
	evidence Evidence
	key      string
}

// pack is the requests of one message.
type pack struct {
	requests []request
	events   int
	bytes    int
	done     chan struct{} // closed when err is set
	err      error
}

// request is a message with its decoded events.
type request struct {
	ctx    context.Context
	m      Message
	events []event.Event
	bytes  int
}

// NewPacker returns a Packer that publishes with publish. now is the clock of receipts. With
// a window of 0 each request is a message of its own.
func NewPacker(publish func(context.Context, Message) error, now func() time.Time, window time.Duration) *Packer {
	return &Packer{publish: publish, now: now, window: window, open: map[packKey]*pack{}}
}

// Publish publishes an accepted request, of which it takes the decoded events. It
// returns nil once the message that holds them is published, and otherwise the error of
// that message. If ctx ends before, the request may be published or not.
func (p *Packer) Publish(ctx context.Context, m Message, events []event.Event) error {
	r := request{ctx, m, events, m.size()}
	if p.window <= 0 || !m.Resolved || len(events) >= packEvents || r.bytes >= packBytes {
		return p.publish(ctx, m)
	}
	joined := p.join(packKey{m.App, m.Region, m.Lane, m.Calls, m.Evidence, m.Key}, r)
	if joined == nil {
		return p.publish(ctx, m)
	}
	select {
	case <-joined.done:
		return joined.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join adds a request to those that wait. nil means that it need not wait.
func (p *Packer) join(key packKey, r request) *pack {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting, recent := p.open[key]
	if !recent {
		p.open[key] = nil
		time.AfterFunc(p.window, func() { p.next(key) })
		return nil
	}
	if waiting != nil && (waiting.events+len(r.events) > packEvents || waiting.bytes+r.bytes > packBytes) {
		go p.send(waiting)
		waiting = nil
	}
	if waiting == nil {
		waiting = &pack{done: make(chan struct{})}
		p.open[key] = waiting
	}
	waiting.requests = append(waiting.requests, r)
	waiting.events, waiting.bytes = waiting.events+len(r.events), waiting.bytes+r.bytes
	return waiting
}

// next publishes the requests that wait. If none does, the next one need not wait.
func (p *Packer) next(key packKey) {
	p.mu.Lock()
	waiting := p.open[key]
	if waiting == nil {
		delete(p.open, key)
	} else {
		p.open[key] = nil
		time.AfterFunc(p.window, func() { p.next(key) })
	}
	p.mu.Unlock()
	if waiting != nil {
		p.send(waiting)
	}
}

// send publishes a pack and wakes its requests. That one of them ends does not end it. A
// panic fails these requests and not the process.
func (p *Packer) send(all *pack) {
	defer func() {
		if cause := recover(); cause != nil {
			all.err = fmt.Errorf("publish %d requests: panic: %v\n%s", len(all.requests), cause, debug.Stack())
		}
		close(all.done)
	}()
	all.err = p.publish(context.WithoutCancel(all.requests[0].ctx), all.message(p.now()))
}

// message returns the message of a pack that is made now.
func (all *pack) message(now time.Time) Message {
	first := all.requests[0].m
	if len(all.requests) == 1 {
		return first
	}
	events, received := make([]event.Event, 0, all.events), now.UnixMilli()
	m := Message{App: first.App, Region: first.Region, Lane: first.Lane, Ahead: first.Ahead, Request: first.Request,
		Resolved: true,
		Calls:    first.Calls, Evidence: first.Evidence, Key: first.Key}
	for _, r := range all.requests {
		m.joinBands(r.m.Resolution())
		received = max(received, r.m.ReceivedAt)
		events = append(events, r.events...)
		for i := range r.events {
			m.copyObjects(&r.events[i], r.m.Objects)
		}
	}
	m.ReceivedAt, m.Body = received, bodyOf(events)
	return m
}

// joinBands adds the versions of a request to those of m, before its objects. Of two
// versions of an index the lower one holds for the message: process then reads the
// filters again.
func (m *Message) joinBands(r Resolution) {
	for index := range r.Objects {
		version := r.Bands[index]
		if _, others := m.Objects[index]; others {
			version = min(version, m.Bands[index])
		}
		if m.Bands == nil && version > 0 {
			m.Bands = Bands{}
		}
		if version > 0 {
			m.Bands[index] = version
		} else {
			delete(m.Bands, index)
		}
	}
}

// size returns the bytes of a message's body and filters.
func (m Message) size() int {
	n := len(m.Body)
	for _, objects := range m.Objects {
		for id, filters := range objects {
			n += len(id)
			for _, f := range filters {
				n += len(f[0]) + len(f[1])
			}
		}
	}
	return n
}
