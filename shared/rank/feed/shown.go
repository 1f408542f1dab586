package feed

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Shown is the set of the records that a walk has shown. It holds a fingerprint of
// each, a few bits of the object's key, so that a cursor stays short: either of the
// records shown or, once these are more than half, of those that remain.
//
// Fingerprints of two records may be equal. The set then says the wrong thing of one of
// them, and holds that record's whole key as an exception. So it is exact for every
// record that all pages have seen, and no record is shown twice. A record that entered the
// feed after the walk began, or left it for a while, may be taken for one that was shown.
type Shown struct {
	bits      int // of a fingerprint
	salt      uint64
	words     []uint64 // a bit for each fingerprint
	remaining bool     // the words hold the records that remain
	// exceptions are the keys of records of which the words say the wrong thing,
	// ascending.
	exceptions []uint64
}

const (
	// spareBits are the bits of a fingerprint beyond those that number the candidates:
	// with 6, one record in 64 shares its fingerprint with another. An exception takes 64
	// bits, and a further bit in each fingerprint would take more than it saves.
	spareBits = 6
	minBits   = spareBits
	maxBits   = 20
)

// NewShown returns the empty set of a walk that starts at an instant (ms) with a
// number of candidates. Walks have different fingerprints.
func NewShown(candidates int, start int64) *Shown {
	return newShown(min(bits.Len(uint(max(candidates, 1)-1))+spareBits, maxBits), uint64(start))
}

func newShown(n int, salt uint64) *Shown {
	return &Shown{bits: n, salt: salt, words: make([]uint64, (1<<n+63)/64)}
}

// fingerprint returns the upper bits of a key mixed with the salt, by the finalizer of
// MurmurHash3 (Appleby, 2011).
func (s *Shown) fingerprint(key uint64) uint64 {
	key ^= s.salt * 0x9e3779b97f4a7c15
	key = (key ^ key>>33) * 0xff51afd7ed558ccd
	key = (key ^ key>>33) * 0xc4ceb9fe1a85ec53
	return (key ^ key>>33) >> (64 - s.bits)
}

func (s *Shown) has(f uint64) bool { return s.words[f/64]>>(f%64)&1 == 1 }

// Has reports whether the walk has shown the object of a key.
func (s *Shown) Has(key uint64) bool {
	shown := s.has(s.fingerprint(key)) != s.remaining
	if len(s.exceptions) > 0 {
		if _, wrong := slices.BinarySearch(s.exceptions, key); wrong {
			return !shown
		}
	}
	return shown
}

// Add records a page. keys are those of all candidates, and shown reports which of them
// this page or an earlier one has shown. complete says that the candidates include
// every record of the walk's start that still exists. Otherwise a fingerprint could be
// that of a record which is not among them, so the page becomes exceptions.
func (s *Shown) Add(keys []uint64, shown func(i int) bool, complete bool) {
	away := s.away(keys)
	if complete {
		n := 0
		for i := range keys {
			if shown(i) {
				n++
			}
		}
		switch {
		case s.remaining:
			s.set(keys, shown, true, false)
		case 2*n > len(keys):
			s.turn(keys, shown)
		default:
			s.set(keys, shown, true, true)
		}
	}
	s.except(keys, shown, away)
}

// turn lets the words hold the records that remain. One of them whose fingerprint a shown
// record has, also one that is not among the candidates now, becomes an exception: no
// fingerprint is set from then on, so what was shown stays shown.
func (s *Shown) turn(keys []uint64, shown func(i int) bool) {
	was := s.words
	s.remaining, s.words = true, make([]uint64, len(was))
	s.set(keys, shown, false, true)
	for i := range s.words {
		s.words[i] &^= was[i]
	}
	s.set(keys, shown, true, false)
}

// set sets or clears the fingerprints of those keys that were shown, or that were not.
func (s *Shown) set(keys []uint64, shown func(i int) bool, which, to bool) {
	for i, k := range keys {
		if shown(i) != which {
			continue
		}
		f := s.fingerprint(k)
		if to {
			s.words[f/64] |= 1 << (f % 64)
		} else {
			s.words[f/64] &^= 1 << (f % 64)
		}
	}
}

// maxExceptions bounds a cursor. A walk has as many only if objectIDs were chosen to
// have equal fingerprints, or if no list of candidates could be read for ten pages of
// 100 records.
const maxExceptions = 1000

