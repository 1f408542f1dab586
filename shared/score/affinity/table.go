package affinity

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"strings"
)

// table holds the sums of one facet by value. It keeps the values of earlier
// users too, because inserting a value costs more than finding it.
//
// It is not a Go map for two reasons. Most values are so short that it can hash
// and compare them as two words. And clearing the sums of a user must not cost
// more than adding them did.
//
// Every value that scores, as the client sent it, has an entry. An entry is also a
// slot, with sums, unless an alias maps its value to another one.
type table struct {
	index   []uint64 // open addressing, a power of two: upper half of the hash, then entry + 1; 0 is free
	entries []entry
	sums    []float64 // by entry, then half-life
	touched []int32   // entries that are slots of the current user
}

type entry struct {
	head words // of name
	name string
	slot int32  // the entry that holds its sums; unresolved until first used
	user uint32 // the last user whose slot it was, as numbered by Scorer; 0: none
}

const unresolved = -1

// words are the first 16 bytes of a value, padded with zeros. The compiler
// would not keep an array in registers.
type words struct{ first, second uint64 }

const inWords = 16

// readWords reads the words of b[start:end]. It may also load the bytes behind
// end, which is faster, and masks them out.
func readWords(b []byte, start, end int) words {
	if start+inWords > len(b) {
		return shortWords(b[start:end])
	}
	b = b[start : start+inWords]
	n := uint(end - start)
	return words{
		binary.LittleEndian.Uint64(b) & (1<<(8*n) - 1),
		binary.LittleEndian.Uint64(b[8:]) & (1<<(8*max(n, 8)-64) - 1),
	}
}

// shortWords reads the words of a value of at most 16 bytes at the end of a
// buffer. It loads from both ends of the value, so the two loads may overlap.
func shortWords(b []byte) (w words) {
	switch n := len(b); {
	case n >= 8:
		w.first = binary.LittleEndian.Uint64(b)
		w.second = binary.LittleEndian.Uint64(b[n-8:]) >> (8 * (16 - n))
	case n >= 4:
		w.first = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<(8*(n-4))
	default:
		for i := range b {
			w.first |= uint64(b[i]) << (8 * i)
		}
	}
	return w
}

// Random seeds keep clients from choosing values whose hashes collide.
var (
	seed         = maphash.MakeSeed()
	seed0, seed1 = rand.Uint64(), rand.Uint64()
)

// hash returns the hash of a value of n <= 16 bytes.
func (w words) hash(n int) uint64 {
	high, low := bits.Mul64(w.first^seed0, w.second^seed1^uint64(n))
	return high ^ low
}

// hash returns the hash of a value that begins with these words.
func hash(head words, value []byte) uint64 {
	if len(value) <= inWords {
		return head.hash(len(value))
	}
	return maphash.Bytes(seed, value)
}

// place inserts an entry that is not in the index.
func (t *table) place(hash uint64, at int32) {
	mask := uint64(len(t.index) - 1)
	i := hash & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = hash>>32<<32 | uint64(uint32(at+1))
}

// grow makes room in the index for one more entry.
func (t *table) grow() {
	if 2*(len(t.entries)+1) <= len(t.index) {
		return
	}
	t.index = make([]uint64, max(32, 2*len(t.index)))
	for at := range t.entries {
		e := &t.entries[at]
		t.place(hash(e.head, []byte(e.name)), int32(at))
	}
}

// lookup returns the entry of the value b[start:end]. It adds the entry if the
// value is new.
func (sc *Scorer) lookup(facet int32, b []byte, start, end int) int32 {
	t, n := &sc.tables[facet], end-start
	head := readWords(b, start, end)
	h := head.hash(n)
	if n > inWords {
		h = hash(head, b[start:end])
	}
	if mask := len(t.index) - 1; mask >= 0 {
		for i := int(h) & mask; t.index[i] != 0; i = (i + 1) & mask {
			if t.index[i]>>32 != h>>32 {
				continue
			}
			at := int32(t.index[i]) - 1
			e := &t.entries[at]
			if e.head == head && len(e.name) == n && (n <= inWords || e.name == string(b[start:end])) {
				return at
			}
		}
	}
	return sc.enter(facet, h, head, b[start:end])
}

