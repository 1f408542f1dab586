package history

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/affinityengine/affinity/shared/affinity"
)

// AppendBlock appends to dst the block of the events added so far, and empties
// the builder.
func (b *Builder) AppendBlock(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, blockFormat, 0, 0, 0, 0)
	dst = binary.AppendVarint(dst, b.first)
	dst = binary.AppendUvarint(dst, uint64(b.newest)-uint64(b.first))
	dst = binary.AppendUvarint(dst, uint64(len(b.kinds)))
	dst = b.appendNames(dst)

	b.scratch, b.lengths = b.scratch[:0], b.lengths[:0]
	for i := range b.facets {
		before := len(b.scratch)
		b.scratch = b.appendSection(b.scratch, &b.facets[i])
		b.lengths = append(b.lengths, len(b.scratch)-before)
	}
	listed, objects := len(b.facets), len(b.scratch)
	if !b.omit && len(b.kinds) > 0 {
		b.scratch = b.appendObjects(b.scratch)
		listed++
	}
	dst = binary.AppendUvarint(dst, uint64(listed))
	for i, f := range b.facets {
		dst = appendText(dst, f.name)
		dst = binary.AppendUvarint(dst, uint64(b.lengths[i]))
	}
	if listed > len(b.facets) {
		dst = appendText(dst, objectsFacet)
		dst = binary.AppendUvarint(dst, uint64(len(b.scratch)-objects))
	}

	dst = binary.AppendUvarint(dst, uint64(len(b.times)))
	dst = append(dst, b.times...)
	for _, kind := range b.kinds {
		dst = binary.AppendUvarint(dst, uint64(b.places[kind]))
	}
	dst = append(dst, b.scratch...)
	binary.LittleEndian.PutUint32(dst[start+1:], crc32.Checksum(dst[start+blockHeader:], castagnoli))
	b.empty()
	return dst
}

// appendNames appends the kinds of events and stores the index of each in
// b.places. The kinds are sorted, so blocks with the same kinds have the same
// bytes for them, and a reader decodes those bytes only once.
func (b *Builder) appendNames(dst []byte) []byte {
	order := make([]uint32, len(b.names))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(i, j uint32) int {
		x, y := &b.names[i], &b.names[j]
		return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(x.Name, y.Name))
	})
	b.places = slices.Grow(b.places[:0], len(order))[:len(order)]
	b.scratch = b.scratch[:0]
	for place, i := range order {
		b.places[i] = uint32(place)
		b.scratch = appendText(appendText(b.scratch, b.names[i].Type), b.names[i].Name)
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.scratch)))
	return append(dst, b.scratch...)
}

func (b *Builder) appendSection(dst []byte, f *facetList) []byte {
	for at := f.first; ; {
		v := &b.values[at]
		dst = binary.AppendUvarint(dst, uint64(v.end-v.start))
		dst = append(dst, b.text[v.start:v.end]...)
		dst = b.appendPostings(dst, v)
		if at = v.next; at == 0 {
			return dst
		}
	}
}

func (b *Builder) appendPostings(dst []byte, v *valueList) []byte {
	head := 2 * uint64(v.n)
	if v.mixed {
		head++
	}
	dst = binary.AppendUvarint(dst, head)
	before := uint32(0)
	for at := v.first; ; {
		p := &b.postings[at]
		since := uint64(p.ordinal - before)
		switch {
		case !v.mixed:
			dst = binary.AppendUvarint(dst, since)
		case p.count == 1:
			dst = binary.AppendUvarint(dst, 2*since)
		default:
			dst = binary.AppendUvarint(dst, 2*since+1)
			dst = binary.AppendUvarint(dst, uint64(p.count))
		}
		before = p.ordinal
		if at = p.next; at == 0 {
			return dst
		}
	}
}

// empty removes all events from the builder. It keeps the memory that a block
// of MaxBytes commonly needs: a single large event may have grown it further.
func (b *Builder) empty() {
	b.first, b.newest, b.size = 0, 0, roomHeader
	b.times, b.text, b.scratch = kept(b.times, MaxBytes), kept(b.text, MaxBytes), kept(b.scratch, MaxBytes)
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
		b.facets, b.byFacet, b.lengths = nil, map[string]uint32{}, nil
	}
	clear(b.byFacet)
	b.facets = b.facets[:0]
	if len(b.indexes) > 1<<8 {
		b.indexes, b.byIndex = nil, map[string]uint64{}
	}
	clear(b.byIndex)
	b.objects, b.indexes = facetList{}, b.indexes[:0]
}

// kept returns s emptied. It drops the memory if the capacity exceeds maxCap.
func kept[T any](s []T, maxCap int) []T {
	if cap(s) > maxCap {
		return nil
	}
	return s[:0]
}
