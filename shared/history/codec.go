package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The stored form of a manifest. Integers are varints as in encoding/binary, signed ones zigzag; text is its length in
// bytes, unsigned, then the bytes. A place is its time, as the signed difference from the place written before it
// (from 0 for the first), then its id: text.
//
//	offset  size
//	0       1     format: 1
//	1       8     Version, big-endian
//	9       4     CRC-32C of all but itself, little-endian
//	13      var   Complete: signed
//	        1     flags: bit 0 says that there is an announcement, the others are 0
//	        var   the announcement, if there is one: From, To, then Ticket: signed
//	        var   number of blocks, unsigned, then each of them:
//	              1     flags: bit 0 says that From is the To of the block before; the others are 0
//	              var   From, unless bit 0 is set; To
//	              var   Ticket, as the difference from that of the block before: signed
//	              var   N: unsigned
//	              var   Newest, as the difference from the time of To: signed
//	              var   Events, Bytes: unsigned
//
// A block takes 30 bytes next to another one, and 45 elsewhere. This is stored data: another layout is another format
// byte, but the first nine bytes stay: by them the store tells whether a manifest is still the one that was read.
const (
	manifestFormat = 1
	// PrefixSize is how many bytes at the beginning of a stored manifest say its format and version.
	PrefixSize     = 9
	manifestHeader = PrefixSize + 4
	minBlock       = 8 // bytes that a block takes at least

	flagAnnounced = 1
	flagAdjacent  = 1
)

var errDamaged = errors.New("damaged, though its checksum matches")

// AppendBinary appends the stored form of the manifest to dst.
func (m Manifest) AppendBinary(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, manifestFormat)
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Version))
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.AppendVarint(dst, m.Complete)
	w := placeWriter{dst: dst}
	if a := m.Announced; a != nil {
		w.dst = append(w.dst, flagAnnounced)
		w.place(a.From)
		w.place(a.To)
		w.dst = binary.AppendVarint(w.dst, a.Ticket)
	} else {
		w.dst = append(w.dst, 0)
	}
	w.blocks(m.Blocks)
	dst = w.dst
	binary.LittleEndian.PutUint32(dst[start+PrefixSize:], manifestSum(dst[start:]))
	return dst
}

// manifestSum is the checksum of a stored manifest, all of it but the checksum.
func manifestSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:PrefixSize], castagnoli), castagnoli, b[manifestHeader:])
}

// placeWriter writes places, each by its distance from the one before. Distances wrap round, so that all can be written.
type placeWriter struct {
	dst  []byte
	last int64
}

func (w *placeWriter) place(p Pos) {
	w.dst = binary.AppendVarint(w.dst, p.Time-w.last)
	w.dst = appendText(w.dst, p.ID)
	w.last = p.Time
}

func (w *placeWriter) blocks(blocks []Block) {
	w.dst = binary.AppendUvarint(w.dst, uint64(len(blocks)))
	var before Block
	for i, b := range blocks {
		if i > 0 && b.From == before.To {
			w.dst = append(w.dst, flagAdjacent)
		} else {
			w.dst = append(w.dst, 0)
			w.place(b.From)
		}
		w.place(b.To)
		w.dst = binary.AppendVarint(w.dst, b.ID.Ticket-before.ID.Ticket)
		w.dst = binary.AppendUvarint(w.dst, uint64(b.ID.N))
		w.dst = binary.AppendVarint(w.dst, b.Newest-b.To.Time)
		w.dst = binary.AppendUvarint(w.dst, uint64(b.Events))
		w.dst = binary.AppendUvarint(w.dst, uint64(b.Bytes))
		before = b
	}
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// ParseManifest reads what AppendBinary wrote; nothing stored is the zero manifest. It shares no memory with b. The
// error is ErrNewer for another format; any other means that b is damaged, and the log is to be read in its place.
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
		return Manifest{}, fmt.Errorf("format %d, want %d: %w", b[0], manifestFormat, ErrNewer)
	}
	if b[0] != manifestFormat || len(b) < manifestHeader {
		return Manifest{}, errors.New("not a manifest")
	}
	if manifestSum(b) != binary.LittleEndian.Uint32(b[PrefixSize:]) {
		return Manifest{}, errors.New("checksum does not match")
	}
	r := placeReader{cursor: cursor{b: b, next: manifestHeader}, text: string(b)}
	m := Manifest{Version: int64(binary.BigEndian.Uint64(b[1:])), Complete: r.signed()}
	switch r.byte() {
	case 0:
	case flagAnnounced:
		m.Announced = &Announcement{Range: Range{From: r.place(), To: r.place()}, Ticket: r.signed()}
		if !m.Announced.valid() {
			return Manifest{}, errDamaged
		}
	default:
		return Manifest{}, errDamaged
	}
	m.Blocks = r.blocks()
	if r.damaged || r.next != len(b) {
		return Manifest{}, errDamaged
	}
	return m, nil
}

func (r Range) valid() bool { return r.From.Compare(r.To) < 0 }

// placeReader reads what placeWriter wrote. Ids are parts of one string.
type placeReader struct {
	cursor
	text string
	last int64
}

func (r *placeReader) place() Pos {
	r.last += r.signed()
	n := len(r.cursor.text())
	return Pos{Time: r.last, ID: r.text[r.next-n : r.next]}
}

func (r *placeReader) blocks() []Block {
	n := r.size(minBlock)
	if n == 0 {
		return nil
	}
	blocks := make([]Block, n)
	var before Block
	for i := range blocks {
		b := &blocks[i]
		switch flags := r.byte(); {
		case flags == 0:
			b.From = r.place()
		case flags == flagAdjacent && i > 0:
			b.From = before.To
		default:
			r.damaged = true
		}
		b.To = r.place()
		b.ID = BlockID{Ticket: before.ID.Ticket + r.signed(), N: r.number()}
		b.Newest = b.To.Time + r.signed()
		b.Events, b.Bytes = r.number(), r.number()
		if i > 0 && before.To.Compare(b.From) > 0 || !b.valid() {
			r.damaged = true
		}
		if r.damaged {
			return nil
		}
		before = *b
	}
	return blocks
}
