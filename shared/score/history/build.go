package history

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/wire"
)

// AppendBlock appends to dst the block of the events added so far, and empties
// the builder.
func (b *Builder) AppendBlock(dst []byte) []byte {
	start := len(dst)
	dst = b.append(dst)
	binary.LittleEndian.PutUint32(dst[start+1:], blockSum(dst[start:]))
	b.Reset()
	return dst
}

// append appends a block without its checksum.
func (b *Builder) append(dst []byte) []byte {
	flags := byte(0)
	if b.dictionary != nil {
		flags |= flagDictionary
	}
	dst = append(dst, blockFormat, 0, 0, 0, 0, flags)
	if d := b.dictionary; d != nil {
		dst = binary.AppendVarint(dst, d.generation)
		dst = binary.LittleEndian.AppendUint32(dst, d.sum())
	}
	dst = binary.AppendVarint(dst, b.first)
	dst = binary.AppendUvarint(dst, uint64(len(b.kinds)))
	dst = b.appendKinds(dst)
	dst = binary.AppendUvarint(dst, uint64(len(b.times)))
	dst = append(dst, b.times...)
	b.section = b.appendObjects(b.section[:0])
	dst = wire.AppendText(dst, b.section)
	for i := range b.facets {
		dst = b.appendFacet(dst, &b.facets[i])
	}
	return dst
}

// literal stands for the id of a term that is not in the dictionary.
const literal = math.MaxUint32

// termID returns the id of a term in a list of the dictionary.
func termID[K comparable](ids map[K]uint32, term K) uint32 {
	if id, ok := ids[term]; ok {
		return id
	}
	return literal
}

// ids returns the ids of terms. It has no lists without a dictionary.
func (b *Builder) ids() *dictionaryIndex {
	if b.dictionary == nil {
		return new(dictionaryIndex)
	}
	return b.dictionary.indexed()
}

// item is a kind of events, or a value of a facet, on its way into a block.
type item struct {
	id         uint32 // in the dictionary, or literal
	place      uint32 // in the builder
	next       uint32 // item of the group, 0: none
	start, end uint32 // of its postings in packed
	head       uint64 // of its postings
}

// appendKinds appends the kinds in order, so that blocks with the same kinds have
// the same bytes for them, and then the index of the kind of each event.
func (b *Builder) appendKinds(dst []byte) []byte {
	ids := b.ids()
	b.items = b.items[:0]
	for i := range b.names {
		b.items = append(b.items, item{id: termID(ids.kinds, b.names[i]), place: uint32(i)})
	}
	slices.SortFunc(b.items, func(i, j item) int {
		x, y := &b.names[i.place], &b.names[j.place]
		return cmp.Or(cmp.Compare(i.id, j.id), cmp.Compare(x.Type, y.Type), cmp.Compare(x.Name, y.Name))
	})
	b.places = slices.Grow(b.places[:0], len(b.items))[:len(b.items)]
	b.section = b.section[:0]
	for place, i := range b.items {
		b.places[i.place] = uint32(place)
		if i.id != literal {
			b.section = binary.AppendUvarint(b.section, uint64(i.id)+1)
			continue
		}
		name := &b.names[i.place]
		b.section = wire.AppendText(wire.AppendText(append(b.section, 0), name.Type), name.Name)
	}
	dst = wire.AppendText(dst, b.section)
	start, width := len(dst), kindBits(len(b.names))
	dst = append(dst, make([]byte, (len(b.kinds)*width+7)/8)...)
	if width > 0 {
		b.packKinds(dst[start:], width)
	}
	return dst
}

// packKinds sets the bits of the indexes of kinds, each of a width.
func (b *Builder) packKinds(packed []byte, width int) {
	for i, kind := range b.kinds {
		place := b.places[kind]
		if width < 8 {
			at := i * width
			packed[at>>3] |= byte(place << (at & 7))
			continue
		}
		for j := range width / 8 {
			packed[i*width/8+j] = byte(place >> (8 * j))
		}
	}
}

// appendFacet appends the section of a facet.
func (b *Builder) appendFacet(dst []byte, f *facetList) []byte {
	var values map[string]uint32
	ids := b.ids()
	if id := termID(ids.facets, f.name); id != literal {
		values = ids.values[id]
		dst = binary.AppendUvarint(dst, uint64(id)+1)
	} else {
		dst = wire.AppendText(append(dst, 0), f.name)
	}
	b.collect(f, values)
	b.group()
	b.section = b.section[:0]
	before := -1
	for _, first := range b.groups {
		b.section = b.appendGroup(b.section, first, &before)
	}
	return wire.AppendText(dst, b.section)
}

