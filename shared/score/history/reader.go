package history

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Reader scores the blocks of any number of users. Its scratch memory grows to
// a few times the largest block. A Reader is not safe for concurrent use.
type Reader struct {
	c            *affinity.Compiled
	k            int // scores of an affinity
	dictionaries Dictionaries

	names  []byte    // kinds of the last block's events, as stored
	points []float64 // by kind: its event score

	bound    *bound   // for the dictionary of the last block, nil: it had none
	boundAll []*bound // for recent dictionaries

	// By ordinal of the block's events:
	times   []int64
	scored  []float64   // points; 0 outside the window
	weights [][]float64 // by score: decayed points

	ordinals []uint32 // of one value
	totals   []float64

	// oldest is the ordinal of the oldest event found to score, or the number
	// of events before the first find. firstScored is the first ordinal with
	// points. Only ordinals in [firstScored, seek) may still hold an older
	// event that scores.
	oldest, seek, firstScored int

	postings postings // of one group

	recent ObjectReader // of Recent
}

// NewReader returns a reader for a strategy and the blocks of one app, whose
// dictionaries it takes from dictionaries. nil: it reads no block that names one.
func NewReader(c *affinity.Compiled, dictionaries Dictionaries) *Reader {
	k := c.Scores()
	return &Reader{c: c, k: k, dictionaries: dictionaries, recent: ObjectReader{Strategy: c},
		weights: make([][]float64, k), totals: make([]float64, k)}
}

var errStrategy = errors.New("the scorer and the reader have different strategies")

// Score adds all events of a block to a scorer with the reader's strategy. It
// returns the number of events in the block, inside the window or not. The error
// is ErrUnread if the dictionary of the block cannot be read at the moment. Any
// other error means that the block is damaged, has an unknown format (wire.ErrNewer), or
// has lost its dictionary (ErrNoDictionary). The scorer may then hold part of the
// block and must be discarded.
func (r *Reader) Score(block []byte, sc *affinity.Scorer) (events int, err error) {
	return r.ScoreBetween(block, sc, math.MinInt64, math.MaxInt64)
}

// ScoreBetween is Score of the events of times from <= time < to (ms). It returns the number of events in the block.
func (r *Reader) ScoreBetween(block []byte, sc *affinity.Scorer, from, to int64) (events int, err error) {
	if sc.Compiled() != r.c {
		return 0, errStrategy
	}
	f, err := open(block)
	if err != nil {
		return 0, err
	}
	if err := r.bind(&f); err != nil {
		return 0, fmt.Errorf("score block of %d bytes: %w", len(block), err)
	}
	if !r.score(&f, sc, from, to) {
		return 0, damaged(block)
	}
	return f.events, nil
}

func (r *Reader) score(f *frame, sc *affinity.Scorer, from, to int64) bool {
	n := f.events
	r.times = resize(r.times, n)
	if !f.readTimes(r.times) || !r.readNames(f) {
		return false
	}
	first, end := 0, n
	if n > 0 && (r.times[0] < from || r.times[n-1] >= to) {
		first, _ = slices.BinarySearch(r.times, from)
		end, _ = slices.BinarySearch(r.times, max(from, to))
	}
	lo, hi := sc.BeginRun(r.times[first:end])
	lo, hi = lo+first, hi+first
	if lo == hi {
		return true
	}
	if !r.readKinds(f) {
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
	if !r.sections(f, sc) {
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
func (r *Reader) readNames(f *frame) bool {
	if r.points != nil && bytes.Equal(f.kinds, r.names) {
		return true
	}
	r.names, r.points = append(r.names[:0], f.kinds...), r.points[:0]
	k := kindCursor{cursor: cursor{B: f.kinds}}
	for k.next() {
		switch {
		case k.id < 0:
			r.points = append(r.points, r.c.Points(k.typ, k.name))
		case r.bound == nil || k.id >= len(r.bound.points):
			k.Damaged = true
		default:
			r.points = append(r.points, r.bound.points[k.id])
		}
	}
	if k.Damaged {
		r.points = nil
	}
	return !k.Damaged
}

// readKinds looks up the score of each event.
func (r *Reader) readKinds(f *frame) bool {
	r.scored = resize(r.scored, f.events)
	switch f.width {
	case 0:
		for i := range r.scored {
			r.scored[i] = r.points[0]
		}
	case 8:
		for i, kind := range f.indexes {
			if int(kind) >= len(r.points) {
				return false
			}
			r.scored[i] = r.points[kind]
		}
	default:
		r.ordinals = resize(r.ordinals, f.events)
		if !f.readKinds(r.ordinals) {
			return false
		}
		for i, kind := range r.ordinals {
			r.scored[i] = r.points[kind]
		}
	}
	return true
}

// sections scores the sections of the facets that the strategy scores.
func (r *Reader) sections(f *frame, sc *affinity.Scorer) bool {
	s := f.eachSection()
	for s.next() {
		if !r.groups(&s.section, sc) {
			return false
		}
	}
	return s.done()
}

// anyScores reports whether one of n events, whose counts are all 1, scores, if only a
// zero by decay.
func (r *Reader) anyScores(b []byte, p, n int) bool {
	ordinal := uint64(0)
	for range n {
		var since uint64
		since, p = uvarint(b, p)
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

// countable reports whether a stored count is in the range of an event's
// counts.
func countable(count uint64) bool { return count-1 < 1<<63-1 }
