package emulator

import (
	"context"
	"sync"
)

// pushWindow bounds the pushes under way. An endpoint that is overloaded fails all of many
// pushes and completes some of few. So a failure halves the window, down to one push, and
// each success adds one, up to the limit.
type pushWindow struct {
	slots chan struct{} // an element for each push under way, and for each slot that is withheld

	mu       sync.Mutex
	size     int
	withheld int
	round    int // grows when the window shrinks
}

func newPushWindow(limit int) *pushWindow {
	return &pushWindow{slots: make(chan struct{}, limit), size: limit}
}

// enter waits for room. It returns the round in which the push begins. The only error is
// the end of ctx.
func (w *pushWindow) enter(ctx context.Context) (round int, err error) {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if ctx.Err() != nil { // both were ready
		<-w.slots
		return 0, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.round, nil
}

// leave ends a push. The pushes that began before the window shrank say nothing of its new
// size: they shrink it no further.
func (w *pushWindow) leave(round int, delivered bool) {
	<-w.slots
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case delivered:
		w.size = min(w.size+1, cap(w.slots))
	case round == w.round:
		w.size, w.round = max(w.size/2, 1), w.round+1
	}
	for ; w.withheld > cap(w.slots)-w.size; w.withheld-- {
		<-w.slots
	}
	for w.withheld < cap(w.slots)-w.size {
		select {
		case w.slots <- struct{}{}:
			w.withheld++
		default:
			return // the pushes under way withhold the rest when they leave
		}
	}
}
