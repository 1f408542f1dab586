package segment

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/wire"
)

// bucketBytes is about how many bytes of lists a bucket takes.
const bucketBytes = 32 << 10

// Finish ends the part at an instant (ms) and passes its rows to write, which must not
// keep their cells. It returns the description of the part, without Generation, From, To and Cut,
// and the first error of write. The packer can then begin another part.
func (p *Packer) Finish(now int64, write func(Row) error) (Part, error) {
	part := p.part
	part.Users, part.Affinities = len(p.tokens), p.postings.count
	for _, a := range p.ahead {
		if a.Until > now {
			part.Ahead = append(part.Ahead, a)
		}
	}
	if part.Delta {
		part.Buckets = 1 + (p.postings.count+len(p.tokens))*p.postings.size/bucketBytes
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

// listOf is a filter that users of the part hold.
type listOf struct {
	numbered
	number, holders int
}

func (p *Packer) writeLists(part *Part, write func(Row) error) error {
	lists := p.lists()
	n := 0
	values := valueCells{write: func(cell []byte) error {
		n++
		return write(Row{Kind: Values, N: n - 1, Cells: []Cell{{Value: cell}}})
	}}
	for _, l := range lists {
		if err := values.add(l.facet, l.value, l.holders); err != nil {
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
	for _, l := range lists {
		p.postings.read(l.number, &p.list)
		ordinals, keys := p.list.ordinals, p.list.keys
		cells = cells[:0]
		if p.bands.begin(); len(ordinals) <= smallUsers {
			cells = append(cells, Cell{SmallColumn, p.bands.small(ordinals, keys)})
		} else {
			for i, of := range keys {
				p.bands.write(i, ordinals, of, func(c Cell) { cells = append(cells, c) })
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
	var list []byte
	for n, of := range byBucket {
		if len(of) == 0 {
			continue
		}
		b := binary.AppendUvarint([]byte{format}, uint64(len(of)))
		for _, l := range of {
			p.postings.read(l.number, &p.list)
			list = appendSmall(list[:0], p.list.ordinals, p.list.keys)
			b = wire.AppendText(wire.AppendText(b, l.facet), l.value)
			b = append(binary.AppendUvarint(b, uint64(len(list))), list...)
		}
		if err := write(Row{Kind: Bucket, N: n, Cells: []Cell{{Value: wire.Seal(b, 0)}}}); err != nil {
			return err
		}
	}
	return nil
}

// lists orders the postings. It returns the filters that users hold, by facet, then value.
func (p *Packer) lists() []listOf {
	p.postings.order()
	var lists []listOf
	for n, holders := range p.postings.counts {
		if holders > 0 {
			lists = append(lists, listOf{p.values.filters[n], n, holders})
		}
	}
	slices.SortFunc(lists, func(a, b listOf) int {
		return cmp.Or(strings.Compare(a.facet, b.facet), strings.Compare(a.value, b.value))
	})
	return lists
}
