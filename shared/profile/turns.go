package profile

import (
	"sync"

	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// turns lets messages of one user that meet in a process share refreshes: while
// one runs, those that come wait for the next, all for the same. A refresh then
// covers every message that joined it, because its ticket is drawn after all of
// them wrote the log; and a user is never refreshed twice at once, however many
// messages of his there are.
type turns struct {
	mu     sync.Mutex
	byUser map[string]*queue // app and user; only users who are being refreshed
}

// queue is one user's running refresh and the one after it.
type queue struct {
	running, next *turn
}

// turn is one refresh.
type turn struct {
	events []history.Pos // of all messages that joined it
	done   chan struct{}
	row    store.User // at the turn's ticket, once done
	err    error
}

func newTurn() *turn { return &turn{done: make(chan struct{})} }

// role is what a message has to do for one of its users.
type role int

const (
	run    role = iota // refresh him now
	follow             // wait: somebody else refreshes him
	lead               // wait for the running refresh, then refresh him
)

// join gives a message its turn for a user.
func (ts *turns) join(key string, events []history.Pos) (*turn, role, <-chan struct{}) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	q := ts.byUser[key]
	if q == nil {
		t := newTurn()
		t.events = events
		ts.byUser[key] = &queue{running: t}
		return t, run, nil
	}
	what := follow
	if q.next == nil {
		q.next, what = newTurn(), lead
	}
	q.next.events = append(q.next.events, events...)
	return q.next, what, q.running.done
}

// begin makes the next turn the running one: from now on nobody joins it.
func (ts *turns) begin(key string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	q := ts.byUser[key]
	q.running, q.next = q.next, nil
}

// end lets all go on who wait for a turn.
func (ts *turns) end(key string, t *turn, row store.User, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.row, t.err = row, err
	close(t.done)
	if q := ts.byUser[key]; q.next == nil {
		delete(ts.byUser, key)
	}
}
