package crowd

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/wire"
)

// AppendParts appends the stored form of the parts of a run, which must be by
// ObjectID, and their pairs too. It lists each objectID once.
func AppendParts(b []byte, parts []Partial) []byte {
	var ids []string
	for _, p := range parts {
		ids = append(ids, p.ObjectID)
		for _, l := range p.Links {
			for _, second := range l.Pairs {
				ids = append(ids, second.ObjectID)
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	numbers := make(map[string]uint64, len(ids))

	start := len(b)
	b = append(b, format)
	b = binary.AppendUvarint(b, uint64(len(ids)))
	previous := ""
	for i, id := range ids {
		numbers[id] = uint64(i)
		b = wire.AppendNext(b, previous, id)
		previous = id
	}
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for _, p := range parts {
		b = binary.AppendUvarint(b, numbers[p.ObjectID])
		b = binary.AppendUvarint(b, uint64(p.Events))
		b = wire.AppendFloat(wire.AppendFloat(b, p.Count), p.Recent)
		b = binary.AppendUvarint(b, uint64(p.Own))
		for _, l := range p.Links {
			b = binary.AppendUvarint(b, uint64(l.Dropped))
			b = binary.AppendUvarint(b, uint64(len(l.Pairs)))
			last := uint64(0)
			for _, second := range l.Pairs {
				n := numbers[second.ObjectID]
				b = binary.AppendUvarint(b, n-last)
				b = binary.AppendUvarint(b, uint64(second.Count))
				last = n
			}
		}
	}
	return wire.Seal(b, start)
}

// PartReader reads parts one after the other from their stored form.
type PartReader struct {
	c    wire.Reader
	ids  []string
	left int
	last string
}

// NewPartReader opens what AppendParts wrote. The reader keeps the bytes. The
// error is wire.ErrNewer if a newer version of the engine wrote them.
func NewPartReader(b []byte) (*PartReader, error) {
	c, err := wire.Unseal(b, format)
	if err != nil {
		return nil, fmt.Errorf("read parts of a run: %w", err)
	}
	r := &PartReader{c: c}
	r.ids = make([]string, r.c.Size(2))
	previous := ""
	for i := range r.ids {
		id := nextText(&r.c, previous)
		if i > 0 && id <= previous {
			r.c.Damaged = true
		}
		r.ids[i], previous = id, id
	}
	r.left = r.c.Size(25)
	if r.c.Damaged {
		return nil, fmt.Errorf("read parts of a run: %w", wire.ErrDamaged)
	}
	return r, nil
}

// Next returns the next part. It returns false after the last one.
func (r *PartReader) Next() (Partial, bool, error) {
	if r.left == 0 {
		if err := r.c.End(); err != nil {
			return Partial{}, false, fmt.Errorf("read parts of a run: %w", err)
		}
		return Partial{}, false, nil
	}
	r.left--
	c := &r.c
	p := Partial{ObjectID: r.id(c.Unsigned()), Events: c.Number(), Count: c.Float(), Recent: c.Float(),
		Own: c.Number()}
	for kind := range p.Links {
		l := &p.Links[kind]
		l.Dropped = c.Number()
		l.Pairs = make([]Pair, c.Size(2))
		n := uint64(0)
		for i := range l.Pairs {
			since := c.Unsigned()
			if i > 0 && since == 0 || n+since < n {
				c.Damaged = true
			}
			n += since
			l.Pairs[i] = Pair{r.id(n), c.Number()}
		}
	}
	if c.Damaged || p.ObjectID <= r.last && r.last != "" {
		return Partial{}, false, fmt.Errorf("read parts of a run: %w", wire.ErrDamaged)
	}
	r.last = p.ObjectID
	return p, true, nil
}

func (r *PartReader) id(n uint64) string {
	if n >= uint64(len(r.ids)) {
		r.c.Damaged = true
		return ""
	}
	return r.ids[n]
}
