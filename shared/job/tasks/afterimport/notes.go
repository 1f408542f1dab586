package afterimport

import (
	"context"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/queue"
)

// maxSlots bounds the slots that a process remembers.
const maxSlots = 10_000

// Table keeps the times of imports. store.Crowd is one.
type Table interface {
	NoteImport(ctx context.Context, app, index string, at time.Time) error
}

// Notes has jobs follow the imports of a process. It is safe for concurrent use.
type Notes struct {
	table Table
	queue queue.Queue
	now   func() time.Time

	mu   sync.Mutex
	last map[imported]int64 // the slots of the last tasks that the process has enqueued
}

type imported struct{ app, index string }

// NewNotes returns the Notes of a process.
func NewNotes(table Table, q queue.Queue, now func() time.Time) *Notes {
	return &Notes{table: table, queue: q, now: now, last: map[imported]int64{}}
}

// Note has the jobs of the package follow an import of events into an app or, if index is not
// "", of objects into an index. It writes the time of each import of events, and of objects
// once a slot: a client may store them one by one for ever.
func (n *Notes) Note(ctx context.Context, app, index string) error {
	now := n.now()
	at := slotOf(now)
	begins := n.begins(imported{app, index}, at)
	if !begins && index != "" {
		return nil
	}
	err := n.table.NoteImport(ctx, app, index, now)
	if err == nil && begins {
		var t queue.Task
		if t, err = task(app, index, at); err == nil {
			err = n.queue.Create(ctx, t)
		}
	}
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.last, imported{app, index})
	}
	return err
}

// begins reports whether a slot is another one than the last, and remembers it.
func (n *Notes) begins(of imported, at int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ok := n.last[of]; ok && last == at {
		return false
	}
	if len(n.last) >= maxSlots {
		clear(n.last) // their tasks exist, and are not created again
	}
	n.last[of] = at
	return true
}
