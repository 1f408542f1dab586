package disk

import (
	"encoding/binary"
	"hash/crc32"
)

// The form of Pebble's logs, of package record. A log is a sequence of blocks of 32 KB, and
// a block is a sequence of chunks. The end of a block that is too short for a header is
// empty. A header is
//
//	checksum (4 bytes), length (2), kind (1), number of the log (4), synced (8)
//
// all in little-endian order. The checksum covers what follows the length. synced is how
// much of the log was on the disk when the chunk was written. A log whose damage lies
// before a number that a later chunk names does not open. Damage that lies behind all of
// them is the end of the log.
const (
	logBlock    = 32 << 10
	chunkHeader = 19
	atLength    = 4
	atKind      = 6
	atSynced    = 11
	firstKind   = 9 // of chunks with this header
	lastKind    = 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// setSynced sets the number synced of all chunks in p, which are whole and begin at an
// offset of their log. It stops at what is not such a chunk: the mark of the log's end.
func setSynced(p []byte, offset, synced int64) {
	for at := 0; at < len(p); {
		left := logBlock - int((offset+int64(at))%logBlock)
		if left < chunkHeader {
			at += left
			continue
		}
		if at+chunkHeader > len(p) {
			return
		}
		kind, end := p[at+atKind], at+chunkHeader+int(binary.LittleEndian.Uint16(p[at+atLength:]))
		if kind < firstKind || kind > lastKind || end > len(p) {
			return
		}
		binary.LittleEndian.PutUint64(p[at+atSynced:], uint64(synced))
		binary.LittleEndian.PutUint32(p[at:], checksum(p[at+atKind:end]))
		at = end
	}
}

// checksum is that of a chunk.
func checksum(of []byte) uint32 {
	sum := crc32.Checksum(of, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}
