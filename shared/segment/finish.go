package segment

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// bucketBytes is about how many bytes of lists a bucket takes.
const bucketBytes = 32 << 10

// Finish ends the part at an instant (ms) and passes its rows to write, which may keep the
// values of their cells, and nothing else. It returns the description of the part, without Generation, From, To and Cut,
// and the first error of write. The packer can then begin another part.
func (p *Packer) Finish(now int64, write func(Row) error) (Part, error) {
	part := p.part
	part.Users, part.Affinities = len(p.tokens), len(p.ordinals)
	for _, a := range p.ahead {
		if a.Until > now {
			part.Ahead = append(part.Ahead, a)
		}
	}
	if part.Delta {
		each := 2 + keyBytes*len(p.keys)
		part.Buckets = 1 + (len(p.ordinals)*each+len(p.tokens)*each)/bucketBytes
	}
	p.begun = false
	for _, step := range []func(*Part, func(Row) error) error{p.writeTokens, p.writeUntils, p.writeLists} {
		if err := step(&part, write); err != nil {
			return Part{}, err
		}
	}
	return part, nil
}

func (p *Packer) writeTokens(part *Part, write func(Row) error) error {
	var firsts []string
	for i := 0; i < len(p.tokens); i += TokensPerRow {
		row := p.tokens[i:min(i+TokensPerRow, len(p.tokens))]
		firsts = append(firsts, row[0])
		cell := appendTokens(nil, TokenRow{tokens: row})
		if err := write(Row{Kind: Tokens, N: len(firsts) - 1, Cells: []Cell{{Value: cell}}}); err != nil {
			return err
		}
	}
	return write(Row{Kind: Index, Cells: []Cell{{Value: appendIndex(nil, firsts)}}})
}

func (p *Packer) writeUntils(_ *Part, write func(Row) error) error {
	cells := untilCells(p.expiries)
	if len(cells) == 0 {
		return nil
	}
	return write(Row{Kind: Untils, Cells: cells})
}

// listOf is a filter with the stretch of the columns that holds its list.
type listOf struct {
	numbered
	from, to int
}

func (p *Packer) writeLists(part *Part, write func(Row) error) error {
	lists := p.order()
	n := 0
	values := valueCells{write: func(cell []byte) error {
		n++
		return write(Row{Kind: Values, N: n - 1, Cells: []Cell{{Value: cell}}})
	}}
	for _, l := range lists {
		if err := values.add(l.facet, l.value, l.to-l.from); err != nil {
			return err
		}
	}
	if err := values.flush(); err != nil {
		return err
	}
	if part.Buckets > 0 {
		return p.writeBuckets(part, lists, write)
	}
	var cells []Cell
	keys := make([][]uint64, len(p.keys))
	for _, l := range lists {
		ordinals := p.ordinals[l.from:l.to]
		for i := range keys {
			keys[i] = p.keys[i][l.from:l.to]
		}
		cells = cells[:0]
		if len(ordinals) <= smallUsers {
			cells = append(cells, Cell{SmallColumn, appendSmall(make([]byte, 0, smallSize(len(ordinals), len(keys))), ordinals, keys)})
		} else {
			for i, of := range keys {
				p.bands.write(i, ordinals, of, func(c Cell) {
					cells = append(cells, Cell{c.Column, slices.Clone(c.Value)})
				})
			}
		}
		if len(cells) == 0 {
			continue
		}
		if err := write(Row{Kind: List, Facet: l.facet, Value: l.value, Cells: cells}); err != nil {
			return err
		}
	}
	return nil
}

func (p *Packer) writeBuckets(part *Part, lists []listOf, write func(Row) error) error {
	byBucket := make([][]listOf, part.Buckets)
	for _, l := range lists {
		n := BucketOf(l.facet, l.value, part.Buckets)
		byBucket[n] = append(byBucket[n], l)
	}
	keys := make([][]uint64, len(p.keys))
	var list []byte
	for n, of := range byBucket {
		if len(of) == 0 {
			continue
		}
		b := binary.AppendUvarint([]byte{format}, uint64(len(of)))
		for _, l := range of {
			for i := range keys {
				keys[i] = p.keys[i][l.from:l.to]
			}
			list = appendSmall(list[:0], p.ordinals[l.from:l.to], keys)
			b = appendText(appendText(b, l.facet), l.value)
			b = append(binary.AppendUvarint(b, uint64(len(list))), list...)
		}
		if err := write(Row{Kind: Bucket, N: n, Cells: []Cell{{Value: seal(b, 0)}}}); err != nil {
			return err
		}
	}
	return nil
}

// order orders the columns by filter, and returns the filters that users hold by
// facet, then value. The number column loses its meaning.
func (p *Packer) order() []listOf {
	filters := p.values.filters
	ends := make([]uint32, len(filters)+1)
	for _, n := range p.numbers {
		ends[n+1]++
	}
	for n := range filters {
		ends[n+1] += ends[n]
	}
	var lists []listOf
	for n, f := range filters {
		if ends[n] < ends[n+1] {
			lists = append(lists, listOf{f, int(ends[n]), int(ends[n+1])})
		}
	}
	slices.SortFunc(lists, func(a, b listOf) int {
		return cmp.Or(strings.Compare(a.facet, b.facet), strings.Compare(a.value, b.value))
	})
	next := make([]uint32, len(filters))
	p.sort.ordinals = scatter(&p.ordinals, p.sort.ordinals, p.numbers, ends, next)
	for i := range p.keys {
		p.sort.keys = scatter(&p.keys[i], p.sort.keys, p.numbers, ends, next)
	}
	return lists
}

// columnSort is the memory of the columns while they are ordered.
type columnSort struct {
	ordinals []uint16
	keys     []uint64
}

// scatter orders a column by number into spare memory, which takes its place. It returns
// the column's memory.
func scatter[T any](column *[]T, spare []T, numbers, ends, next []uint32) []T {
	if cap(spare) < len(*column) {
		spare = make([]T, 0, cap(*column))
	}
	to := spare[:len(*column)]
	copy(next, ends)
	for i, v := range *column {
		at := &next[numbers[i]]
		to[*at] = v
		*at++
	}
	old := *column
	*column = to
	return old[:0]
}
