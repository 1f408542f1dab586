package affinity

import (
	"math"
	"sync/atomic"
)

// Memory bounds what the scorers of a process hold together. A value costs some
// 150 bytes and its name. It is safe for concurrent use.
type Memory struct{ values, bytes atomic.Int64 } // that are left

// NewMemory returns a memory of so many values and bytes of their names.
func NewMemory(values, bytes int) *Memory {
	m := &Memory{}
	m.give(int64(values), int64(bytes))
	return m
}

func (m *Memory) give(values, bytes int64) {
	m.values.Add(values)
	m.bytes.Add(bytes)
}

// Share is the part of a Memory that some scorers hold. Close gives it back.
type Share struct {
	of            *Memory
	values, bytes atomic.Int64 // taken
}

// Share returns a share that holds nothing yet.
func (m *Memory) Share() *Share { return &Share{of: m} }

// take reports whether so much was left.
func (s *Share) take(values, bytes int64) bool {
	s.of.give(-values, -bytes)
	if s.of.values.Load() < 0 || s.of.bytes.Load() < 0 {
		s.of.give(values, bytes)
		return false
	}
	s.values.Add(values)
	s.bytes.Add(bytes)
	return true
}

func (s *Share) give(values, bytes int64) {
	s.values.Add(-values)
	s.bytes.Add(-bytes)
	s.of.give(values, bytes)
}

// Close gives the share back. Its scorers must not be used any more.
func (s *Share) Close() { s.give(s.values.Load(), s.bytes.Load()) }

// held bounds what a scorer holds of the current user.
type held struct {
	values, bytes int
	share         *Share // that gives more; nil: none
	full          bool
}

var unlimited = held{values: math.MaxInt, bytes: math.MaxInt}

// A scorer takes what it holds above freeValues and freeBytes from its share, in
// such portions.
const (
	freeValues, portionValues = 256, 1 << 10
	freeBytes, portionBytes   = 16 << 10, 64 << 10
)

// Hold makes the scorer take the memory of users with many values from a share.
// If the memory has not enough, the scorer becomes Full. Call it before the first
// event of a user.
func (sc *Scorer) Hold(s *Share) { sc.held = held{values: freeValues, bytes: freeBytes, share: s} }

// Full reports whether the user has more values than the scorer may hold. It has
// dropped all of them, and has no profile: see InPasses.
func (sc *Scorer) Full() bool { return sc.held.full }

// reach makes room for what the scorer holds, or makes it full.
func (sc *Scorer) reach() {
	h := &sc.held
	for h.share != nil && (sc.values > h.values || sc.bytes > h.bytes) {
		if !h.share.take(portionValues, portionBytes) {
			break
		}
		h.values += portionValues
		h.bytes += portionBytes
	}
	if sc.values > h.values || sc.bytes > h.bytes {
		sc.overflow()
	}
}

// overflow drops all values. From now on the scorer refuses every value.
func (sc *Scorer) overflow() {
	sc.held.reset()
	sc.held.full = true
	clear(sc.tables)
	sc.names = arena{}
}

// reset gives back what the scorer has taken.
func (h *held) reset() {
	h.full = false
	if h.share != nil && h.values > freeValues {
		h.share.give(int64(h.values-freeValues), int64(h.bytes-freeBytes))
		h.values, h.bytes = freeValues, freeBytes
	}
}
