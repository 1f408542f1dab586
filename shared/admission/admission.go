// Package admission bounds the memory that the requests of one process hold at
// the same time.
//
// A process has one gate, with a capacity in bytes. A request takes bytes from
// the gate before it allocates them, and holds them until it is answered. If the
// gate is full, the request waits for others to end, at most a second in all, and
// then ends with ErrFull. So the memory that requests hold does not grow with
// their number. The package keeps no data.
package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrFull says that the gate had no room for a request for a second. The request
// may succeed later.
var ErrFull = errors.New("this instance holds as many bytes of requests as it may")

// maxWait is how long one request waits for room, over all its calls of Take.
const maxWait = time.Second

// Gate holds the bytes that requests share. It is safe for concurrent use.
type Gate struct {
	bytes    *semaphore.Weighted
	capacity int64
}

// NewGate returns a gate with a capacity in bytes.
func NewGate(capacity int64) *Gate {
	return &Gate{semaphore.NewWeighted(capacity), capacity}
}

// Enter begins a request. Take with the returned context takes bytes from the
// gate for this request; leave gives all of them back. Afterwards Take with that
// context takes nothing, so that work which outlives its request holds nothing.
func (g *Gate) Enter(ctx context.Context) (entered context.Context, leave func()) {
	h := &hold{gate: g}
	return context.WithValue(ctx, holdKey{}, h), h.leave
}

// Take holds n more bytes for the request that the context belongs to. It returns
// ErrFull if they are not free within the second for which a request may wait,
// and the context's error if that ends first. A request that needs more than the
// whole capacity is counted as the whole capacity: it runs alone. Without a
// request in the context, Take returns nil at once.
func Take(ctx context.Context, n int64) error {
	h, ok := ctx.Value(holdKey{}).(*hold)
	if !ok {
		return nil
	}
	return h.take(ctx, n)
}

type holdKey struct{}

// hold is what one request holds.
type hold struct {
	gate   *Gate
	mu     sync.Mutex
	held   int64         // bytes
	waited time.Duration // in all calls so far
	left   bool
}

func (h *hold) take(ctx context.Context, n int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n = min(n, h.gate.capacity-h.held)
	if n <= 0 || h.left {
		return nil
	}
	if !h.gate.bytes.TryAcquire(n) {
		if err := h.await(ctx, n); err != nil {
			return err
		}
	}
	h.held += n
	return nil
}

// await waits until n bytes are free, for what is left of the request's second.
func (h *hold) await(ctx context.Context, n int64) error {
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, maxWait-h.waited)
	defer cancel()
	err := h.gate.bytes.Acquire(waiting, n)
	h.waited += time.Since(began)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("wait for memory: %w", ctx.Err())
	} else if err != nil {
		return ErrFull
	}
	return nil
}

func (h *hold) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gate.bytes.Release(h.held)
	h.held, h.left = 0, true
}
