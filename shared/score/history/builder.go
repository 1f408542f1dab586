package history

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

const (
	// MaxBytes bounds the size of a block, unless a single event is larger.
	MaxBytes = 1 << 20
	// MaxSpan bounds the time in ms between the first and the last event of a
	// block that is larger than SmallBytes.
	MaxSpan = 30 * 24 * 60 * 60 * 1000
	// SmallBytes bounds the size of a block that may span more than MaxSpan. A
	// user with few events then has one block instead of one for each month:
	// reading a row costs more than decoding so few events.
	SmallBytes = 64 << 10
)

// Builder packs events into blocks, one block at a time. It uses a few times
// the memory of a block and reuses it for the next one. A Builder is not safe
// for concurrent use.
type Builder struct {
	first, newest int64
	size          int // upper bound of the block's size, without the kinds of its events

	times  []byte   // as stored
	kinds  []uint32 // by event: index in names
	names  []affinity.Pair
	byName map[affinity.Pair]uint32

	facets  []facetList
	byFacet map[string]uint32
	objects facetList
	indexes []string // of objects
	byIndex map[string]uint64

	dictionary *Dictionary // nil: none

	values   []valueList
	index    []uint32 // of values: open addressing, a power of two; index + 1, 0 is free
	text     []byte   // the values themselves
	postings []posting

	places []uint32
	key    []byte

	// Of one facet, or of the kinds:
	list       postings
	items      []item            // those of a group are linked
	packed     []byte            // their postings
	groups     []uint32          // the first item of each
	byPostings map[uint64]uint32 // by hash of postings: the last item
	section    []byte
}

// Lists are linked by indexes. Index 0 ends a list: the item with index 0 is
// always the first of its list, so no item links to it.

type facetList struct {
	name        string
	first, last uint32 // of values
	n           int
}

type valueList struct {
	hash        uint32
	facet       uint32 // index in facets, or objectsPlace
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

// objectsPlace stands for the section of objects in place of an index of a facet.
const objectsPlace = math.MaxUint32

// NewBuilder returns an empty builder.
func NewBuilder() *Builder {
	return &Builder{size: roomHeader, byName: map[affinity.Pair]uint32{}, byFacet: map[string]uint32{},
		byIndex: map[string]uint64{}, byPostings: map[uint64]uint32{}}
}

// Use makes the builder use a dictionary of the app for its blocks, nil for none.
// Call it while the builder is empty.
func (b *Builder) Use(d *Dictionary) { b.dictionary = d }

// Len returns the number of events in the builder.
func (b *Builder) Len() int { return len(b.kinds) }

// Newest returns the time of the latest event in ms, or 0 if the builder is
// empty.
func (b *Builder) Newest() int64 { return b.newest }

// Add adds the next event in order of time. It returns false and adds nothing
// if the event does not fit: the block would become too large or span too much
// time, or the event is earlier than the previous one. An empty builder takes
// any event. Add ignores counts of 0 or less. It does not keep the memory of e. The
// event must name all its objects: a block says of every event which objects it
// names.
func (b *Builder) Add(e affinity.Event) bool {
	if len(b.kinds) == 0 {
		b.first = e.Time
	} else {
		if e.Time < b.newest || b.maxSize()+maxAdded(e) > b.limit(e.Time) {
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
	b.addObjects(ordinal, &e)
	return true
}

// limit returns the largest size that the block may have with an event at time.
func (b *Builder) limit(time int64) int {
	if uint64(time)-uint64(b.first) > MaxSpan {
		return SmallBytes
	}
	return MaxBytes
}

// Upper bounds of the bytes of a block apart from texts: of the header, and of
// each event, name and count.
const (
	roomHeader = 96
	roomEvent  = 16
	roomName   = 16
	roomCount  = 32
)

// maxSize returns an upper bound of the block's size, allowing for one more
// kind of events.
func (b *Builder) maxSize() int {
	return b.size + (len(b.kinds)+1)*uvarintLen(uint64(len(b.names)))
}

// maxAdded returns an upper bound of the bytes that an event adds to a block.
// Its kind, facets, values and objects may all be new.
func maxAdded(e affinity.Event) int {
	n := roomEvent + roomName + len(e.Type) + len(e.Name)
	for i := range e.Counts {
		n += roomName + roomCount + len(e.Counts[i].Facet) + len(e.Counts[i].Value)
	}
	if len(e.ObjectIDs) > 0 {
		n += roomName + len(e.Index)
	}
	for _, id := range e.ObjectIDs {
		n += roomCount + len(id)
	}
	return n
}

func uvarintLen(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }

// kind returns the index of a kind of events, which it adds if it is new.
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

// facet returns the index of a facet, which it adds if it is new.
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

// A random seed keeps clients from choosing values whose hashes collide.
var seed = maphash.MakeSeed()

// value returns the index of a value of a facet, which it adds if it is new.
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
	f := &b.objects
	if facet != objectsPlace {
		f = &b.facets[facet]
	}
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
