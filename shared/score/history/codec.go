package history

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/wire"
)

// The stored form of a manifest. Integers are varints as in encoding/binary,
// the signed ones zigzag. A text is its length in bytes, unsigned, then the
// bytes. A position is its time, as the signed difference from the previous
// position (from 0 for the first), then its id as a text.
//
//	offset  size
//	0       1     format: 2
//	1       8     Version, big-endian
//	9       4     CRC-32C of all bytes except these four, little-endian
//	13      var   Complete: signed
//	        1     flags: bit 0 is set if an announcement follows, the others are 0
//	        var   the announcement, if any: From, To, then Ticket: signed
//	        var   number of blocks, unsigned, then each of them:
//	              1     flags: bit 0 is set if From is the previous block's To, bit 1 if
//	                    the block is inline; the others are 0
//	              var   From, unless bit 0 is set; To
//	              var   Ticket, as the difference from the previous block's: signed
//	              var   N: unsigned
//	              var   Newest, as the difference from the time of To: signed
//	              var   Events, Bytes: unsigned
//
// At most one block is inline.
//
// An entry takes 30 bytes next to another block, and 45 otherwise. This is
// stored data: a new layout needs a new format byte. The first nine bytes must
// not change: the store compares them to see whether a manifest has changed.
const (
	manifestFormat = 2
	// prefixSize is the number of leading bytes of a stored manifest that hold
	// its format and version.
	prefixSize     = 9
	manifestHeader = prefixSize + 4
	minBlock       = 8 // minimum bytes of an entry

	flagAnnounced = 1
	flagAdjacent  = 1
	flagInline    = 2
)

var errDamaged = errors.New("damaged, though its checksum matches")

// AppendBinary appends the stored form of the manifest to dst.
func (m Manifest) AppendBinary(dst []byte) []byte {
	start := len(dst)
	dst = appendPrefix(dst, m.Version)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.AppendVarint(dst, m.Complete)
	w := posWriter{dst: dst}
	if a := m.Announced; a != nil {
		w.dst = append(w.dst, flagAnnounced)
		w.pos(a.From)
		w.pos(a.To)
		w.dst = binary.AppendVarint(w.dst, a.Ticket)
	} else {
		w.dst = append(w.dst, 0)
	}
	w.blocks(m.Blocks)
	dst = w.dst
	binary.LittleEndian.PutUint32(dst[start+prefixSize:], manifestSum(dst[start:]))
	return dst
}

// appendPrefix appends the first prefixSize bytes of the stored form, which tell one
// manifest of a user from another.
func appendPrefix(dst []byte, version int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, manifestFormat), uint64(version))
}

// OfVersion says where the stored form of a manifest of a version lies: from the first value on and
// before the second. Both are nil for version 0, no manifest.
func OfVersion(version int64) (stored [2][]byte) {
	if version != 0 {
		stored = [2][]byte{appendPrefix(nil, version), appendPrefix(nil, version+1)}
	}
	return stored
}

// manifestSum returns the checksum of a stored manifest, which covers all bytes
// except the checksum.
func manifestSum(b []byte) uint32 {
	return wire.Checksum(b[:prefixSize], b[manifestHeader:])
}

// posWriter writes positions, each as the difference from the previous one.
// Differences wrap around, so every position can be written.
type posWriter struct {
	dst  []byte
	last int64
}

func (w *posWriter) pos(p Pos) {
	w.dst = binary.AppendVarint(w.dst, p.Time-w.last)
	w.dst = wire.AppendText(w.dst, p.ID)
	w.last = p.Time
}

