// Package admission bounds the memory that the requests of one process hold at
// the same time.
//
// A process has one gate, with a capacity in bytes. A request takes bytes from
// the gate before it allocates them, and holds them until it is answered. If the
// gate is full, the request waits for others to end, a second unless its function
// has more time, and then ends with ErrFull. So the memory that requests hold does
// not grow with their number. The package keeps no data.
//
// A request that holds bytes goes before those that hold none: it will give back
// what they wait for. The first bytes of a request leave a quarter of the gate to
// those that have begun. Requests that hold little have a share of their own, so that
// they do not wait behind large ones.
//
// A process also has some turns for heavy requests: those that compute for long.
package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrFull says that the gate had no room for a request for as long as it may wait.
// The request may succeed later.
var ErrFull = errors.New("this instance holds as many bytes of requests as it may")

// maxWait is how long one request waits for room, over all its calls of Take.
const maxWait = time.Second

// Enter begins a request. Take with the returned context takes bytes from the
// gate for this request; leave gives all of them back, and its turn. Afterwards Take with that
// context takes nothing, so that work which outlives its request holds nothing.
func (g *Gate) Enter(ctx context.Context) (entered context.Context, leave func()) {
	return g.EnterFor(ctx, maxWait)
}

// EnterFor is Enter for a request that may wait for its first bytes for another time
// than a second. For more bytes it waits a second, because others wait for those
// that it holds.
func (g *Gate) EnterFor(ctx context.Context, wait time.Duration) (entered context.Context, leave func()) {
	r := &request{gate: g, firstWait: wait, wait: maxWait}
	p := &part{request: r}
	return context.WithValue(ctx, partKey{}, p), p.leave
}

// Part begins a part of the request that the context belongs to: end gives back what
// the part has taken with the returned context, and its turn. Without a request in the context,
// it returns that context.
func Part(ctx context.Context) (in context.Context, end func()) {
	outer := partOf(ctx)
	if outer == nil {
		return ctx, func() {}
	}
	p := &part{request: outer.request}
	return context.WithValue(ctx, partKey{}, p), p.end
}

// Exempt returns a context with which Take takes nothing, for work whose memory is
// free although the gate may be full.
func Exempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, partKey{}, (*part)(nil))
}

// Take holds n more bytes for the request that the context belongs to. It returns
// ErrFull if they are not free within the time for which the request may wait,
// and the context's error if that ends first. A request that needs more than Heaviest
// is counted as that: only light requests run beside it. Without a request in the
// context, Take returns nil at once.
func Take(ctx context.Context, n int64) error {
	p := partOf(ctx)
	if p == nil {
		return nil
	}
	return p.take(ctx, n)
}

// Keep makes n the bytes that a request holds from now on, for an answer that the
// process has encoded and has to send: it ends the parts and the turn of the request, and
// takes nothing more for it. The answer is in memory already, so if the request held less,
// Keep does not wait: others wait until it is sent. The context is the one that Enter
// returned. A later call can only lower n.
func Keep(ctx context.Context, n int64) {
	if p := partOf(ctx); p != nil {
		p.keep(n)
	}
}

type partKey struct{}

// partOf returns the part that a context belongs to, or nil.
func partOf(ctx context.Context) *part {
	p, _ := ctx.Value(partKey{}).(*part)
	return p
}

// request is what one request holds.
type request struct {
	gate  *Gate
	mu    sync.Mutex
	held  int64 // bytes, of all parts
	light bool  // held is of the share of light requests
	turn  *part // the part that has a turn; nil: none
	left  bool  // takes nothing more, and its parts give nothing back
	// What remains of the time to wait, before the request holds bytes and then.
	firstWait, wait time.Duration
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
	if (p.light || p.held == 0) && p.held+n <= Light && p.gate.tryLight(n) {
		p.light = true
	} else if err := p.takeMore(ctx, n); err != nil {
		return err
	}
	p.held += n
	p.own += n
	return nil
}

// takeMore takes n bytes for a request that is not light, or no longer.
func (r *request) takeMore(ctx context.Context, n int64) error {
	wait := &r.wait
	first := r.held == 0 || r.light
	if r.light {
		n += r.held
	}
	if first {
		wait = &r.firstWait
	}
	if !r.gate.try(n, first) {
		if err := r.await(ctx, n, first, wait); err != nil {
			return err
		}
	}
	if r.light {
		r.gate.releaseLight(r.held)
		r.light = false
	}
	return nil
}

// giveBack gives n bytes back to where they were taken from.
func (r *request) giveBack(n int64) {
	if r.light {
		r.gate.releaseLight(n)
	} else {
		r.gate.release(n)
	}
	r.held -= n
}

// await waits until n bytes are free, for what remains of the time to wait.
func (r *request) await(ctx context.Context, n int64, first bool, wait *time.Duration) error {
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, *wait)
	defer cancel()
	err := r.gate.acquire(waiting, n, first)
	*wait -= time.Since(began)
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
		p.giveBack(p.own)
	}
	p.own, p.ended = 0, true
	p.endTurn()
}

// keep holds n bytes for the answer of the request that the part is the whole of.
func (p *part) keep(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, p.gate.capacity)
	switch {
	case n <= p.held:
		p.giveBack(p.held - n)
	case p.left:
		return
	case p.held == 0 && n <= Light && p.gate.tryLight(n):
		p.light, p.held = true, n
	default:
		p.giveBack(p.held)
		p.gate.force(n)
		p.light, p.held = false, n
	}
	p.left = true
	if p.turn != nil {
		p.turn.endTurn()
	}
}

// leave ends the request that the part is the whole of.
func (p *part) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.giveBack(p.held)
	p.endTurn()
	p.left = true
}
