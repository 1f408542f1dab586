package profile

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/affinityengine/affinity/shared/store"
)

// flights lets messages of one user share refreshes within a process. While one
// flight runs, later messages wait and share the next one. A flight draws its
// ticket after all its messages have written the log, so its profile counts their
// events. A process never runs two refreshes of one user at once.
type flights struct {
	mu     sync.Mutex
	byUser map[string]*queue // by app and user; only users with a running flight
}

// queue holds a user's running flight and the one after it.
type queue struct {
	running, next *flight
}

// flight is one refresh of one user.
type flight struct {
	own  // of all messages that joined it
	done chan struct{}
	row  store.User // at the flight's ticket, once done
	// named are events of the flight that it has dropped because of the users whom they name.
	named naming
	err   error
}

func newFlights() *flights { return &flights{byUser: map[string]*queue{}} }

func newFlight() *flight { return &flight{done: make(chan struct{})} }

// role is the part of a message in a flight.
type role int

const (
	owner  role = iota // run the flight now
	waiter             // wait for the flight, which another message runs
	leader             // wait for the running flight, then run this one
)

// join adds a message's events to a flight of a user. For a leader it also
// returns a channel that closes when the running flight ends.
func (fs *flights) join(key string, events own) (*flight, role, <-chan struct{}) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	q := fs.byUser[key]
	if q == nil {
		f := newFlight()
		f.own = events
		fs.byUser[key] = &queue{running: f}
		return f, owner, nil
	}
	r := waiter
	if q.next == nil {
		q.next, r = newFlight(), leader
	}
	q.next.own = q.next.with(events)
	return q.next, r, q.running.done
}

// begin makes the next flight the running one. From now on no message joins it.
func (fs *flights) begin(key string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	q := fs.byUser[key]
	q.running, q.next = q.next, nil
}

// end wakes every message that waits for a flight.
func (fs *flights) end(key string, f *flight, row store.User, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.row, f.err = row, err
	close(f.done)
	if q := fs.byUser[key]; q.next == nil {
		delete(fs.byUser, key)
	}
}

// places are what a message takes of the users who may be refreshed at a time.
type places struct {
	of   *semaphore.Weighted
	left atomic.Int64
}

// takePlaces waits for the places of a message of so many users.
func (w *writer) takePlaces(ctx context.Context, of *semaphore.Weighted, users int) (*places, error) {
	n := int64(min(users, w.most))
	if err := of.Acquire(ctx, n); err != nil {
		return nil, err
	}
	p := &places{of: of}
	p.left.Store(n)
	return p, nil
}

// leave gives back n places, or those that are left.
func (p *places) leave(n int64) {
	for {
		left := p.left.Load()
		n = min(n, left)
		if n <= 0 {
			return
		}
		if p.left.CompareAndSwap(left, left-n) {
			p.of.Release(n)
			return
		}
	}
}