func (w *posWriter) blocks(blocks []Block) {
	w.dst = binary.AppendUvarint(w.dst, uint64(len(blocks)))
	var before Block
	for i, b := range blocks {
		flags := byte(0)
		if b.Inline {
			flags = flagInline
		}
		if i > 0 && b.From == before.To {
			w.dst = append(w.dst, flags|flagAdjacent)
		} else {
			w.dst = append(w.dst, flags)
			w.pos(b.From)
		}
		w.pos(b.To)
		w.dst = binary.AppendVarint(w.dst, b.ID.Ticket-before.ID.Ticket)
		w.dst = binary.AppendUvarint(w.dst, uint64(b.ID.N))
		w.dst = binary.AppendVarint(w.dst, b.Newest-b.To.Time)
		w.dst = binary.AppendUvarint(w.dst, uint64(b.Events))
		w.dst = binary.AppendUvarint(w.dst, uint64(b.Bytes))
		before = b
	}
}

// ParseManifest parses what AppendBinary wrote. An empty b is the zero
// manifest. The manifest shares no memory with b. The error is wire.ErrNewer for an
// unknown format. Any other error means that b is damaged and the caller must
// read the log instead.
func ParseManifest(b []byte) (Manifest, error) {
	if len(b) == 0 {
		return Manifest{}, nil
	}
	m, err := parseManifest(b)
	if err != nil {
		return Manifest{}, fmt.Errorf("parse manifest of %d bytes: %w", len(b), err)
	}
	return m, nil
}

func parseManifest(b []byte) (Manifest, error) {
	if b[0] > manifestFormat {
		return Manifest{}, fmt.Errorf("format %d, want %d: %w", b[0], manifestFormat, wire.ErrNewer)
	}
	if b[0] != manifestFormat || len(b) < manifestHeader {
		return Manifest{}, errors.New("not a manifest")
	}
	if manifestSum(b) != binary.LittleEndian.Uint32(b[prefixSize:]) {
		return Manifest{}, errors.New("checksum does not match")
	}
	r := posReader{cursor: cursor{B: b, Next: manifestHeader}, text: string(b)}
	m := Manifest{Version: int64(binary.BigEndian.Uint64(b[1:])), Complete: r.Signed()}
	switch r.Byte() {
	case 0:
	case flagAnnounced:
		m.Announced = &Announcement{Range: Range{From: r.pos(), To: r.pos()}, Ticket: r.Signed()}
		if !m.Announced.valid() {
			return Manifest{}, errDamaged
		}
	default:
		return Manifest{}, errDamaged
	}
	m.Blocks = r.blocks()
	if r.Damaged || r.Next != len(b) {
		return Manifest{}, errDamaged
	}
	return m, nil
}

func (r Range) valid() bool { return r.From.Compare(r.To) < 0 }

// posReader reads what posWriter wrote. All ids share one string.
type posReader struct {
	cursor
	text string
	last int64
}

func (r *posReader) pos() Pos {
	r.last += r.Signed()
	n := len(r.cursor.Text())
	return Pos{Time: r.last, ID: r.text[r.Next-n : r.Next]}
}

func (r *posReader) blocks() []Block {
	n := r.Size(minBlock)
	if n == 0 {
		return nil
	}
	blocks := make([]Block, n)
	inline := false // there is one already
	var before Block
	for i := range blocks {
		b := &blocks[i]
		flags := r.Byte()
		b.Inline = flags&flagInline != 0
		switch flags &^ flagInline {
		case 0:
			b.From = r.pos()
		case flagAdjacent:
			b.From = before.To
			r.Damaged = r.Damaged || i == 0
		default:
			r.Damaged = true
		}
		r.Damaged = r.Damaged || inline && b.Inline
		inline = inline || b.Inline
		b.To = r.pos()
		b.ID = BlockID{Ticket: before.ID.Ticket + r.Signed(), N: int(r.Number())}
		b.Newest = b.To.Time + r.Signed()
		b.Events, b.Bytes = int(r.Number()), int(r.Number())
		if i > 0 && before.To.Compare(b.From) > 0 || !b.valid() {
			r.Damaged = true
		}
		if r.Damaged {
			return nil
		}
		before = *b
	}
	return blocks
}
