package rerank

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// forever is the TTL of what never changes.
const forever = time.Duration(math.MaxInt64)

// readTimeout ends a read that the backend does not answer. A read continues
// when the request that began it ends, since other requests may wait for it.
const readTimeout = 10 * time.Second

// entryBytes estimates what an entry takes beside its key's text and its value:
// the entry, its node in the list and its place in the map.
const entryBytes = 240

// cache keeps what batched reads have found, up to a number of bytes. It evicts
// what was used least recently, and always keeps one entry. It is safe for
// concurrent use.
type cache[K comparable, V any] struct {
	ttl      time.Duration
	maxBytes int
	now      func() time.Time
	// size returns the bytes that a key and its value take. The value of a key
	// that is still read is the zero value.
	size func(K, V) int

	mu      sync.Mutex
	entries *simplelru.LRU[K, *entry[V]]
	bytes   int
}

// entry is the value of a key. It may be read only when its batch is done.
type entry[V any] struct {
	*batch
	value V
	size  int // as counted, under the mutex
}

// batch is one read of several keys.
type batch struct {
	began time.Time
	done  chan struct{} // closed when the values and err are set
	err   error
}

func newCache[K comparable, V any](ttl time.Duration, maxBytes int, now func() time.Time, size func(K, V) int) *cache[K, V] {
	c := &cache[K, V]{ttl: ttl, maxBytes: maxBytes, now: now, size: size}
	// NewLRU fails only if the size is not positive. bytes bounds the cache.
	c.entries, _ = simplelru.NewLRU(math.MaxInt, func(_ K, e *entry[V]) { c.bytes -= e.size })
	return c
}

// get returns the values of n distinct keys, by position. It reads the keys
// that it does not hold, or that are older than the TTL, in one call of read.
// A key that another call reads at the moment is not read twice. key returns
// the key at a position, and keep a copy of a key that may outlive the call.
// read fills in the values of keys.
func (c *cache[K, V]) get(ctx context.Context, n int, key func(int) K, keep func(K) K,
	read func(ctx context.Context, keys []K, values []V) error) ([]V, error) {
	entries, missing, own := c.lookUp(n, key, keep)
	if len(missing) > 0 {
		go c.fetch(context.WithoutCancel(ctx), missing, own, read)
	}
	values := make([]V, n)
	var last *batch
	for i, e := range entries {
		if e.batch != last {
			select {
			case <-e.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if e.err != nil {
				return nil, e.err
			}
			last = e.batch
		}
		values[i] = e.value
	}
	return values, nil
}

// lookUp returns the entry of each key. It makes entries, own, for the keys
// that are missing.
func (c *cache[K, V]) lookUp(n int, key func(int) K, keep func(K) K) (all []*entry[V], missing []K, own []*entry[V]) {
	all = make([]*entry[V], n)
	var reading *batch
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	// With a TTL, whatever is used is soon read again, so the order of reading is
	// that of use. Moving each entry to the front would cost half of a request.
	find := c.entries.Peek
	if c.ttl == forever {
		find = c.entries.Get
	}
	var fresh *batch // the last one that was found to be young enough
	for i := range n {
		k := key(i)
		e, ok := find(k)
		if ok && (e.batch == fresh || now.Sub(e.began) < c.ttl) {
			all[i], fresh = e, e.batch
			continue
		}
		if ok {
			c.entries.Remove(k)
		}
		if reading == nil {
			reading = &batch{began: now, done: make(chan struct{})}
		}
		k = keep(k)
		e = &entry[V]{batch: reading}
		c.count(k, e)
		c.entries.Add(k, e)
		all[i], missing, own = e, append(missing, k), append(own, e)
	}
	c.shrink()
	return all, missing, own
}

// count sets the size of an entry.
func (c *cache[K, V]) count(k K, e *entry[V]) {
	size := entryBytes + c.size(k, e.value)
	c.bytes += size - e.size
	e.size = size
}

// fetch reads the values of the entries of one batch.
func (c *cache[K, V]) fetch(ctx context.Context, keys []K, entries []*entry[V],
	read func(context.Context, []K, []V) error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	values := make([]V, len(keys))
	reading := entries[0].batch
	reading.err = read(ctx, keys, values)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range keys {
		kept, ok := c.entries.Peek(k)
		switch ok = ok && kept == entries[i]; {
		case reading.err != nil && ok:
			// Before a caller sees the error: a retry must read again.
			c.entries.Remove(k)
		case reading.err == nil:
			entries[i].value = values[i]
			if ok {
				c.count(k, entries[i])
			}
		}
	}
	c.shrink()
	close(reading.done)
}

// shrink evicts what exceeds the bytes, but for the last entry, which may exceed
// them alone. A caller that waits for an evicted entry still gets it.
func (c *cache[K, V]) shrink() {
	for c.bytes > c.maxBytes && c.entries.Len() > 1 {
		c.entries.RemoveOldest()
	}
}
