package history

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strings"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
)

const (
	// MaxBytes is how large a block is at most, unless a single event is larger.
	MaxBytes = 1 << 20
	// MaxSpan is how far apart in time, in ms, the events of a block are at most that is not small.
	MaxSpan = 30 * 24 * 60 * 60 * 1000
	// SmallBytes is what a small block takes at most. A user who does little has one such block and not one for each
	// month: for him a row costs more than what is in it.
	SmallBytes = 64 << 10
)

// Builder packs events into blocks, one after the other. It takes some times the memory of a block, which it uses
// again for the next one. A builder is not safe for concurrent use.
type Builder struct {
	first, newest int64
	size          int // that the block has at most, apart from the kinds of events

	times  []byte   // as stored
	kinds  []uint32 // by event: place in names
	names  []affinity.Pair
	byName map[affinity.Pair]uint32

	facets  []facetList
	byFacet map[string]uint32

	values   []valueList
	index    []uint32 // of values: open addressing, a power of two; place + 1, 0 is free
	text     []byte   // the values themselves
	postings []posting

	scratch []byte
	lengths []int
	places  []uint32
}

// Lists are chains of places. The place 0 ends one: what is there begins a chain, and follows nothing.

type facetList struct {
	name        string
	first, last uint32 // of values
	n           int
}

type valueList struct {
	hash        uint32
	facet       uint32
	start, end  uint32 // in text
	next        uint32 // value of the facet
	first, last uint32 // of postings
	n           uint32
	mixed       bool // a count is not 1
}

type posting struct {
	ordinal uint32
	next    uint32 // posting of the value
	count   int
}

// NewBuilder returns a builder of no events.
func NewBuilder() *Builder {
	return &Builder{size: roomHeader, byName: map[affinity.Pair]uint32{}, byFacet: map[string]uint32{}}
}

// Len returns the number of events in the builder.
func (b *Builder) Len() int { return len(b.kinds) }

// Newest returns the time of the latest event in ms; 0 if there is none.
func (b *Builder) Newest() int64 { return b.newest }

// Add adds an event that is not earlier than the one before it. It returns false, and adds nothing, if the event does
// not go into this block any more: the block would become too large or too long, or the event is out of order. An
// empty builder takes any event. Counts of 0 or less are left out. It keeps no memory of e.
func (b *Builder) Add(e affinity.Event) bool {
	if len(b.kinds) == 0 {
		b.first = e.Time
	} else {
		if e.Time < b.newest || b.bound()+most(e) > b.room(e.Time) {
			return false
		}
		before := len(b.times)
		b.times = binary.AppendUvarint(b.times, uint64(e.Time-b.newest))
		b.size += len(b.times) - before
	}
	b.newest = e.Time
	ordinal := uint32(len(b.kinds))
	b.kinds = append(b.kinds, b.kind(e.Type, e.Name))
	for i := range e.Counts {
		if c := &e.Counts[i]; c.N > 0 {
			b.post(b.value(b.facet(c.Facet), c.Value), ordinal, c.N)
		}
	}
	return true
}

// room is what the block may take with an event of a time.
func (b *Builder) room(time int64) int {
	if uint64(time)-uint64(b.first) > MaxSpan {
		return SmallBytes
	}
	return MaxBytes
}

// What a block takes at most, apart from texts: once, and for each of what it holds.
const (
	roomHeader = 64
	roomEvent  = 16
	roomName   = 16
	roomCount  = 32
)

// bound is what the block takes at most, be there one more kind of events or not.
func (b *Builder) bound() int {
	return b.size + (len(b.kinds)+1)*uvarintLen(uint64(len(b.names)))
}

// most is what an event adds to a block at most: all that it names may be new.
func most(e affinity.Event) int {
	n := roomEvent + roomName + len(e.Type) + len(e.Name)
	for i := range e.Counts {
		n += roomName + roomCount + len(e.Counts[i].Facet) + len(e.Counts[i].Value)
	}
	return n
}

func uvarintLen(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }

// kind returns the place of a kind of events.
func (b *Builder) kind(typ event.Type, name string) uint32 {
	place, ok := b.byName[affinity.Pair{Type: string(typ), Name: name}]
	if !ok {
		place = uint32(len(b.names))
		pair := affinity.Pair{Type: strings.Clone(string(typ)), Name: strings.Clone(name)}
		b.byName[pair] = place
		b.names = append(b.names, pair)
		b.size += roomName + len(typ) + len(name)
	}
	return place
}

// facet returns the place of a facet.
func (b *Builder) facet(name string) uint32 {
	place, ok := b.byFacet[name]
	if !ok {
		place = uint32(len(b.facets))
		name = strings.Clone(name)
		b.byFacet[name] = place
		b.facets = append(b.facets, facetList{name: name})
		b.size += roomName + len(name)
	}
	return place
}

// seed keeps senders from choosing values whose hashes meet.
var seed = maphash.MakeSeed()

// value returns the place of a value of a facet.
func (b *Builder) value(facet uint32, name string) uint32 {
	if 2*len(b.values) >= len(b.index) {
		b.grow()
	}
	hash := uint32(maphash.String(seed, name)) + facet*0x9e3779b1
	mask := uint32(len(b.index) - 1)
	i := hash & mask
	for ; b.index[i] != 0; i = (i + 1) & mask {
		v := &b.values[b.index[i]-1]
		if v.hash == hash && v.facet == facet && string(b.text[v.start:v.end]) == name {
			return b.index[i] - 1
		}
	}
	place := uint32(len(b.values))
	b.index[i] = place + 1
	start := uint32(len(b.text))
	b.text = append(b.text, name...)
	b.values = append(b.values, valueList{hash: hash, facet: facet, start: start, end: uint32(len(b.text))})
	b.size += uvarintLen(uint64(len(name))) + len(name) + 1
	f := &b.facets[facet]
	if f.n == 0 {
		f.first = place
	} else {
		b.values[f.last].next = place
	}
	f.last = place
	f.n++
	return place
}

func (b *Builder) grow() {
	b.index = make([]uint32, max(64, 2*len(b.index)))
	mask := uint32(len(b.index) - 1)
	for place := range b.values {
		i := b.values[place].hash & mask
		for b.index[i] != 0 {
			i = (i + 1) & mask
		}
		b.index[i] = uint32(place) + 1
	}
}

// post adds a posting to a value.
func (b *Builder) post(value, ordinal uint32, count int) {
	v, place, since := &b.values[value], uint32(len(b.postings)), ordinal
	if v.n == 0 {
		v.first = place
	} else {
		before := &b.postings[v.last]
		before.next = place
		since -= before.ordinal
	}
	b.postings = append(b.postings, posting{ordinal: ordinal, count: count})
	v.last = place
	v.n++
	b.size += uvarintLen(2*uint64(v.n)+1) - uvarintLen(2*uint64(v.n)-1) + uvarintLen(2*uint64(since)+1)
	if count != 1 {
		v.mixed = true
		b.size += uvarintLen(uint64(count))
	}
}
