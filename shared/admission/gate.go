package admission

import (
	"context"
	"slices"
	"sync"
)

const (
	// Light is how many bytes a light request holds at most: an event and its answer,
	// or a profile.
	Light = 256 << 10
	// lightShare is the part of a gate that only light requests take: an eighth. The 80
	// requests of an instance of 512 MiB fit in it, if each is light or was.
	lightShare = 8
)

// Gate holds the bytes that requests share. It is safe for concurrent use.
type Gate struct {
	capacity int64 // without the share of light requests
	// kept is what the first bytes of a request leave to requests that have begun,
	// unless none has.
	kept int64

	mu      sync.Mutex
	light   int64     // bytes that are free for light requests
	free    int64     // of capacity; below 0 while answers hold more than was left
	begun   []*waiter // those who hold bytes, in the order in which they came
	waiting []*waiter // those who hold none
}

// waiter waits for n bytes.
type waiter struct {
	n       int64
	granted chan struct{} // closed when they are taken
}

// NewGate returns a gate with a capacity in bytes. If an eighth of it has no room for a
// light request, light requests have no share of their own.
func NewGate(capacity int64) *Gate {
	light := capacity - Heaviest(capacity)
	capacity -= light
	return &Gate{capacity: capacity, kept: capacity / 4, light: light, free: capacity}
}

// Heaviest is how many bytes one request may hold of a gate with a capacity: all but the
// share of light requests.
func Heaviest(capacity int64) int64 {
	if light := capacity / lightShare; light >= Light {
		return capacity - light
	}
	return capacity
}

// tryLight takes n bytes of the share of light requests, if they are free.
func (g *Gate) tryLight(n int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > g.light {
		return false
	}
	g.light -= n
	return true
}

func (g *Gate) releaseLight(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.light += n
}

// fits reports whether n bytes are free. The caller holds mu.
func (g *Gate) fits(n int64, first bool) bool {
	if first && g.free < g.capacity {
		n += g.kept
	}
	return n <= g.free
}

// try takes n bytes if they are free and nobody waits who goes before.
func (g *Gate) try(n int64, first bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.begun) > 0 || first && len(g.waiting) > 0 || !g.fits(n, first) {
		return false
	}
	g.free -= n
	return true
}

// force takes n bytes, whether they are free or not.
func (g *Gate) force(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free -= n
}

// acquire takes n bytes once they are free.
func (g *Gate) acquire(ctx context.Context, n int64, first bool) error {
	w := &waiter{n, make(chan struct{})}
	queue := &g.begun
	if first {
		queue = &g.waiting
	}
	g.mu.Lock()
	*queue = append(*queue, w)
	g.grant()
	g.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(*queue, w)
	if i < 0 {
		return nil // granted in the meantime
	}
	*queue = slices.Delete(*queue, i, i+1)
	g.grant() // to those behind
	return ctx.Err()
}

func (g *Gate) release(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free += n
	g.grant()
}

// grant gives free bytes to those who wait. The caller holds mu.
func (g *Gate) grant() {
	g.begun = g.grantTo(g.begun, false)
	if len(g.begun) == 0 {
		g.waiting = g.grantTo(g.waiting, true)
	}
}

// grantTo gives free bytes to the first of a queue, and returns the rest.
func (g *Gate) grantTo(queue []*waiter, first bool) []*waiter {
	n := 0
	for ; n < len(queue) && g.fits(queue[n].n, first); n++ {
		g.free -= queue[n].n
		close(queue[n].granted)
	}
	return slices.Delete(queue, 0, n)
}
