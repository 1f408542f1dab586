package affinity

import (
	"hash/maphash"
	"strings"
)

// table holds the sums of one facet, and the values it has seen: of this user and, since entering a value costs more
// than finding it, of the users before. It is a hash table of its own because values come as bytes of a block, and
// because forgetting a user must not cost more than he did.
//
// Every value is an entry, as sent. The entry of a value without an alias is also a slot, that is: it has sums.
type table struct {
	index   []uint64 // open addressing, a power of two: upper half of the hash, then entry + 1; 0 is free
	entries []entry
	sums    []float64 // by entry, then half-life
	touched []int32   // entries that are slots of this user
}

type entry struct {
	name string
	slot int32  // the entry it counts as; unresolved until it is needed
	user uint32 // whose slot it was last, as Scorer numbers users; 0: nobody's
}

const unresolved = -1

// seed keeps senders from choosing values whose hashes meet.
var seed = maphash.MakeSeed()

// find returns the entry of a value.
func (t *table) find(hash uint64, value []byte) (int32, bool) {
	if len(t.index) == 0 {
		return 0, false
	}
	mask := uint64(len(t.index) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		x := t.index[i]
		if x == 0 {
			return 0, false
		}
		if x>>32 == hash>>32 {
			if at := int32(x) - 1; t.entries[at].name == string(value) {
				return at, true
			}
		}
	}
}

// findString is find for a string.
func (t *table) findString(hash uint64, value string) (int32, bool) {
	if len(t.index) == 0 {
		return 0, false
	}
	mask := uint64(len(t.index) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		x := t.index[i]
		if x == 0 {
			return 0, false
		}
		if x>>32 == hash>>32 {
			if at := int32(x) - 1; t.entries[at].name == value {
				return at, true
			}
		}
	}
}

// place puts an entry into the index, where it is not yet.
func (t *table) place(hash uint64, at int32) {
	mask := uint64(len(t.index) - 1)
	i := hash & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = hash>>32<<32 | uint64(uint32(at+1))
}

// grow makes room in the index for one entry more.
func (t *table) grow() {
	if 2*(len(t.entries)+1) <= len(t.index) {
		return
	}
	t.index = make([]uint64, max(32, 2*len(t.index)))
	for at := range t.entries {
		t.place(maphash.String(seed, t.entries[at].name), int32(at))
	}
}

// lookup returns the entry of a value, which it makes if there is none.
func (sc *Scorer) lookup(facet int32, value string) int32 {
	hash := maphash.String(seed, value)
	if at, ok := sc.tables[facet].findString(hash, value); ok {
		return at
	}
	return sc.enter(facet, hash, value)
}

// enter makes an entry for a value that has none. It keeps no memory of value.
func (sc *Scorer) enter(facet int32, hash uint64, value string) int32 {
	t := &sc.tables[facet]
	t.grow()
	at := int32(len(t.entries))
	slot := at
	if _, ok := sc.c.aliases[facet][value]; ok {
		slot = unresolved
	}
	t.entries = append(t.entries, entry{name: sc.names.keep(value), slot: slot})
	t.place(hash, at)
	for range sc.factors {
		t.sums = append(t.sums, 0)
	}
	return at
}

// sums returns the sums that an entry's value adds to, by half-life: its own, or under an alias those of the value it
// counts as. It holds until the next entry is made.
func (sc *Scorer) sums(facet, at int32) []float64 {
	t := &sc.tables[facet]
	slot := t.entries[at].slot
	if slot < 0 {
		slot = sc.lookup(facet, sc.c.aliases[facet][t.entries[at].name])
		t.entries[at].slot = slot
	}
	return sc.sumsOf(facet, slot)
}

// sumsOf returns the sums of a slot, which are from now on those of this user.
func (sc *Scorer) sumsOf(facet, slot int32) []float64 {
	t := &sc.tables[facet]
	sums := sc.sumsAt(facet, slot)
	if e := &t.entries[slot]; e.user != sc.user {
		e.user = sc.user
		t.touched = append(t.touched, slot)
		clear(sums)
	}
	return sums
}

// sumsAt returns the sums of a slot of this user.
func (sc *Scorer) sumsAt(facet, slot int32) []float64 {
	k := len(sc.factors)
	return sc.tables[facet].sums[int(slot)*k : (int(slot)+1)*k]
}

// arena keeps texts in common pieces of memory, which is cheaper than one for each.
type arena struct {
	piece *strings.Builder
	size  int // bytes kept
}

const maxPiece = 16 << 10

// keep returns a copy of s.
func (a *arena) keep(s string) string {
	a.size += len(s)
	if a.piece == nil || len(s) > a.piece.Cap()-a.piece.Len() {
		if len(s) > maxPiece/8 {
			return strings.Clone(s)
		}
		a.piece = new(strings.Builder)
		a.piece.Grow(max(len(s), min(maxPiece, max(256, a.size))))
	}
	start := a.piece.Len()
	a.piece.WriteString(s)
	return a.piece.String()[start:]
}