// lookupString is lookup for a string.
func (sc *Scorer) lookupString(facet int32, value string) int32 {
	sc.text = append(sc.text[:0], value...)
	return sc.lookup(facet, sc.text, 0, len(value))
}

// refused takes the place of an entry, and of a slot, for a value that scores nothing or
// that the scorer does not hold. Values that score nothing have no entry, as there is no
// bound for how many a user has.
const refused = -2

// enter adds an entry for a new value. It does not keep the memory of value.
func (sc *Scorer) enter(facet int32, hash uint64, head words, value []byte) int32 {
	to, aliased := sc.c.aliases[facet][string(value)]
	if sc.held.full || sc.only != nil && !sc.only.has(facet, hash, to, aliased) {
		return refused
	}
	if !aliased && !sc.c.rules[facet].ScoresBytes(value) { // an alias is looked up by its target
		return refused
	}
	t := &sc.tables[facet]
	t.grow()
	at := int32(len(t.entries))
	slot := at
	if aliased {
		slot = unresolved
	}
	t.entries = append(t.entries, entry{head: head, name: sc.names.keep(value), slot: slot})
	t.place(hash, at)
	for range sc.factors {
		t.sums = append(t.sums, 0)
	}
	return at
}

// resolve returns the slot of an entry: the entry itself or, under an alias,
// the entry of the alias's target. It is small enough to be inlined. at is
// not refused.
func (sc *Scorer) resolve(facet, at int32) int32 {
	if slot := sc.tables[facet].entries[at].slot; slot != unresolved {
		return slot
	}
	return sc.follow(facet, at)
}

// follow looks up the slot of an entry that has an alias, and remembers it.
func (sc *Scorer) follow(facet, at int32) int32 {
	slot := sc.lookupString(facet, sc.c.aliases[facet][sc.tables[facet].entries[at].name])
	if slot == refused {
		return refused
	}
	sc.tables[facet].entries[at].slot = slot // indexed only now: lookupString may move the entries
	return slot
}

// enters reports whether a slot is not one of the current user yet.
func (sc *Scorer) enters(facet, slot int32) bool {
	return sc.tables[facet].entries[slot].user != sc.user
}

// enlist makes a slot one of the current user, with sums of zero. They are those of
// sumsAt: if the scorer becomes full, they are no longer its own.
//
// Callers ask enters first. A method that did both would be too large to be inlined.
func (sc *Scorer) enlist(facet, slot int32, sums []float64) {
	t := &sc.tables[facet]
	e := &t.entries[slot]
	e.user = sc.user
	t.touched = append(t.touched, slot)
	clear(sums)
	sc.values++
	sc.bytes += len(sc.c.facets[facet]) + len(e.name)
	if sc.values > sc.held.values || sc.bytes > sc.held.bytes {
		sc.reach()
	}
}

// sumsAt returns the sums of a slot, by half-life. They are valid until the next entry is
// added, and mean nothing while the slot is not one of the current user.
func (sc *Scorer) sumsAt(facet, slot int32) []float64 {
	k := len(sc.factors)
	return sc.tables[facet].sums[int(slot)*k : (int(slot)+1)*k]
}

// arena stores many short strings in shared pieces of memory, which is cheaper
// than one allocation for each.
type arena struct {
	piece *strings.Builder
	size  int // bytes kept
}

const maxPiece = 16 << 10

// keep returns a copy of b.
func (a *arena) keep(b []byte) string {
	a.size += len(b)
	if a.piece == nil || len(b) > a.piece.Cap()-a.piece.Len() {
		if len(b) > maxPiece/8 {
			return string(b)
		}
		a.piece = new(strings.Builder)
		a.piece.Grow(max(len(b), min(maxPiece, max(256, a.size))))
	}
	start := a.piece.Len()
	a.piece.Write(b)
	return a.piece.String()[start:]
}
