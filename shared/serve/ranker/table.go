package ranker

// entry is the value of a key. It may be read only when its batch is done.
type entry[K comparable, V any] struct {
	*batch
	hash  uint64
	key   K
	value V

	// The rest belongs to the table, and to the mutex of its cache.
	size         int // as counted
	gone         bool
	next         *entry[K, V] // in the bucket
	older, newer *entry[K, V]
}

// table finds entries by their keys, and lists them by age. A lookup reads a
// bucket, an entry and its key, and no more: a request makes thousands, and most
// of their time goes by in waits for the memory.
type table[K comparable, V any] struct {
	buckets        []*entry[K, V] // a power of 2, at least the number of entries
	length         int
	oldest, newest *entry[K, V]
}

const firstBuckets = 64

// find returns the entry of a key, or nil.
func (t *table[K, V]) find(hash uint64, key K) *entry[K, V] { return t.first(hash).find(hash, key) }

// first returns the first entry of a bucket, or nil.
func (t *table[K, V]) first(hash uint64) *entry[K, V] {
	if t.length == 0 {
		return nil
	}
	return t.buckets[hash&uint64(len(t.buckets)-1)]
}

// find returns the entry of a key from e on in the bucket, or nil.
func (e *entry[K, V]) find(hash uint64, key K) *entry[K, V] {
	for e != nil && (e.hash != hash || e.key != key) {
		e = e.next
	}
	return e
}

// add adds an entry as the newest. No entry has its key.
func (t *table[K, V]) add(e *entry[K, V]) {
	if t.length == len(t.buckets) {
		t.grow()
	}
	t.length++
	t.hang(e)
	t.append(e)
}

// remove removes an entry of the table.
func (t *table[K, V]) remove(e *entry[K, V]) {
	at := &t.buckets[e.hash&uint64(len(t.buckets)-1)]
	for *at != e {
		at = &(*at).next
	}
	*at, e.next = e.next, nil
	t.length--
	t.unlink(e)
	e.gone = true
}

// renew makes an entry of the table the newest.
func (t *table[K, V]) renew(e *entry[K, V]) {
	t.unlink(e)
	t.append(e)
}

func (t *table[K, V]) hang(e *entry[K, V]) {
	at := &t.buckets[e.hash&uint64(len(t.buckets)-1)]
	e.next, *at = *at, e
}

func (t *table[K, V]) grow() {
	t.buckets = make([]*entry[K, V], max(firstBuckets, 2*len(t.buckets)))
	for e := t.oldest; e != nil; e = e.newer {
		t.hang(e)
	}
}

func (t *table[K, V]) append(e *entry[K, V]) {
	e.older, e.newer = t.newest, nil
	if t.newest == nil {
		t.oldest = e
	} else {
		t.newest.newer = e
	}
	t.newest = e
}

func (t *table[K, V]) unlink(e *entry[K, V]) {
	if e.older == nil {
		t.oldest = e.newer
	} else {
		e.older.newer = e.newer
	}
	if e.newer == nil {
		t.newest = e.older
	} else {
		e.newer.older = e.older
	}
	e.older, e.newer = nil, nil
}
