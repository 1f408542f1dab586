package affinity

import (
	"math"
	"sync/atomic"
)

// Memory bounds what the scorers of a process hold together. A value costs some
// 150 bytes and its name. It is safe for concurrent use.
//
// A scorer may hold at most as much as is left for all others. So one large user
// gets half of the memory, two get a third each, and n leave 1/(n+1) to the rest.
type Memory struct {
	values, bytes atomic.Int64 // that are left
	free          Hold
}

// NewMemory returns a memory for what scorers hold above free, each of them.
func NewMemory(all, free Hold) *Memory {
	m := &Memory{free: free}
	m.give(int64(all.Values), int64(all.Bytes))
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

// take reports whether so much was left, and would leave at least what a scorer
// would then hold.
func (s *Share) take(values, bytes int64, holds Hold) bool {
	s.of.give(-values, -bytes)
	if s.of.values.Load() < int64(holds.Values) || s.of.bytes.Load() < int64(holds.Bytes) {
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

// A scorer takes memory from its share in such portions.
const (
	portionValues = 1 << 10
	portionBytes  = 64 << 10
)

// Hold makes the scorer take the memory of users with many values from a share.
// If the memory has not enough, the scorer becomes Full. Call it before the first
// event of a user.
func (sc *Scorer) Hold(s *Share) {
	sc.held = held{values: s.of.free.Values, bytes: s.of.free.Bytes, share: s}
}

// Full reports whether the user has more values than the scorer may hold. It has
// dropped all of them, and has no profile: see InPasses.
func (sc *Scorer) Full() bool { return sc.held.full }

// reach makes room for what the scorer holds, or makes it full.
func (sc *Scorer) reach() {
	h := &sc.held
	for h.share != nil && (sc.values > h.values || sc.bytes > h.bytes) {
		free := h.share.of.free
		holds := Hold{h.values - free.Values + portionValues, h.bytes - free.Bytes + portionBytes}
		if !h.share.take(portionValues, portionBytes, holds) {
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
	sc.forget()
}

// reset gives back what the scorer has taken.
func (h *held) reset() {
	h.full = false
	if h.share == nil {
		return
	}
	if free := h.share.of.free; h.values > free.Values {
		h.share.give(int64(h.values-free.Values), int64(h.bytes-free.Bytes))
		h.values, h.bytes = free.Values, free.Bytes
	}
}
