package ranker

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/deadline"
)

// forever is the TTL of what never changes.
const forever = time.Duration(math.MaxInt64)

// readTimeout ends a read that the backend does not answer. A read continues
// when the request that began it ends, since other requests may wait for it.
const readTimeout = 10 * time.Second

// entryBytes estimates what an entry takes beside its key's text and its value:
// the entry, its bucket and its batch.
const entryBytes = 240

// cache keeps what batched reads have found, up to a number of bytes. It evicts
// the oldest, or without a TTL what was used least recently, and always keeps one
// entry. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	ttl time.Duration
	// due is the age from which an entry that is used is read again, ahead of its
	// end: so the next requests need not wait.
	due      time.Duration
	maxBytes int
	now      func() time.Time
	// size returns the bytes that a key and its value take. The value may be the
	// zero value.
	size       func(K, V) int
	refreshing atomic.Bool

	mu      sync.RWMutex
	entries table[K, V]
	bytes   int
}

// batch is one read of several keys.
type batch struct {
	began time.Time
	done  chan struct{} // closed when the values and err are set
	err   error
}

// wanted are the values that a call asks for.
type wanted[K comparable, V any] struct {
	n    int           // of distinct keys
	key  func(i int) K // at a position
	hash func(i int) uint64
	keep func(K) K // copies a key that may outlive the call
	// read fills in the values of keys. It leaves those that it does not find.
	read func(ctx context.Context, keys []K, values []V) error
	take func(i int, value V)
}

func newCache[K comparable, V any](ttl time.Duration, maxBytes int, now func() time.Time, size func(K, V) int) *cache[K, V] {
	return &cache[K, V]{ttl: ttl, due: ttl - ttl/5, maxBytes: maxBytes, now: now, size: size}
}

// get passes each value to take. It reads the keys that it does not hold, or that
// are older than the TTL, in one call of read. A key that another call reads at
// the moment is not read twice.
func (c *cache[K, V]) get(ctx context.Context, w wanted[K, V]) error {
	own, err := c.attempt(ctx, w)
	if err != nil && !own && ctx.Err() == nil {
		_, err = c.attempt(ctx, w)
	}
	return err
}

// attempt is get, except that it may return the error of another call's read. It
// reports whether the error is its own.
func (c *cache[K, V]) attempt(ctx context.Context, w wanted[K, V]) (own bool, err error) {
	entries := make([]*entry[K, V], w.n)
	missing, due := c.lookUp(&w, entries)
	if len(missing) > 0 {
		detached, end := deadline.Detach(ctx, deadline.Longest)
		go func() { defer end(); c.fetch(detached, missing, w.read) }()
	}
	var last *batch
	for i, e := range entries {
		if e.batch != last {
			select {
			case <-e.done:
			case <-ctx.Done():
				return true, ctx.Err()
			}
			if e.err != nil {
				return len(missing) > 0 && missing[0].batch == e.batch, e.err
			}
			last = e.batch
		}
		w.take(i, e.value)
	}
	if due && c.refreshing.CompareAndSwap(false, true) {
		detached, end := deadline.Detach(ctx, deadline.Longest)
		go func() { defer end(); c.refresh(detached, entries, w.read) }()
	}
	return true, nil
}

