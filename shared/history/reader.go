package history

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/affinity"
)

// Reader scores the blocks of any number of users. Its scratch memory grows to
// a few times the largest block. A Reader is not safe for concurrent use.
type Reader struct {
	c            *affinity.Compiled
	k            int // scores of an affinity
	dictionaries Dictionaries

	names  []byte    // kinds of events, as stored in the last block
	points []float64 // by kind: its event score

	// By ordinal of the block's events:
	times   []int64
	scored  []float64   // points; 0 outside the window
	weights [][]float64 // by score: decayed points

	ordinals []uint32 // of one value
	counts   []float64
	totals   []float64

	// oldest is the ordinal of the oldest event found to score, or the number
	// of events before the first find. firstScored is the first ordinal with
	// points. Only ordinals in [firstScored, seek) may still hold an older
	// event that scores.
	oldest, seek, firstScored int

	recent ObjectReader // of Recent
}

// NewReader returns a reader for a strategy and the blocks of one app, whose
// dictionaries it takes from dictionaries. nil: it reads no block that names one.
func NewReader(c *affinity.Compiled, dictionaries Dictionaries) *Reader {
	k := c.Scores()
	return &Reader{c: c, k: k, dictionaries: dictionaries, weights: make([][]float64, k), totals: make([]float64, k)}
}

var errStrategy = errors.New("the scorer and the reader have different strategies")

// Score adds all events of a block to a scorer with the reader's strategy. It
// returns the number of events in the block, inside the window or not. An error
// means that the block is damaged or has an unknown format (ErrNewer). The
// scorer may then hold part of the block and must be discarded.
func (r *Reader) Score(block []byte, sc *affinity.Scorer) (events int, err error) {
	if sc.Compiled() != r.c {
		return 0, errStrategy
	}
	err = Check(block)
	if err == nil && !r.score(block, sc, &events) {
		err = errDamaged
	}
	if err != nil {
		return 0, fmt.Errorf("score block of %d bytes: %w", len(block), err)
	}
	return events, nil
}

func (r *Reader) score(block []byte, sc *affinity.Scorer, events *int) bool {
	f, ok := open(block)
	if !ok {
		return false
	}
	n := f.events
	*events = n
	r.times = resize(r.times, n)
	if !f.readTimes(r.times) || !r.readNames(f.kinds) {
		return false
	}
	lo, hi := sc.BeginRun(r.times)
	if lo == hi {
		return true
	}
	sections, ok := r.readKinds(f.rest, n)
	if !ok {
		return false
	}
	clear(r.scored[:lo])
	clear(r.scored[hi:])
	r.firstScored = slices.IndexFunc(r.scored, func(points float64) bool { return points > 0 })
	if r.firstScored < 0 {
		return true
	}
	for k := range r.weights {
		w := resize(r.weights[k], n)
		clear(w[:lo])
		clear(w[hi:])
		sc.Weigh(k, w[lo:hi], r.scored[lo:hi], r.times[lo:hi])
		r.weights[k] = w
	}
	r.oldest, r.seek = n, n
	if !r.sections(&f, sections, sc) {
		return false
	}
	if r.oldest < n {
		sc.Scored(r.times[r.oldest])
	}
	return true
}

// resize returns s with length n. Its contents are undefined.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, n+n/4)
}

// readNames looks up the event score of each kind of events.
func (r *Reader) readNames(kinds []byte) bool {
	if r.points != nil && bytes.Equal(kinds, r.names) {
		return true
	}
	r.names = append(r.names[:0], kinds...)
	r.points = r.points[:0]
	c := cursor{b: kinds}
	for c.next < len(kinds) && !c.damaged {
		typ := c.text()
		r.points = append(r.points, r.c.Points(typ, c.text()))
	}
	if c.damaged {
		r.points = nil
	}
	return !c.damaged
}

// readKinds looks up the score of each event and returns the bytes behind the
// kinds.
func (r *Reader) readKinds(b []byte, n int) (sections []byte, ok bool) {
	r.scored = resize(r.scored, n)
	if len(r.points) <= shortKinds {
		for i, kind := range b[:n] {
			if int(kind) >= len(r.points) {
				return nil, false
			}
			r.scored[i] = r.points[kind]
		}
		return b[n:], true
	}
	p := 0
	for i := range r.scored {
		var kind uint64
		if kind, p = uvarint(b, p); p > len(b) || kind >= uint64(len(r.points)) {
			return nil, false
		}
		r.scored[i] = r.points[kind]
	}
	return b[p:], true
}

