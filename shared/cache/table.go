package cache

import "sync"

// table finds the entries of many keys at once, up to a number of bytes, and drops the oldest
// first. A lookup reads a bucket, an entry and its key, and no more: a request makes
// thousands, and most of their time goes by in waits for the memory. BenchmarkLookups compares
// it with a Map. It always keeps one entry. It is safe for concurrent use.
type table[K comparable, V any] struct {
	maxBytes int
	hash     func(K) uint64
	size     func(K, V) int

	mu             sync.RWMutex
	buckets        []*slot[K, V] // a power of 2, at least the number of slots
	length, bytes  int
	oldest, newest *slot[K, V]
}

// slot is an entry of a table.
type slot[K comparable, V any] struct {
	hash uint64
	key  K
	Entry[V]
	size         int
	next         *slot[K, V] // in the bucket
	older, newer *slot[K, V]
}

const firstBuckets = 64

func newTable[K comparable, V any](maxBytes int, hash func(K) uint64, size func(K, V) int) *table[K, V] {
	return &table[K, V]{maxBytes: maxBytes, hash: hash, size: size}
}

func (t *table[K, V]) get(key K) *Entry[V] {
	hash := t.hash(key)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if s := t.first(hash).find(hash, key); s != nil {
		return &s.Entry
	}
	return nil
}

// all sets the entries of keys. It reads the buckets of several keys before it follows any:
// these reads depend on nothing, so the processor waits for many of them at the same time.
func (t *table[K, V]) all(keys []K, into []*Entry[V]) {
	var hashes [64]uint64
	var first [64]*slot[K, V]
	t.mu.RLock()
	defer t.mu.RUnlock()
	for from := 0; from < len(keys); from += len(hashes) {
		part := keys[from:min(from+len(hashes), len(keys))]
		for i, k := range part {
			hashes[i] = t.hash(k)
			first[i] = t.first(hashes[i])
		}
		for i, k := range part {
			if s := first[i].find(hashes[i], k); s != nil {
				into[from+i] = &s.Entry
			}
		}
	}
}

// first returns the first slot of a bucket, or nil.
func (t *table[K, V]) first(hash uint64) *slot[K, V] {
	if t.length == 0 {
		return nil
	}
	return t.buckets[hash&uint64(len(t.buckets)-1)]
}

// find returns the slot of a key from s on in the bucket, or nil.
func (s *slot[K, V]) find(hash uint64, key K) *slot[K, V] {
	for s != nil && (s.hash != hash || s.key != key) {
		s = s.next
	}
	return s
}

// put sets the entry of a key, as the newest.
func (t *table[K, V]) put(key K, e Entry[V]) {
	hash, size := t.hash(key), EntryBytes+t.size(key, e.Value)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(t.first(hash).find(hash, key))
	if t.length == len(t.buckets) {
		t.grow()
	}
	s := &slot[K, V]{hash: hash, key: key, Entry: e, size: size, older: t.newest}
	if t.newest == nil {
		t.oldest = s
	} else {
		t.newest.newer = s
	}
	t.newest = s
	t.hang(s)
	t.length++
	for t.bytes += size; t.bytes > t.maxBytes && t.length > 1; {
		t.drop(t.oldest)
	}
}

func (t *table[K, V]) remove(key K) {
	hash := t.hash(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(t.first(hash).find(hash, key))
}

// drop removes a slot, which may be nil.
func (t *table[K, V]) drop(s *slot[K, V]) {
	if s == nil {
		return
	}
	at := &t.buckets[s.hash&uint64(len(t.buckets)-1)]
	for *at != s {
		at = &(*at).next
	}
	*at, s.next = s.next, nil
	if s.older == nil {
		t.oldest = s.newer
	} else {
		s.older.newer = s.newer
	}
	if s.newer == nil {
		t.newest = s.older
	} else {
		s.newer.older = s.older
	}
	t.length--
	t.bytes -= s.size
}

func (t *table[K, V]) hang(s *slot[K, V]) {
	at := &t.buckets[s.hash&uint64(len(t.buckets)-1)]
	s.next, *at = *at, s
}

func (t *table[K, V]) grow() {
	t.buckets = make([]*slot[K, V], max(firstBuckets, 2*len(t.buckets)))
	for s := t.oldest; s != nil; s = s.newer {
		t.hang(s)
	}
}