// away returns the exceptions that are not among the candidates, and whether each of them was
// shown.
func (s *Shown) away(keys []uint64) map[uint64]bool {
	if len(s.exceptions) == 0 {
		return nil
	}
	away := make(map[uint64]bool, len(s.exceptions))
	for _, k := range s.exceptions {
		away[k] = s.Has(k)
	}
	for _, k := range keys {
		delete(away, k)
	}
	return away
}

// except finds the exceptions among the candidates and those that are away.
func (s *Shown) except(keys []uint64, shown func(i int) bool, away map[uint64]bool) {
	var wrong []uint64
	says := func(k uint64) bool { return s.has(s.fingerprint(k)) != s.remaining }
	for i, k := range keys {
		if says(k) != shown(i) {
			wrong = append(wrong, k)
		}
	}
	for k, was := range away {
		if says(k) != was {
			wrong = append(wrong, k)
		}
	}
	slices.Sort(wrong)
	s.exceptions = slices.Compact(wrong)
	s.exceptions = s.exceptions[:min(len(s.exceptions), maxExceptions)]
}

// count returns the number of fingerprints.
func (s *Shown) count() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// append appends the set without its exceptions: the gaps between fingerprints in Rice
// codes (Rice and Plaunt, Adaptive variable-length coding, 1971), whose parameter is the
// logarithm of the mean gap.
func (s *Shown) append(b []byte) []byte {
	n := s.count()
	k := rice(s.bits, n)
	b = append(b, byte(s.bits), byte(k))
	b = binary.AppendUvarint(b, uint64(n))
	w, next := bitWriter{b: b}, uint64(0)
	for i, word := range s.words {
		for ; word != 0; word &= word - 1 {
			f := uint64(i*64 + bits.TrailingZeros64(word))
			w.code(f-next, k)
			next = f + 1
		}
	}
	return w.end()
}

// rice returns the parameter of the codes of n fingerprints.
func rice(width, n int) int {
	if n == 0 {
		return 0
	}
	return max(bits.Len(uint(1<<width/n))-1, 0)
}

// shown reads what append has written, and the exceptions.
func (r *reader) shown(remaining bool, salt uint64) *Shown {
	head := r.Take(2)
	n := r.uvarint()
	// Each code takes a bit at least, so what is allocated is bounded by what was sent, or
	// by 128 kB.
	if r.Damaged || head[0] < minBits || head[0] > maxBits || n > 8*uint64(len(r.B)-r.Next) ||
		int(head[1]) != rice(int(head[0]), int(n)) {
		r.Damaged = true
		return nil
	}
	s := newShown(int(head[0]), salt)
	s.remaining = remaining
	codes, next := bitReader{b: r.B[r.Next:]}, uint64(0)
	for range n {
		gap, ok := codes.code(int(head[1]))
		if next += gap; !ok || next >= 1<<s.bits {
			r.Damaged = true
			return nil
		}
		s.words[next/64] |= 1 << (next % 64)
		next++
	}
	r.Next = len(r.B) - len(codes.rest())
	s.exceptions = r.keys()
	if len(s.exceptions) > maxExceptions || !slices.IsSorted(s.exceptions) {
		r.Damaged = true
	}
	return s
}

// bitWriter writes Rice codes: the quotient by 2^k as ones and a zero, then k bits.
type bitWriter struct {
	b    []byte
	word byte
	n    int
}

func (w *bitWriter) bit(v uint64) {
	w.word = w.word<<1 | byte(v&1)
	if w.n++; w.n == 8 {
		w.b, w.word, w.n = append(w.b, w.word), 0, 0
	}
}

func (w *bitWriter) code(v uint64, k int) {
	for range v >> k {
		w.bit(1)
	}
	w.bit(0)
	for i := k - 1; i >= 0; i-- {
		w.bit(v >> i)
	}
}

func (w *bitWriter) end() []byte {
	for w.n > 0 {
		w.bit(0)
	}
	return w.b
}

type bitReader struct {
	b  []byte
	at int // in bits
}

func (r *bitReader) bit() (v uint64, ok bool) {
	if r.at >= 8*len(r.b) {
		return 0, false
	}
	v = uint64(r.b[r.at/8]>>(7-r.at%8)) & 1
	r.at++
	return v, true
}

func (r *bitReader) code(k int) (v uint64, ok bool) {
	for {
		one, ok := r.bit()
		if !ok {
			return 0, false
		}
		if one == 0 {
			break
		}
		v++
	}
	for range k {
		low, ok := r.bit()
		if !ok {
			return 0, false
		}
		v = v<<1 | low
	}
	return v, true
}

func (r *bitReader) rest() []byte { return r.b[(r.at+7)/8:] }
