package config

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/lru"
)

const (
	// fetchTimeout ends a read that the backend does not answer. A read continues
	// when the request that began it ends, since other requests may wait for it.
	fetchTimeout = 10 * time.Second
	// maxStale is how old an answer may be that getStale returns while the backend
	// fails.
	maxStale = 5 * time.Minute
	// waitTimeout is how long getStale lets a read run before it returns an old answer.
	// It is short for an answer that an earlier read failed to replace.
	waitTimeout   = time.Second
	shortPatience = 100 * time.Millisecond
	// maxStrangers is how many reads of getStale and prefetch run at a time for keys
	// that the cache does not know: anybody can guess those. While the backend hangs,
	// guesses cost no more than these. The keys of get are known to exist, or belong
	// to a client whose key is good.
	maxStrangers = 100
)

// errBusy is the answer to a read of an unknown key beyond maxStrangers.
var errBusy error = busyError{}

type busyError struct{}

func (busyError) Error() string { return "too many reads of the configuration at once" }

// Transient says that the read may succeed later.
func (busyError) Transient() bool { return true }

// answers are the methods of a cache. A Cached holds no cache by its own type, since each
// package that uses a Cached would compile it once more.
type answers[K comparable, V any] interface {
	get(ctx context.Context, key K, read reader[V]) (V, error)
	getStale(ctx context.Context, key K, read reader[V]) (V, error)
	prefetch(ctx context.Context, key K, read reader[V])
	knows(key K) bool
	evict(key K)
}

// cache keeps the answers of reads. It keeps those that found something apart from
// those that did not, so that guesses evict nothing that exists. Of each kind it
// evicts the least recently used one.
type cache[K comparable, V any] struct {
	ttl    time.Duration
	now    func() time.Time
	mu     sync.Mutex
	found  lru.Cache[K, *answer[V]]
	absent lru.Cache[K, *answer[V]]
	// running are the newest reads of their keys. strangers counts reads, these and
	// older ones, of guessed keys that are not in found.
	running   map[K]*answer[V]
	strangers int
}

// answer is the result of one read, which may still be running.
type answer[V any] struct {
	began    time.Time
	stranger bool          // it counts in strangers
	done     chan struct{} // closed when value and err are set
	value    V
	err      error       // nil or ErrNotFound, unless the read failed
	failing  atomic.Bool // a later read failed or hangs
}

// newCache returns a cache of at most size answers that found something, and of
// as many that did not.
func newCache[K comparable, V any](size int, ttl time.Duration, now func() time.Time) *cache[K, V] {
	return &cache[K, V]{
		ttl: ttl, now: now, running: map[K]*answer[V]{},
		found: lru.NewUnlocked[K, *answer[V]](size, nil), absent: lru.NewUnlocked[K, *answer[V]](size, nil),
	}
}

type reader[V any] func(context.Context) (V, error)

// get returns the answer of a read that began less than the TTL ago, waiting for
// it if it is still running. Otherwise it starts a new read.
func (c *cache[K, V]) get(ctx context.Context, key K, read reader[V]) (V, error) {
	if c.ttl <= 0 {
		return read(ctx)
	}
	a, _, err := c.answer(ctx, key, read, false)
	if err != nil {
		var none V
		return none, err
	}
	return a.wait(ctx)
}

// getStale is get, except that it returns an answer of up to maxStale ago if the
// new read fails, or runs for longer than waitTimeout.
func (c *cache[K, V]) getStale(ctx context.Context, key K, read reader[V]) (V, error) {
	if c.ttl <= 0 {
		return read(ctx)
	}
	a, old, err := c.answer(ctx, key, read, true)
	if err != nil {
		var none V
		return none, err
	}
	if old == nil {
		return a.wait(ctx)
	}
	wait := waitTimeout
	if old.failing.Load() {
		wait = shortPatience
	}
	waiting, cancel := context.WithTimeout(ctx, max(0, wait-c.now().Sub(a.began)))
	defer cancel()
	if value, err := a.wait(waiting); err == nil || errors.Is(err, ErrNotFound) {
		return value, err
	}
	if err := ctx.Err(); err != nil {
		var none V
		return none, err
	}
	old.failing.Store(true)
	return old.value, nil
}

// wait returns the answer once it is there.
func (a *answer[V]) wait(ctx context.Context) (V, error) {
	select {
	case <-a.done:
		return a.value, a.err
	default:
	}
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// answer returns the answer that get describes, and the expired answer that it
// replaces if that is younger than maxStale. guessed says that anybody may have made
// up the key.
func (c *cache[K, V]) answer(ctx context.Context, key K, read reader[V], guessed bool) (a, old *answer[V], err error) {
	if err := ctx.Err(); err != nil { // a quick read would hide it
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	kept, known := c.found.Get(key)
	if known && now.Sub(kept.began) < c.ttl {
		return kept, nil, nil
	}
	if known && now.Sub(kept.began) < maxStale {
		old = kept
	}
	if a, ok := c.absent.Get(key); ok && now.Sub(a.began) < c.ttl {
		return a, nil, nil
	}
	if a, ok := c.running[key]; ok && now.Sub(a.began) < c.ttl {
		return a, old, nil
	}
	stranger := guessed && !known
	if stranger && c.strangers >= maxStrangers {
		return nil, nil, errBusy
	}
	if stranger {
		c.strangers++
	}
	a = &answer[V]{began: now, stranger: stranger, done: make(chan struct{})}
	c.running[key] = a
	go c.fetch(context.WithoutCancel(ctx), key, a, read)
	return a, old, nil
}

func (c *cache[K, V]) fetch(ctx context.Context, key K, a *answer[V], read reader[V]) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	a.value, a.err = read(ctx)
	c.keep(key, a) // before a caller sees an error: its retry must read again
	close(a.done)
}

// keep keeps an answer that is not an error, unless a later read or a change has
// replaced it.
func (c *cache[K, V]) keep(key K, a *answer[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.stranger {
		c.strangers--
	}
	if c.running[key] != a {
		return
	}
	delete(c.running, key)
	switch {
	case a.err == nil:
		c.found.Add(key, a)
		c.absent.Remove(key)
	case errors.Is(a.err, ErrNotFound):
		c.absent.Add(key, a)
		c.found.Remove(key)
	}
}

// prefetch starts a read, unless an answer is there or on its way.
func (c *cache[K, V]) prefetch(ctx context.Context, key K, read reader[V]) {
	if c.ttl > 0 {
		_, _, _ = c.answer(ctx, key, read, true)
	}
}

// knows reports whether the last answer for the key found something.
func (c *cache[K, V]) knows(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found.Contains(key)
}

// evict makes the next get start a new read. A read that is running may have seen
// the state before the change.
func (c *cache[K, V]) evict(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found.Remove(key)
	c.absent.Remove(key)
	delete(c.running, key)
}
