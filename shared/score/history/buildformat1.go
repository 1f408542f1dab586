package history

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// appendFormat1 appends a block of format 1 without its checksum.
func (b *Builder) appendFormat1(dst []byte) []byte {
	dst = append(dst, Format1, 0, 0, 0, 0)
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
	return append(dst, b.scratch...)
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
