package segment

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
)

// numbering numbers filters. It keeps the numbers from part to part.
type numbering struct {
	tables  map[string]*valueTable // by facet
	filters []numbered             // by number
	keys    []valueKey             // by number
	bytes   int                    // of the tables, roughly

	current []*valueTable // of the facets of the current profile
	names   [][]byte      // of these facets
}

type numbered struct{ facet, value string }

const (
	valueBytes = 32 << 20 // of filters' names and tables in one part
	entryBytes = 100      // of a filter beside its value
)

func (v *numbering) begin() {
	if v.tables == nil || v.bytes >= valueBytes/2 {
		*v = numbering{tables: map[string]*valueTable{}}
	}
}

// facets finds the tables of a profile's facets.
func (v *numbering) facets(names [][]byte) {
	v.current, v.names = v.current[:0], names
	for _, name := range names {
		table, known := v.tables[string(name)]
		if !known {
			table = &valueTable{slots: make([]uint32, 64)}
			v.tables[string(name)] = table
			v.bytes += len(name) + entryBytes
		}
		v.current = append(v.current, table)
	}
}

// number returns the number of a value of one of the current facets.
func (v *numbering) number(facet int, value []byte) uint32 {
	t, key := v.current[facet], keyOfValue(value)
	hash := key.hash()
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := t.slots[i]
		if slot == 0 {
			return v.enter(facet, key, value)
		}
		if slot>>slotBits != uint32(hash>>(32+slotBits)) {
			continue
		}
		n := slot&(1<<slotBits-1) - 1
		if v.keys[n] == key && (key.size <= inWords || v.filters[n].value == string(value)) {
			return n
		}
	}
}

func (v *numbering) enter(facet int, key valueKey, value []byte) uint32 {
	v.filters, v.keys = append(v.filters, numbered{string(v.names[facet]), string(value)}), append(v.keys, key)
	v.bytes += len(value) + entryBytes
	n := uint32(len(v.filters))
	v.current[facet].enter(key.slot(n), v.keys)
	return n - 1
}

// valueTable finds the numbers of the values of a facet. It is not a Go map because values
// are so short that most compare as two words: finding them was half of packing. Slots are
// small so that they stay in the processor's cache; what they refer to does too, because
// common values come early and so have low numbers.
type valueTable struct {
	slots []uint32 // open addressing, a power of two; 0 is free
	used  int
}

// slotBits is how many bits of a slot hold a number plus 1: valueBytes allows for fewer
// values than they can tell apart. The others are of the hash.
const slotBits = 24

func (k valueKey) slot(number uint32) uint32 {
	return uint32(k.hash()>>(32+slotBits))<<slotBits | number
}

// valueKey is a value of up to 16 bytes: its first and last 8, which overlap. Of a longer
// one it is only part.
type valueKey struct {
	first, last uint64
	size        uint32
}

const inWords = 16

var seed = maphash.MakeSeed()

func keyOfValue(b []byte) valueKey {
	n := len(b)
	k := valueKey{size: uint32(n)}
	switch {
	case n > inWords:
		k.first, k.last = binary.LittleEndian.Uint64(b), maphash.Bytes(seed, b)
	case n >= 8:
		k.first, k.last = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		k.first, k.last = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		k.first = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	return k
}

// Random, so that nobody can choose values of one hash.
var firstSeed, lastSeed = rand.Uint64(), rand.Uint64()

func (k valueKey) hash() uint64 {
	high, low := bits.Mul64(k.first^firstSeed, k.last^lastSeed^uint64(k.size)<<56)
	return high ^ low
}

// enter enters the slot of a value, the last one of keys.
func (t *valueTable) enter(slot uint32, keys []valueKey) {
	if t.used++; 2*t.used > len(t.slots) {
		old := t.slots
		t.slots = make([]uint32, 2*len(old))
		for _, o := range old {
			if o != 0 {
				t.place(o, keys)
			}
		}
	}
	t.place(slot, keys)
}

func (t *valueTable) place(slot uint32, keys []valueKey) {
	mask := uint64(len(t.slots) - 1)
	i := keys[slot&(1<<slotBits-1)-1].hash() & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = slot
}
