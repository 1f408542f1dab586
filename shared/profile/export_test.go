package profile

import (
	"runtime"
	"time"
)

// Tighten makes an engine fold a handful of events at a time, in blocks of few.
func (e *Engine) Tighten(fold, most, block, keep int, settle time.Duration) {
	e.limits = limits{
		foldEvents: fold, maintainEvents: 1, settle: settle, looseEvents: 2, foldMost: most, blockEvents: block, keepRows: keep,
	}
}

// Loosen lets so many young events stay outside the blocks.
func (e *Engine) Loosen(events int) { e.limits.looseEvents = events }

// Lazy keeps an engine from folding anything.
func (e *Engine) Lazy() { e.limits.foldEvents, e.limits.maintainEvents = 1<<30, 1<<30 }

// Waiting returns once so many events wait for a user's next refresh.
func (e *Engine) Waiting(key string, events int) {
	for {
		e.turns.mu.Lock()
		q := e.turns.byUser[key]
		ready := q != nil && q.next != nil && len(q.next.events) == events
		e.turns.mu.Unlock()
		if ready {
			return
		}
		runtime.Gosched()
	}
}