// lookUp sets the entry of each key. It makes entries for the keys that are
// missing. due says that some entry should be read ahead.
func (c *cache[K, V]) lookUp(w *wanted[K, V], into []*entry[K, V]) (missing []*entry[K, V], due bool) {
	if c.ttl < forever {
		c.mu.RLock()
		absent, due := c.find(w, into)
		c.mu.RUnlock()
		if absent == 0 {
			return nil, due
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, due = c.find(w, into); c.ttl == forever {
		for _, e := range into {
			if e != nil {
				c.entries.renew(e)
			}
		}
	}
	reading := &batch{began: c.now(), done: make(chan struct{})}
	for i, e := range into {
		if e != nil {
			continue
		}
		k, hash := w.key(i), w.hash(i)
		made := &entry[K, V]{batch: reading, hash: hash}
		if old := c.entries.find(hash, k); old != nil {
			made.key = old.key
			c.remove(old)
		} else {
			made.key = w.keep(k)
		}
		c.add(made)
		into[i], missing = made, append(missing, made)
	}
	c.shrink()
	return missing, due
}

// find sets the entries that are young enough, and counts the absent ones. It
// reads the buckets of several keys before it follows any: these reads depend on
// nothing, so the processor waits for many of them at the same time.
func (c *cache[K, V]) find(w *wanted[K, V], into []*entry[K, V]) (absent int, due bool) {
	now := c.now()
	var young *batch
	var hashes [64]uint64
	for from := 0; from < len(into); from += len(hashes) {
		part := into[from:min(from+len(hashes), len(into))]
		for i := range part {
			hashes[i] = w.hash(from + i)
			part[i] = c.entries.first(hashes[i])
		}
		for i, e := range part {
			e = e.find(hashes[i], w.key(from+i))
			if e != nil && e.batch != young {
				age := now.Sub(e.began)
				if age < c.ttl {
					young, due = e.batch, due || age >= c.due
				} else {
					e = nil
				}
			}
			if part[i] = e; e == nil {
				absent++
			}
		}
	}
	return absent, due
}

// fetch reads the values of the entries of one batch.
func (c *cache[K, V]) fetch(ctx context.Context, entries []*entry[K, V], read func(context.Context, []K, []V) error) {
	values, err := readAll(ctx, entries, read)
	reading := entries[0].batch
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range entries {
		if err != nil {
			// Before a caller sees the error: a retry must read again.
			c.remove(e)
			continue
		}
		e.value = values[i]
		c.count(e)
	}
	c.shrink()
	reading.err = err
	close(reading.done)
}

// refresh replaces the entries that are due, among those that a call has used. One
// refresh runs at a time, so that requests have the rest of the machine. What it
// cannot read stays until its end, and the request that needs it then gets the
// error.
func (c *cache[K, V]) refresh(ctx context.Context, used []*entry[K, V], read func(context.Context, []K, []V) error) {
	defer c.refreshing.Store(false)
	reading := &batch{began: c.now(), done: make(chan struct{})}
	close(reading.done)
	var old []*entry[K, V]
	c.mu.RLock()
	for _, e := range used {
		if !e.gone && reading.began.Sub(e.began) >= c.due {
			old = append(old, e)
		}
	}
	c.mu.RUnlock()
	if len(old) == 0 {
		return
	}
	values, err := readAll(ctx, old, read)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range old {
		if !e.gone {
			c.remove(e)
			c.add(&entry[K, V]{batch: reading, hash: e.hash, key: e.key, value: values[i]})
		}
	}
	c.shrink()
}

// readAll reads the values of entries, without setting them.
func readAll[K comparable, V any](ctx context.Context, entries []*entry[K, V], read func(context.Context, []K, []V) error) ([]V, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	keys, values := make([]K, len(entries)), make([]V, len(entries))
	for i, e := range entries {
		keys[i] = e.key
	}
	return values, read(ctx, keys, values)
}

func (c *cache[K, V]) add(e *entry[K, V]) {
	c.entries.add(e)
	c.count(e)
}

// remove removes an entry, unless it is gone.
func (c *cache[K, V]) remove(e *entry[K, V]) {
	if !e.gone {
		c.entries.remove(e)
		c.bytes -= e.size
	}
}

// count sets the size of an entry, unless it is gone.
func (c *cache[K, V]) count(e *entry[K, V]) {
	if !e.gone {
		size := entryBytes + c.size(e.key, e.value)
		c.bytes += size - e.size
		e.size = size
	}
}

// shrink evicts what exceeds the bytes, but for the last entry, which may exceed
// them alone. A caller that waits for an evicted entry still gets it.
func (c *cache[K, V]) shrink() {
	for c.bytes > c.maxBytes && c.entries.length > 1 {
		c.remove(c.entries.oldest)
	}
}
