package store

import (
	"context"

	"github.com/affinityengine/affinity/shared/segment"
)

// ReadSegmentManifest reads an app's manifest of segments, for SwapSegmentManifest too. An
// app without one has an empty manifest. A damaged manifest is an empty one too, so that
// the next build replaces it. The error is segment.ErrNewer if a newer version of the
// engine wrote it.
func (s *Store) ReadSegmentManifest(ctx context.Context, app string) (segment.Manifest, error) {
	return segment.Manifest{}, nil
}

// SwapSegmentManifest stores a manifest with the version after m's in place of m's. It
// returns false if the stored manifest has another version, or if the first answer was
// lost; in the second case it may have been replaced.
func (s *Store) SwapSegmentManifest(ctx context.Context, app string, version int64, m segment.Manifest) (bool, error) {
	return false, nil
}

// SegmentWriter writes the rows of a part in bulk. Nothing reads them before a manifest
// names the part.
type SegmentWriter struct{}

// NewSegmentWriter returns a writer. The caller must call Flush at the end.
func (s *Store) NewSegmentWriter(ctx context.Context, app string, part segment.PartID) *SegmentWriter {
	return &SegmentWriter{}
}

// Write writes a row. It keeps none of its memory.
func (w *SegmentWriter) Write(row segment.Row) error { return nil }

// Flush writes the rows that wait.
func (w *SegmentWriter) Flush() error { return nil }

// WriteSetOuts stores which users of older parts a delta sets out: sorted ordinals by part.
func (s *Store) WriteSetOuts(ctx context.Context, app string, delta segment.PartID, out map[segment.PartID][]uint16) error {
	return nil
}

// ReadSetOuts reads what WriteSetOuts stored for some deltas: by delta, then older part.
func (s *Store) ReadSetOuts(ctx context.Context, app string, deltas []segment.PartID) (map[segment.PartID]map[segment.PartID][]uint16, error) {
	return nil, nil
}

// WriteBuiltPart stores the description of a part of a generation that is being built,
// after all of its rows, in place of one that begins with the same user.
func (s *Store) WriteBuiltPart(ctx context.Context, app string, p segment.Part) error { return nil }

// BuiltParts reads the descriptions of the parts of a generation, by From.
func (s *Store) BuiltParts(ctx context.Context, app, generation string) ([]segment.Part, error) {
	return nil, nil
}

// SegmentList asks for the lists of a term in some parts.
type SegmentList struct {
	Term      segment.Term
	Threshold segment.Order // lists need no lower Orders; segment.NoOrder: all
	Parts     []segment.Part
}

// ReadSegmentLists reads the lists of a term in parts without buckets: by part, the cells
// that can lie above the threshold. A part whose list is empty has no entry. The caller
// may keep the cells.
func (s *Store) ReadSegmentLists(ctx context.Context, app string, q SegmentList) (map[segment.PartID][]segment.Cell, error) {
	return nil, nil
}

// SegmentRow names a row of a part with one number: of any kind but List.
type SegmentRow struct {
	Part segment.PartID
	Kind segment.Kind
	N    int
}

// ReadSegmentRows reads rows of parts in one request. A row that does not exist has no
// entry. The caller may keep the cells.
func (s *Store) ReadSegmentRows(ctx context.Context, app string, rows []SegmentRow) (map[SegmentRow][]segment.Cell, error) {
	return nil, nil
}

// ReadSegmentUntils reads the cells of the profiles of parts that expire up to the hour of
// an instant (ms).
func (s *Store) ReadSegmentUntils(ctx context.Context, app string, parts []segment.PartID, at int64) (map[segment.PartID][]segment.Cell, error) {
	return nil, nil
}

// ScanSegmentValues passes the cells of the values of parts, in the order of parts given.
func (s *Store) ScanSegmentValues(ctx context.Context, app string, parts []segment.Part, fn func(part segment.PartID, cell []byte) error) error {
	return nil
}

// BlankSegmentToken takes a user's token out of the parts of the app's manifest that have
// it. Ordinals stay. It returns the number of parts that had it.
func (s *Store) BlankSegmentToken(ctx context.Context, app, user string) (int, error) { return 0, nil }

// DropSegmentParts deletes the rows of the parts of an app that obsolete selects, and the
// descriptions of such parts of generations.
func (s *Store) DropSegmentParts(ctx context.Context, app string, obsolete func(segment.PartID) bool) error {
	return nil
}

// SetSegmentSize stores the size of a saved segment on a day (2026-11-23).
func (s *Store) SetSegmentSize(ctx context.Context, app, name, day string, users int) error {
	return nil
}

// SegmentSizes reads the sizes of a saved segment by day, ascending.
func (s *Store) SegmentSizes(ctx context.Context, app, name string) ([]SegmentSize, error) {
	return nil, nil
}

// SegmentSize is the size of a saved segment on a day.
type SegmentSize struct {
	Day   string // 2026-11-23
	Users int
}

// DeleteSegmentSizes deletes the sizes of a saved segment.
func (s *Store) DeleteSegmentSizes(ctx context.Context, app, name string) error { return nil }

// MaxExportChunk is the most bytes that a chunk of an exported file should have.
const MaxExportChunk = 1 << 20

// WriteExportChunk stores a piece of the file that a job exports, numbered from 0.
func (s *Store) WriteExportChunk(ctx context.Context, app, job string, n int, chunk []byte) error {
	return nil
}

// EndExport stores that the file of a job is complete: its number of chunks and lines.
func (s *Store) EndExport(ctx context.Context, app, job string, chunks, lines int) error { return nil }

// Export reads what EndExport stored. complete is false if it has not.
func (s *Store) Export(ctx context.Context, app, job string) (chunks, lines int, complete bool, err error) {
	return 0, 0, false, nil
}

// ReadExportChunk reads a piece of an exported file, nil if it does not exist: after seven
// days, Bigtable has dropped it.
func (s *Store) ReadExportChunk(ctx context.Context, app, job string, n int) ([]byte, error) {
	return nil, nil
}

// DropExport deletes the file of a job.
func (s *Store) DropExport(ctx context.Context, app, job string) error { return nil }
