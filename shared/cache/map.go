// Package cache keeps in the memory of a process what it has read or computed. A Map is
// bounded and holds values. A Reads also reads them: once for all calls that wait, and again
// before they are too old. Older values serve while the store is slow. A Memory holds what was
// lately read or written of users. A Writer writes what a process collects, later.
//
// The library otter holds the entries, and decides which leave. No other package imports it.
// Only the objects of rankings lie in a table of our own: one request looks up thousands.
package cache

import (
	"time"

	"github.com/maypok86/otter/v2"
)

// EntryBytes estimates what an entry of a sized cache takes beside its key's text and its value.
const EntryBytes = 240

// Map keeps values up to a number of entries or of bytes. What is used seldom or has not been
// used for long leaves first. It is safe for concurrent use.
type Map[K comparable, V any] struct{ kept library }

// library is a cache of the library. It holds keys and values as interfaces, and a Map holds it
// behind one: so the program compiles the library once, and not once for each package that has
// a Map. A lookup takes some 50 ns more.
type library interface {
	GetIfPresent(key any) (any, bool)
	peek(key any) (any, bool)
	Set(key, value any) (any, bool)
	Invalidate(key any) (any, bool)
	EstimatedSize() int
	WeightedSize() uint64
}

type compiled struct{ *otter.Cache[any, any] }

func (c compiled) peek(key any) (any, bool) {
	e, ok := c.GetEntryQuietly(key)
	return e.Value, ok
}

// newLibrary returns a cache of so many entries or, if weigh is not nil, of so many bytes.
func newLibrary(most int, weigh func(key, value any) uint32) library {
	o := otter.Options[any, any]{Executor: inline, Clock: still{}, Logger: &otter.NoopLogger{}}
	if weigh == nil {
		o.MaximumSize = most
	} else {
		o.MaximumWeight, o.Weigher = uint64(most), weigh
	}
	return compiled{otter.Must(&o)}
}

// New returns a Map of at most so many entries, a positive number.
func New[K comparable, V any](entries int) Map[K, V] { return Map[K, V]{newLibrary(entries, nil)} }

// NewSized returns a Map whose entries take up to a number of bytes, a positive number: each
// EntryBytes, and what size says. An entry that is larger does not stay.
func NewSized[K comparable, V any](bytes int, size func(K, V) int) Map[K, V] {
	return Map[K, V]{newLibrary(bytes, func(k, v any) uint32 { return uint32(EntryBytes + size(k.(K), v.(V))) })}
}

// inline evicts within the call that adds an entry, so a Map is never above its bound.
func inline(evict func()) { evict() }

// still is a clock for caches that do not expire.
type still struct{}

func (still) NowNano() int64                      { return 0 }
func (still) Tick(time.Duration) <-chan time.Time { return nil }

// Get returns the value of a key.
func (m Map[K, V]) Get(key K) (V, bool) { return of[V](m.kept.GetIfPresent(key)) }

// Peek is Get, but does not count as a use.
func (m Map[K, V]) Peek(key K) (V, bool) { return of[V](m.kept.peek(key)) }

// Set sets the value of a key.
func (m Map[K, V]) Set(key K, value V) { m.kept.Set(key, value) }

// Delete deletes an entry and returns its value.
func (m Map[K, V]) Delete(key K) (V, bool) { return of[V](m.kept.Invalidate(key)) }

// Len returns the number of entries.
func (m Map[K, V]) Len() int { return m.kept.EstimatedSize() }

// Bytes returns what the entries of a sized Map take.
func (m Map[K, V]) Bytes() int { return int(m.kept.WeightedSize()) }

func of[V any](value any, ok bool) (V, bool) {
	if !ok {
		var none V
		return none, false
	}
	return value.(V), true
}
