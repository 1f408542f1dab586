package store

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/rank/segment"
)

// SegmentWriter writes the rows of a part in bulk. Nothing reads them before a manifest
// names the part.
type SegmentWriter struct {
	app   string
	part  segment.PartID
	table *bigtable.Table
	bulk  *bulk
	cells []byte // of the rows that wait
}

// NewSegmentWriter returns a writer. The caller must call Flush at the end.
func (s Segments) NewSegmentWriter(ctx context.Context, app string, part segment.PartID) *SegmentWriter {
	return &SegmentWriter{app: app, part: part, table: s.segments(app), bulk: newBulk(ctx)}
}

// Write replaces a row. It keeps none of the cells.
func (w *SegmentWriter) Write(row segment.Row) error {
	key, family := segmentPartKey(w.app, SegmentRow{w.part, row.Kind, row.N}), familyPart
	switch row.Kind {
	case segment.List:
		key, family = segmentListKey(w.app, row.Facet, row.Value, w.part), familyPostings
	case segment.Bucket:
		family = familyPostings
	}
	m, size := bigtable.NewMutation(), 0
	m.DeleteCellsInFamily(family)
	now := bigtable.Now()
	if len(w.bulk.keys) == 0 {
		w.cells = w.cells[:0]
	}
	for _, c := range row.Cells {
		start := len(w.cells)
		w.cells = append(w.cells, c.Value...)
		m.Set(family, c.Column, now, w.cells[start:])
		size += len(c.Column) + len(c.Value)
	}
	if err := w.bulk.add(w.table, key, m, size); err != nil {
		return fmt.Errorf("write part %s of %s: %w", w.part, w.app, err)
	}
	return nil
}

// Flush writes the rows that wait.
func (w *SegmentWriter) Flush() error {
	if err := w.bulk.flush(); err != nil {
		return fmt.Errorf("write part %s of %s: %w", w.part, w.app, err)
	}
	return nil
}

// WriteSetOuts stores which users of older parts a delta sets out: sorted ordinals by part.
func (s Segments) WriteSetOuts(ctx context.Context, app string, delta segment.PartID,
	out map[segment.PartID][]uint16) error {
	row := segment.Row{Kind: segment.SetOuts}
	for part, ordinals := range out {
		row.Cells = append(row.Cells, segment.Cell{Column: part.String(), Value: segment.AppendOrdinals(nil, ordinals)})
	}
	w := s.Segments.NewSegmentWriter(ctx, app, delta)
	if err := w.Write(row); err != nil {
		return err
	}
	return w.Flush()
}

// ReadSetOuts reads what WriteSetOuts stored for some deltas: by delta, then older part.
func (s Segments) ReadSetOuts(ctx context.Context, app string,
	deltas []segment.PartID) (map[segment.PartID]map[segment.PartID][]uint16, error) {
	rows := make([]SegmentRow, len(deltas))
	for i, id := range deltas {
		rows[i] = SegmentRow{Part: id, Kind: segment.SetOuts}
	}
	found, err := s.Segments.ReadSegmentRows(ctx, app, rows)
	if err != nil {
		return nil, err
	}
	out := make(map[segment.PartID]map[segment.PartID][]uint16, len(found))
	for row, cells := range found {
		out[row.Part] = make(map[segment.PartID][]uint16, len(cells))
		for _, c := range cells {
			part, err := segment.ParsePartID(c.Column)
			if err == nil {
				out[row.Part][part], err = segment.ParseOrdinals(c.Value)
			}
			if err != nil {
				return nil, fmt.Errorf("read what delta %s of %s sets out: %w", row.Part, app, err)
			}
		}
	}
	return out, nil
}

func builtPrefix(app, generation string) string {
	return segmentPrefix(app, "f") + url.QueryEscape(generation) + ","
}

// WriteBuiltPart stores the description of a part of a generation that is being built,
// after all of its rows, in place of one that begins with the same user.
func (s Segments) WriteBuiltPart(ctx context.Context, app string, p segment.Part) error {
	value, err := segment.EncodePart(p)
	if err != nil {
		return err
	}
	return s.writeSegment(ctx, app, builtPrefix(app, p.Generation)+p.From, familyPart, columnSegmentPart, value)
}

// BuiltParts reads the descriptions of the parts of a generation, by From in the order of
// users.
func (s Segments) BuiltParts(ctx context.Context, app, generation string) ([]segment.Part, error) {
	var parts []segment.Part
	err := s.readSegments(ctx, app, bigtable.PrefixRange(builtPrefix(app, generation)),
		func(key string, cells []segment.Cell) error {
			p, err := segment.ParsePart(cells[0].Value)
			if err != nil {
				return fmt.Errorf("row %q: %w", key, err)
			}
			parts = append(parts, p)
			return nil
		}, newestCells)
	slices.SortFunc(parts, func(a, b segment.Part) int { return segment.TokenOrder(a.From, b.From) })
	return parts, err
}