// collect makes the items of the values of a facet, in the order of their ids. The
// texts come last, in the order of the block.
func (b *Builder) collect(f *facetList, ids map[string]uint32) {
	b.items, b.packed = b.items[:0], b.packed[:0]
	for at := f.first; ; {
		v := &b.values[at]
		it := item{id: literal, place: at, start: uint32(len(b.packed))}
		if id, ok := ids[string(b.text[v.start:v.end])]; ok {
			it.id = id
		}
		b.unlink(v)
		b.packed, it.head = b.list.append(b.packed, len(b.kinds))
		it.end = uint32(len(b.packed))
		b.items = append(b.items, it)
		if at = v.next; at == 0 {
			break
		}
	}
	slices.SortFunc(b.items, func(i, j item) int {
		return cmp.Or(cmp.Compare(i.id, j.id), cmp.Compare(i.place, j.place))
	})
}

// unlink copies the postings of a value into b.list.
func (b *Builder) unlink(v *valueList) {
	l := &b.list
	l.ordinals, l.counts = l.ordinals[:0], l.counts[:0]
	for at := v.first; ; {
		p := &b.postings[at]
		l.ordinals = append(l.ordinals, p.ordinal)
		if v.mixed {
			l.counts = append(l.counts, uint64(p.count))
		}
		if at = p.next; at == 0 {
			return
		}
	}
}

// group links the items that have the same postings, and lists the first of each
// group in b.groups.
func (b *Builder) group() {
	clear(b.byPostings)
	b.groups = b.groups[:0]
	for i := range b.items {
		it := &b.items[i]
		stored := b.packed[it.start:it.end]
		key := maphash.Bytes(seed, stored) ^ it.head
		if it.id == literal {
			key = ^key
		}
		last, ok := b.byPostings[key]
		if ok && b.equal(&b.items[last], it) {
			b.items[last].next = uint32(i)
		} else {
			b.groups = append(b.groups, uint32(i))
		}
		b.byPostings[key] = uint32(i)
	}
}

// equal reports whether two items belong to one group.
func (b *Builder) equal(x, y *item) bool {
	return x.head == y.head && (x.id == literal) == (y.id == literal) &&
		string(b.packed[x.start:x.end]) == string(b.packed[y.start:y.end])
}

// appendGroup appends the group of an item. before is the id of the first value of
// the group before.
func (b *Builder) appendGroup(dst []byte, first uint32, before *int) []byte {
	it := &b.items[first]
	n := uint64(1)
	for at := it.next; at != 0; at = b.items[at].next {
		n++
	}
	head := it.head
	if it.id != literal {
		head |= uint64(int(it.id)-*before) << groupShift
		*before = int(it.id)
	}
	if n > 1 {
		head |= groupSeveral
	}
	dst = binary.AppendUvarint(dst, head)
	if n > 1 {
		dst = binary.AppendUvarint(dst, n-2)
	}
	dst = append(dst, b.packed[it.start:it.end]...)
	for last := it.id; ; {
		switch {
		case it.id == literal:
			v := &b.values[it.place]
			dst = wire.AppendText(dst, b.text[v.start:v.end])
		case it.id != last:
			dst = binary.AppendUvarint(dst, uint64(it.id-last)-1)
			last = it.id
		}
		if it.next == 0 {
			return dst
		}
		it = &b.items[it.next]
	}
}

// Reset removes all events from the builder. It keeps the memory that a block
// of MaxBytes commonly needs: a single large event may have grown it further.
func (b *Builder) Reset() {
	b.first, b.newest, b.size = 0, 0, roomHeader
	b.times, b.text = kept(b.times, MaxBytes), kept(b.text, MaxBytes)
	b.kinds, b.postings, b.values = kept(b.kinds, MaxBytes/4), kept(b.postings, MaxBytes), kept(b.values, MaxBytes/16)
	if len(b.index) > 1<<12 { // clearing it costs a small block more than allocating it costs a large one
		b.index = nil
	}
	clear(b.index)
	if len(b.names) > 1<<8 {
		b.names, b.byName, b.places = nil, map[affinity.Pair]uint32{}, nil
	}
	clear(b.byName)
	b.names = b.names[:0]
	if len(b.facets) > 1<<8 {
		b.facets, b.byFacet = nil, map[string]uint32{}
	}
	clear(b.byFacet)
	b.facets = b.facets[:0]
	if len(b.indexes) > 1<<8 {
		b.indexes, b.byIndex = nil, map[string]uint64{}
	}
	clear(b.byIndex)
	b.objects, b.indexes = facetList{}, b.indexes[:0]
	b.items, b.groups = kept(b.items, MaxBytes/16), kept(b.groups, MaxBytes/16)
	b.packed, b.section = kept(b.packed, MaxBytes), kept(b.section, MaxBytes)
	if len(b.byPostings) > 1<<12 {
		b.byPostings = map[uint64]uint32{}
	}
}

// kept returns s emptied. It drops the memory if the capacity exceeds maxCap.
func kept[T any](s []T, maxCap int) []T {
	if cap(s) > maxCap {
		return nil
	}
	return s[:0]
}