// sections scores the sections of the facets that the strategy scores.
func (r *Reader) sections(f *frame, b []byte, sc *affinity.Scorer) bool {
	c := f.facets
	for range f.listed {
		name, size := c.text(), c.unsigned()
		if size > uint64(len(b)) {
			return false
		}
		if facet, ok := r.c.Facet(name); ok && !r.section(b[:size], facet, sc) {
			return false
		}
		b = b[size:]
	}
	return len(b) == 0
}

func (r *Reader) section(b []byte, facet int, sc *affinity.Scorer) bool {
	for p := 0; p < len(b); {
		size, start := uvarint(b, p)
		if start > len(b) || size > uint64(len(b)-start) {
			return false
		}
		end := start + int(size)
		head, first := uvarint(b, end)
		if first > len(b) || head/2 > uint64(len(b)-first) {
			return false
		}
		n, ok := int(head/2), false
		if r.k == 1 && head&1 == 0 {
			p, ok = r.total(b, first, n)
		} else {
			p, ok = r.eachTotal(b, first, n, head&1 != 0)
		}
		if !ok {
			return false
		}
		if r.totals[0] == 0 && !r.anyScores(b, first, n, head&1 != 0) {
			continue
		}
		sc.AddTotals(facet, b, start, end, r.totals)
	}
	return true
}

// anyScores reports whether one of n events scores, if only a zero by decay.
func (r *Reader) anyScores(b []byte, p, n int, mixed bool) bool {
	ordinal := uint64(0)
	for range n {
		var since uint64
		since, p = uvarint(b, p)
		if mixed {
			more := since&1 != 0
			since /= 2
			if more {
				_, p = uvarint(b, p)
			}
		}
		if ordinal += since; r.scored[ordinal] > 0 {
			return true
		}
	}
	return false
}

// total sums the weights of n events whose counts are all 1, for a strategy
// with one score.
func (r *Reader) total(b []byte, p, n int) (int, bool) {
	weights, ordinal, total := r.weights[0], uint64(0), 0.0
	start := p
	for range n {
		var since uint64
		if p < len(b) && b[p] < 0x80 { // uvarint, inlined for speed
			since = uint64(b[p])
			p++
		} else {
			since, p = longUvarint(b, p)
		}
		ordinal += since
		if ordinal >= uint64(len(weights)) || since >= uint64(len(weights)) || p > len(b) {
			return 0, false
		}
		total += weights[ordinal]
	}
	r.totals[0] = total
	if r.seek > 0 {
		r.seekOldest(b, start, n)
	}
	return p, true
}

// seekOldest searches n postings, whose counts are all 1, for the first event
// that scores.
func (r *Reader) seekOldest(b []byte, p, n int) {
	ordinal := uint64(0)
	for range n {
		var since uint64
		since, p = uvarint(b, p)
		if ordinal += since; int(ordinal) >= r.seek {
			return
		}
		if r.scored[ordinal] > 0 {
			r.noteOldest(int(ordinal))
			return
		}
	}
}

// noteOldest records an event that scores and is older than any found before.
func (r *Reader) noteOldest(ordinal int) {
	r.oldest, r.seek = ordinal, ordinal
	if ordinal <= r.firstScored {
		r.seek = 0
	}
}

// eachTotal sums weight x count of n events for each score.
func (r *Reader) eachTotal(b []byte, p, n int, mixed bool) (int, bool) {
	r.ordinals, r.counts = resize(r.ordinals, n), resize(r.counts, n)
	ordinal, events := uint64(0), uint64(len(r.scored))
	for i := range n {
		var since uint64
		since, p = uvarint(b, p)
		count := uint64(1)
		if mixed {
			more := since&1 != 0
			since /= 2
			if more {
				count, p = uvarint(b, p)
			}
		}
		ordinal += since
		if since >= events || ordinal >= events || p > len(b) || !countable(count) {
			return 0, false
		}
		r.ordinals[i], r.counts[i] = uint32(ordinal), float64(count)
		if int(ordinal) < r.seek && r.scored[ordinal] > 0 {
			r.noteOldest(int(ordinal))
		}
	}
	for k, weights := range r.weights {
		total := 0.0
		for i, ordinal := range r.ordinals {
			total += weights[ordinal] * r.counts[i]
		}
		r.totals[k] = total
	}
	return p, true
}

// countable reports whether a stored count is in the range of an event's
// counts.
func countable(count uint64) bool { return count-1 < 1<<63-1 }