// SegmentList asks for the lists of a term in some parts.
type SegmentList struct {
	Term      segment.Term
	Threshold segment.Order // lists need no lower Orders; segment.NoOrder: all
	Parts     []segment.Part
}

// ReadSegmentLists reads the lists of a term in parts without buckets: by part, the cells
// that can lie above the threshold. A part in which no cell can has no entry. The caller
// may keep the cells.
func (s Segments) ReadSegmentLists(ctx context.Context, app string,
	q SegmentList) (map[segment.PartID][]segment.Cell, error) {
	found := make(map[segment.PartID][]segment.Cell, len(q.Parts))
	// The columns depend on the instant of a part, by its number of half-lives: one request each.
	groups := map[[2]string]bigtable.RowList{}
	for _, p := range q.Parts {
		if p.Buckets > 0 {
			return nil, fmt.Errorf("read segments of %s: the lists of part %s are in buckets", app, p.ID)
		}
		from, end := segment.BandColumns(q.Term.HalfLife, q.Term.Decay, q.Threshold, p.Instant)
		columns := [2]string{from, end}
		groups[columns] = append(groups[columns], segmentListKey(app, q.Term.Facet, q.Term.Value, p.ID))
	}
	for columns, keys := range groups {
		filter := bigtable.RowFilter(bigtable.ChainFilters(bigtable.InterleaveFilters(
			bigtable.ColumnRangeFilter(familyPostings, columns[0], columns[1]),
			column(familyPostings, segment.SmallColumn)), bigtable.LatestNFilter(1)))
		err := s.readSegments(ctx, app, keys, func(key string, cells []segment.Cell) error {
			part, err := partOfList(key)
			found[part] = cells
			return err
		}, filter)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// SegmentRow names a row of a part with one number: of any kind but List.
type SegmentRow struct {
	Part segment.PartID
	Kind segment.Kind
	N    int
}

// ReadSegmentRows reads rows of parts. A row that does not exist has no entry. The caller
// may keep the cells.
func (s Segments) ReadSegmentRows(ctx context.Context, app string,
	rows []SegmentRow) (map[SegmentRow][]segment.Cell, error) {
	found := make(map[SegmentRow][]segment.Cell, len(rows))
	names := make(map[string]SegmentRow, len(rows))
	keys := make([]string, len(rows))
	for i, row := range rows {
		keys[i] = segmentPartKey(app, row)
		names[keys[i]] = row
	}
	for _, chunk := range keyChunks(keys, func(key string) string { return key }, map[string]string{}) {
		err := s.readSegments(ctx, app, chunk, func(key string, cells []segment.Cell) error {
			found[names[key]] = cells
			return nil
		}, newestCells)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ReadSegmentUntils reads the cells of the profiles of parts that expire up to the hour of
// an instant (ms).
func (s Segments) ReadSegmentUntils(ctx context.Context, app string, parts []segment.PartID,
	at int64) (map[segment.PartID][]segment.Cell, error) {
	found, keys := make(map[segment.PartID][]segment.Cell, len(parts)), make(bigtable.RowList, len(parts))
	names := make(map[string]segment.PartID, len(parts))
	for i, id := range parts {
		keys[i] = segmentPartKey(app, SegmentRow{Part: id, Kind: segment.Untils})
		names[keys[i]] = id
	}
	if len(keys) == 0 {
		return found, nil
	}
	err := s.readSegments(ctx, app, keys, func(key string, cells []segment.Cell) error {
		found[names[key]] = cells
		return nil
	}, bigtable.RowFilter(bigtable.ChainFilters(
		bigtable.ColumnRangeFilter(familyPart, "", segment.UntilColumn(at)+"\x00"), bigtable.LatestNFilter(1))))
	return found, err
}

// ScanSegmentValues passes the cells of the values of parts, in the order of the parts and
// of their filters.
func (s Segments) ScanSegmentValues(ctx context.Context, app string, parts []segment.PartID,
	fn func(part segment.PartID, cell []byte) error) error {
	for _, id := range parts {
		prefix := segmentPrefix(app, "p") + id.String() + "," + segmentKinds[segment.Values] + ","
		err := s.readSegments(ctx, app, bigtable.PrefixRange(prefix), func(_ string, cells []segment.Cell) error {
			return fn(id, cells[0].Value)
		}, newestCells)
		if err != nil {
			return err
		}
	}
	return nil
}

// partOfRow returns the part of a key behind its prefix, of a row that is no list.
func partOfRow(key, prefix string) (segment.PartID, error) {
	id, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), ",")
	return segment.ParsePartID(id)
}
