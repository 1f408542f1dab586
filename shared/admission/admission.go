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
	r := &request{gate: g}
	return context.WithValue(ctx, partKey{}, &part{request: r}), r.leave
}

// Part begins a part of the request that the context belongs to: end gives back what
// the part has taken with the returned context. Without a request in the context,
// it returns that context.
func Part(ctx context.Context) (in context.Context, end func()) {
	outer, ok := ctx.Value(partKey{}).(*part)
	if !ok {
		return ctx, func() {}
	}
	p := &part{request: outer.request}
	return context.WithValue(ctx, partKey{}, p), p.end
}

// Take holds n more bytes for the request that the context belongs to. It returns
// ErrFull if they are not free within the second for which a request may wait,
// and the context's error if that ends first. A request that needs more than the
// whole capacity is counted as the whole capacity: it runs alone. Without a
// request in the context, Take returns nil at once.
func Take(ctx context.Context, n int64) error {
	p, ok := ctx.Value(partKey{}).(*part)
	if !ok {
		return nil
	}
	return p.take(ctx, n)
}

type partKey struct{}

// request is what one request holds.
type request struct {
	gate   *Gate
	mu     sync.Mutex
	held   int64         // bytes, of all parts
	waited time.Duration // in all calls so far
	left   bool
}

// part is what a part of a request holds, or what the request holds in no part.
type part struct {
	*request
	own   int64 // bytes; of held
	ended bool
}

func (p *part) take(ctx context.Context, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, p.gate.capacity-p.held)
	if n <= 0 || p.left || p.ended {
		return nil
	}
	if !p.gate.bytes.TryAcquire(n) {
		if err := p.await(ctx, n); err != nil {
			return err
		}
	}
	p.held += n
	p.own += n
	return nil
}

// await waits until n bytes are free, for what is left of the request's second.
func (r *request) await(ctx context.Context, n int64) error {
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, maxWait-r.waited)
	defer cancel()
	err := r.gate.bytes.Acquire(waiting, n)
	r.waited += time.Since(began)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("wait for memory: %w", ctx.Err())
	} else if err != nil {
		return ErrFull
	}
	return nil
}

func (p *part) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.left {
		p.gate.bytes.Release(p.own)
		p.held -= p.own
	}
	p.own, p.ended = 0, true
}

func (r *request) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate.bytes.Release(r.held)
	r.held, r.left = 0, true
}
