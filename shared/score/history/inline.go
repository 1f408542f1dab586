package history

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/wire"
)

// The stored form of an inline block, which is a cell of the user's row. Integers are
// unsigned varints as in encoding/binary.
//
//	offset  size
//	0       1     format: 1
//	1       4     CRC-32C, little-endian, of From and To of the manifest's entry, each as
//	              a position of a stored manifest (from 0), and of all bytes that follow
//	5       var   Ticket, N
//	        var   the block
//
// The checksum holds the range, so that the cell is the block of that entry and of no
// other. This is stored data: a new layout needs a new format byte.
const (
	cellFormat = 1
	cellHeader = 5
)

// ErrOtherBlock means that the cell of a user's row holds another block than the
// manifest names: the row has changed in between.
var ErrOtherBlock = errors.New("the row holds another block")

// AppendInline appends the stored form of a block as the cell of the user's row. b is
// its entry in the manifest.
func AppendInline(dst []byte, b Block, block []byte) []byte {
	start := len(dst)
	dst = append(dst, cellFormat, 0, 0, 0, 0)
	dst = binary.AppendUvarint(dst, uint64(b.ID.Ticket))
	dst = binary.AppendUvarint(dst, uint64(b.ID.N))
	dst = append(dst, block...)
	binary.LittleEndian.PutUint32(dst[start+1:], inlineSum(b.Range, dst[start+cellHeader:]))
	return dst
}

// ParseInline returns the block in the cell of a user's row, which shares its memory.
// b is the entry in the manifest. The error is ErrOtherBlock if the cell holds another
// block, or none. Any other error means that the cell is damaged, or in the format of a
// newer version.
func ParseInline(b Block, cell []byte) ([]byte, error) {
	if len(cell) == 0 {
		return nil, ErrOtherBlock
	}
	if cell[0] > cellFormat {
		return nil, fmt.Errorf("cell of format %d, want %d: %w", cell[0], cellFormat, wire.ErrNewer)
	}
	if len(cell) < cellHeader || cell[0] != cellFormat {
		return nil, errors.New("not a cell of a block")
	}
	c := cursor{B: cell, Next: cellHeader}
	id := BlockID{Ticket: int64(c.Unsigned()), N: int(c.Number())}
	switch {
	case c.Damaged:
		return nil, errors.New("cell of a block is cut short")
	case id != b.ID:
		return nil, fmt.Errorf("block %d,%d, want %d,%d: %w", id.Ticket, id.N, b.ID.Ticket, b.ID.N, ErrOtherBlock)
	case inlineSum(b.Range, cell[cellHeader:]) != binary.LittleEndian.Uint32(cell[1:]):
		return nil, errors.New("checksum of the cell does not match")
	}
	return cell[c.Next:], nil
}

// inlineSum returns the checksum of a range and of what follows the checksum.
func inlineSum(r Range, rest []byte) uint32 {
	var buffer [128]byte
	w := posWriter{dst: buffer[:0]}
	w.pos(r.From)
	w.pos(r.To)
	return wire.Checksum(w.dst, rest)
}
