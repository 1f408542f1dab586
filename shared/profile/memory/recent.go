// Package memory keeps values of users in the memory of a process, up to a number of
// bytes: what a refresh of a user has read or written, for the next refresh of the same
// user. Everything in it is a copy of what Bigtable holds, so any of it may be missing.
// It is a package of its own because the values are of several kinds and share one bound.
//
// It drops what was put first, and not what is used seldom, as package cache does: the events of
// a user come in bursts. BenchmarkVisits compares both on real shops: with room for 500 of 24,000
// users, 85 of 100 takes find their value here and 68 there.
package memory

import (
	"container/list"
	"sync"
)

// entryBytes estimates what an entry takes beside its names and its value.
const entryBytes = 240

// largest is the share of a Memory that one value may take: an eighth. A larger one is
// not kept, because it would displace the values of many others.
const largest = 8

// Memory keeps values up to a number of bytes. It drops those that were put first. It is
// safe for concurrent use. The zero value keeps nothing.
type Memory struct {
	most int

	mu      sync.Mutex
	parts   int
	bytes   int
	entries map[key]*list.Element
	oldest  list.List // of *entry, the oldest first
}

type key struct {
	part      int
	app, user string
}

type entry struct {
	key
	value any
	bytes int
}

// New returns a Memory of so many bytes.
func New(bytes int64) *Memory {
	return &Memory{most: int(bytes), entries: map[key]*list.Element{}}
}

// Bytes returns how many bytes the values take, with their names.
func (m *Memory) Bytes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// Values are the values of one kind in a Memory, at most one for each user.
type Values[V any] struct {
	memory *Memory
	part   int
}

// Of adds a kind of values to a memory.
func Of[V any](m *Memory) Values[V] {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts++
	return Values[V]{m, m.parts}
}

// Put keeps a value of a user, in place of an earlier one. bytes is what the value
// takes. The value then belongs to the memory: the caller must not use it again before
// Take returns it. Put reports whether it keeps the value: not if it is too large.
func (v Values[V]) Put(app, user string, value V, bytes int) bool {
	m, k := v.memory, key{v.part, app, user}
	bytes += entryBytes + len(app) + len(user)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(m.entries[k])
	if bytes > m.most/largest {
		return false
	}
	m.entries[k] = m.oldest.PushBack(&entry{k, value, bytes})
	for m.bytes += bytes; m.bytes > m.most; {
		m.remove(m.oldest.Front())
	}
	return true
}

// Take removes the value of a user and returns it. False means that the memory does not
// have it. No two callers get the same value, so the caller may change it and put it
// again.
func (v Values[V]) Take(app, user string) (V, bool) {
	m := v.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.remove(m.entries[key{v.part, app, user}])
	if e == nil {
		var none V
		return none, false
	}
	return e.value.(V), true
}

// remove removes an entry, which may be nil, and returns it. The caller holds mu.
func (m *Memory) remove(el *list.Element) *entry {
	if el == nil {
		return nil
	}
	e := m.oldest.Remove(el).(*entry)
	delete(m.entries, e.key)
	m.bytes -= e.bytes
	return e
}
