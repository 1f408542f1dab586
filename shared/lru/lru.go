// Package lru makes caches that evict the least recently used entry. It is the one door to
// the library of them, and holds no state of its own.
//
// Its Cache is an interface because of what a build costs. Where a struct holds a library's
// generic type, each package that uses the struct compiles the library for it once more.
package lru

import (
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache keeps entries up to a number.
type Cache[K comparable, V any] interface {
	// Get returns a value and makes it the most recently used one.
	Get(K) (V, bool)
	// Peek is Get, but does not count as a use.
	Peek(K) (V, bool)
	// Add sets a value, which is the most recently used one then. It reports whether it has
	// evicted another.
	Add(K, V) (evicted bool)
	// Remove removes an entry and reports whether it was there.
	Remove(K) bool
	// GetOldest returns the least recently used entry.
	GetOldest() (K, V, bool)
	// RemoveOldest removes the least recently used entry and returns it.
	RemoveOldest() (K, V, bool)
	// Contains reports whether there is an entry. It does not count as a use.
	Contains(K) bool
	// Len returns the number of entries.
	Len() int
}

// New returns a cache of at most size entries, a positive number. It is safe for concurrent
// use.
func New[K comparable, V any](size int) Cache[K, V] {
	c, err := lru.New[K, V](size)
	if err != nil {
		panic(err)
	}
	return c
}

// NewUnlocked is New for callers that hold a lock of their own. The cache passes each entry
// that leaves it to left, which may be nil.
func NewUnlocked[K comparable, V any](size int, left func(K, V)) Cache[K, V] {
	c, err := simplelru.NewLRU(size, left)
	if err != nil {
		panic(err)
	}
	return c
}
