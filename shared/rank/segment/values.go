package segment

import (
	"encoding/binary"
	"fmt"

	"github.com/affinityengine/affinity/shared/wire"
)

// packedBytes is the size that a cell of values should not exceed by much.
const packedBytes = 256 << 10

// valueCells makes cells of filters and their numbers of holders.
type valueCells struct {
	write        func(cell []byte) error
	b            []byte // of the current cell, without its head
	n            int
	facet, value string // the last
}

func (c *valueCells) add(facet, value string, holders int) error {
	if c.n == 0 {
		c.facet, c.value = "", ""
	}
	c.b = wire.AppendNext(wire.AppendNext(c.b, c.facet, facet), c.value, value)
	c.b = binary.AppendUvarint(c.b, uint64(holders))
	c.facet, c.value = facet, value
	if c.n++; len(c.b) >= packedBytes {
		return c.flush()
	}
	return nil
}

func (c *valueCells) flush() error {
	if c.n == 0 {
		return nil
	}
	cell := append(binary.AppendUvarint([]byte{format}, uint64(c.n)), c.b...)
	c.b, c.n = c.b[:0], 0
	return c.write(wire.Seal(cell, 0))
}

// EachValue passes the filters in a cell of kind Values with their numbers of holders, by
// facet, then value. It returns the first error of fn.
func EachValue(cell []byte, fn func(facet, value string, holders int) error) error {
	r, err := unseal(cell)
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	var facet, value []byte
	for range r.Size(5) {
		facet = r.NextText(nil, facet, r.Unsigned())
		value = r.NextText(nil, value, r.Unsigned())
		holders := r.Unsigned()
		if r.Damaged || holders > MaxUsers {
			return fmt.Errorf("read values: %w", wire.ErrDamaged)
		}
		if err := fn(string(facet), string(value), int(holders)); err != nil {
			return err
		}
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	return nil
}
