package crowd

import (
	"encoding/binary"
	"fmt"

	"github.com/affinityengine/affinity/shared/wire"
)

// Every stored value begins with the number of its format and ends with a
// checksum of the rest.
const format = 3

// nextText reads a text that wire.AppendNext wrote.
func nextText(c *wire.Reader, previous string) string {
	n, rest := c.Unsigned(), c.Text()
	if n > uint64(len(previous)) {
		c.Damaged = true
	}
	if c.Damaged {
		return ""
	}
	return previous[:n] + string(rest)
}

// AppendBinary appends the stored form of an object's statistics.
func (o Object) AppendBinary(b []byte) []byte {
	start := len(b)
	b = append(b, format)
	b = binary.AppendUvarint(b, uint64(o.Events))
	b = binary.AppendUvarint(b, uint64(o.Bound))
	for _, links := range o.Links {
		b = binary.AppendUvarint(b, uint64(len(links)))
		for _, p := range links {
			b = wire.AppendText(b, p.ObjectID)
			b = binary.AppendUvarint(b, uint64(p.Count))
		}
	}
	return wire.Seal(b, start)
}

// ParseObject decodes what Object.AppendBinary wrote. The error is wire.ErrNewer if a
// newer version of the engine wrote it.
func ParseObject(b []byte) (Object, error) {
	c, err := wire.Unseal(b, format)
	if err != nil {
		return Object{}, fmt.Errorf("read statistics of an object: %w", err)
	}
	o := Object{Events: c.Number(), Bound: c.Number()}
	for kind := range o.Links {
		links := make([]Pair, c.Size(2))
		for i := range links {
			links[i] = Pair{string(c.Text()), c.Number()}
		}
		o.Links[kind] = links
	}
	if err := c.End(); err != nil {
		return Object{}, fmt.Errorf("read statistics of an object: %w", err)
	}
	return o, nil
}
