package config

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// fetchTimeout ends a read that the backend does not answer. A read continues
// when the request that began it ends, since other requests may wait for it.
const fetchTimeout = 10 * time.Second

// cache keeps the answers of reads, up to a fixed number. It evicts the least
// recently used one.
type cache[K comparable, V any] struct {
	ttl     time.Duration
	now     func() time.Time
	mu      sync.Mutex
	answers *simplelru.LRU[K, *answer[V]]
}

// answer is the result of one read, which may still be running.
type answer[V any] struct {
	began time.Time
	done  chan struct{} // closed when value and err are set
	value V
	err   error // nil or ErrNotFound, unless the read failed
}

func newCache[K comparable, V any](size int, ttl time.Duration, now func() time.Time) *cache[K, V] {
	// NewLRU fails only if the size is not positive.
	answers, _ := simplelru.NewLRU[K, *answer[V]](size, nil)
	return &cache[K, V]{ttl: ttl, now: now, answers: answers}
}

// get returns the answer of a read that began less than the TTL ago, waiting for
// it if it is still running. Otherwise it starts a new read.
func (c *cache[K, V]) get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	if c.ttl <= 0 {
		return read(ctx)
	}
	a := c.answer(ctx, key, read)
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

func (c *cache[K, V]) answer(ctx context.Context, key K, read func(context.Context) (V, error)) *answer[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if a, ok := c.answers.Get(key); ok && now.Sub(a.began) < c.ttl {
		return a
	}
	a := &answer[V]{began: now, done: make(chan struct{})}
	c.answers.Add(key, a)
	go c.fetch(context.WithoutCancel(ctx), key, a, read)
	return a
}

func (c *cache[K, V]) fetch(ctx context.Context, key K, a *answer[V], read func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	a.value, a.err = read(ctx)
	if a.err != nil && !errors.Is(a.err, ErrNotFound) {
		// Forget it before a caller sees the error: a retry must read again.
		c.forget(key, a)
	}
	close(a.done)
}

// forget drops the answer, unless a later one has replaced it.
func (c *cache[K, V]) forget(key K, a *answer[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, ok := c.answers.Peek(key); ok && kept == a {
		c.answers.Remove(key)
	}
}

// evict makes the next get start a new read. A read that is running may have seen
// the state before the change.
func (c *cache[K, V]) evict(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers.Remove(key)
}
