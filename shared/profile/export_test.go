package profile

import "time"

// Tighten makes an engine fold a handful of events at a time, in blocks of few.
func (e *Engine) Tighten(fold, most, block, keep int, settle time.Duration) {
	e.limits = limits{
		foldEvents: fold, maintainEvents: 1, settle: settle, looseEvents: 2, foldMost: most, blockEvents: block, keepRows: keep,
	}
}

// Lazy keeps an engine from folding anything.
func (e *Engine) Lazy() { e.limits.foldEvents, e.limits.maintainEvents = 1<<30, 1<<30 }
