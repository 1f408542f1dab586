package store

import (
	"context"
	"encoding/binary"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/rank/segment"
)

// SegmentSize is the size of a saved segment on a day.
type SegmentSize struct {
	Day   string // 2026-11-23
	Users int
}

func segmentSizeKey(app, name string) string { return segmentPrefix(app, "s") + keyText(name) }

// SetSegmentSize stores the size of a saved segment on a day (2026-11-23).
func (s Segments) SetSegmentSize(ctx context.Context, app, name, day string, users int) error {
	return s.writeSegment(ctx, app, segmentSizeKey(app, name), familySizes, day, bigEndian(int64(users)))
}

// SegmentSizes reads the sizes of a saved segment by day, ascending.
func (s Segments) SegmentSizes(ctx context.Context, app, name string) ([]SegmentSize, error) {
	var sizes []SegmentSize
	err := s.readSegments(ctx, app, bigtable.SingleRow(segmentSizeKey(app, name)),
		func(key string, cells []segment.Cell) error {
			for _, c := range cells {
				if len(c.Value) != 8 {
					return fmt.Errorf("row %q, day %s: a size of %d bytes, want 8", key, c.Column, len(c.Value))
				}
				sizes = append(sizes, SegmentSize{c.Column, int(binary.BigEndian.Uint64(c.Value))})
			}
			return nil
		}, newestCells)
	return sizes, err
}

// DeleteSegmentSizes deletes the sizes of a saved segment.
func (s Segments) DeleteSegmentSizes(ctx context.Context, app, name string) error {
	m := bigtable.NewMutation()
	m.DeleteRow()
	if err := s.segments(app).Apply(ctx, segmentSizeKey(app, name), m); err != nil {
		return fmt.Errorf("delete the sizes of segment %s of %s: %w", name, app, err)
	}
	return nil
}

// MaxExportChunk is the most bytes that a chunk of an exported file should have.
const MaxExportChunk = 1 << 20

const columnExport = "x"

func exportPrefix(app, file string) string { return segmentPrefix(app, "x") + keyText(file) + "," }

func exportKey(app, file string, n int) string {
	return fmt.Sprintf("%s%08x", exportPrefix(app, file), n)
}

// endOfExport sorts behind all chunks.
func endOfExport(app, file string) string { return exportPrefix(app, file) + "end" }

// WriteExportChunk stores a piece of an exported file, numbered from 0.
func (s Segments) WriteExportChunk(ctx context.Context, app, file string, n int, chunk []byte) error {
	return s.writeSegment(ctx, app, exportKey(app, file, n), familyExport, columnExport, chunk)
}

// EndExport stores that a file is complete: its number of chunks and lines.
func (s Segments) EndExport(ctx context.Context, app, file string, chunks, lines int) error {
	value := append(bigEndian(int64(chunks)), bigEndian(int64(lines))...)
	return s.writeSegment(ctx, app, endOfExport(app, file), familyExport, columnExport, value)
}

// Export reads what EndExport stored. complete is false if it has not, or not any more.
func (s Segments) Export(ctx context.Context, app, file string) (chunks, lines int, complete bool, err error) {
	b, err := s.readExport(ctx, app, endOfExport(app, file))
	if err != nil || len(b) != 16 {
		return 0, 0, false, err
	}
	return int(binary.BigEndian.Uint64(b)), int(binary.BigEndian.Uint64(b[8:])), true, nil
}

// ReadExportChunk reads a piece of an exported file, nil if it does not exist: after seven
// days, Bigtable has dropped it.
func (s Segments) ReadExportChunk(ctx context.Context, app, file string, n int) ([]byte, error) {
	return s.readExport(ctx, app, exportKey(app, file, n))
}

func (s *Store) readExport(ctx context.Context, app, key string) ([]byte, error) {
	var value []byte
	err := s.readSegments(ctx, app, bigtable.SingleRow(key), func(_ string, cells []segment.Cell) error {
		value = cells[0].Value
		return nil
	}, newestCells)
	return value, err
}
