package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/rank/segment"
)

// A purge that works in both regions while rows are copied may remove what it finds, and the
// copy may bring back what it has read before. The functions below remove that again. They
// are right when nobody copies any more, as long as the purges of the meantime have worked in both
// regions. They only remove, so that a purge beside them loses nothing.

// DropStaleRefused deletes samples of refused events from the copies of an app's rows that the
// region from, whose name is region, does not have. It leaves the copies of rows that from has
// no more: a purge leaves a row its counters, so that only a deletion of all rows, which
// follows, can have taken them.
func (s Rows) DropStaleRefused(ctx context.Context, from *Store, region string, r AppRows,
	progress func(rows int, last string) error) error {
	there, copied := map[string]bool{}, map[string]bool{} // copy, column and time of each sample; copies of rows
	sample := func(key string, c bigtable.ReadItem) string { return fmt.Sprint(key, " ", c.Column, " ", c.Timestamp) }
	err := from.readRefused(ctx, r.App, func(row bigtable.Row) bool {
		key := copiedKey(r, row.Key(), region)
		copied[key] = true
		for _, item := range row[familyRing] {
			there[sample(key, item)] = true
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("read refused events of %s: %w", r.App, err)
	}
	b, table, rows, last := newBulk(ctx), s.tables.named(r.App, r.Table), 0, ""
	var failed error
	err = s.readRefused(ctx, r.App, func(row bigtable.Row) bool {
		m, stale := bigtable.NewMutation(), false
		for _, item := range row[familyRing] {
			if !there[sample(row.Key(), item)] {
				m.DeleteTimestampRange(familyRing, strings.TrimPrefix(item.Column, familyRing+":"), item.Timestamp,
					item.Timestamp+1000)
				stale = true
			}
		}
		if rows, last = rows+1, row.Key(); stale && copied[last] {
			failed = b.add(table, last, m, 0)
		}
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		err = b.flush()
	}
	if err != nil {
		return fmt.Errorf("delete stale refused events of %s: %w", r.App, err)
	}
	if rows == 0 {
		return nil
	}
	return progress(rows, last)
}

// ScrubSegments blanks in the parts of an app's segments the tokens that are blanked in the
// region from. It calls progress as CopyRows does.
func (s Rows) ScrubSegments(ctx context.Context, from *Store, r AppRows,
	progress func(rows int, last string) error) error {
	c := segmentScrub{Store: s.db, from: from, app: r.App, indexes: map[segment.PartID]bool{}}
	prefix := segmentPrefix(r.App, "p")
	for first := max(prefix, r.After+"\x00"); ; {
		rows, last, err := c.page(ctx, first, prefixEnd(prefix))
		if err != nil {
			return fmt.Errorf("scrub segments of %s: %w", r.App, err)
		}
		if rows == 0 {
			return nil
		}
		if err := progress(rows, last); err != nil {
			return err
		}
		first = last + "\x00"
	}
}

type segmentScrub struct {
	*Store
	from *Store
	app  string
	// indexes says of the parts whether the index of tokens differs from that in the region from.
	indexes map[segment.PartID]bool
}

// rowsOfTokens are the keys of rows of tokens.
var rowsOfTokens = bigtable.RowFilter(bigtable.ChainFilters(bigtable.RowKeyFilter(`.*,t,[0-9a-f]+`),
	bigtable.LatestNFilter(1)))

// page scrubs rows of tokens from a key on. It returns their number and the last key.
func (c *segmentScrub) page(ctx context.Context, first, end string) (rows int, last string, err error) {
	there := map[SegmentRow][]byte{}
	var wanted []SegmentRow
	var damaged error
	err = c.from.segments(c.app).ReadRows(ctx, bigtable.NewRange(first, end), func(row bigtable.Row) bool {
		at := SegmentRow{Kind: segment.Tokens}
		if at.Part, damaged = partOfRow(row.Key(), segmentPrefix(c.app, "p")); damaged == nil {
			_, damaged = fmt.Sscanf(row.Key()[strings.LastIndexByte(row.Key(), ',')+1:], "%x", &at.N)
		}
		if rows, last = rows+1, row.Key(); damaged == nil && len(row[familyPart]) > 0 {
			there[at], wanted = row[familyPart][0].Value, append(wanted, at)
		}
		return damaged == nil
	}, rowsOfTokens, bigtable.LimitRows(copyPage))
	if err == nil {
		err = damaged
	}
	if err != nil {
		return rows, last, err
	}
	here, err := c.Segments.ReadSegmentRows(ctx, c.app, wanted)
	if err != nil {
		return rows, last, err
	}
	for _, at := range wanted {
		if len(here[at]) == 0 {
			continue
		}
		if err := c.row(ctx, at, here[at][0].Value, there[at]); err != nil {
			return rows, last, fmt.Errorf("part %s, row %d: %w", at.Part, at.N, err)
		}
	}
	return rows, last, nil
}

// row scrubs a row of tokens, and the place of the row in the index of its part.
func (c *segmentScrub) row(ctx context.Context, at SegmentRow, cell, there []byte) error {
	index := SegmentRow{Part: at.Part, Kind: segment.Index}
	differs, known := c.indexes[at.Part]
	if !known {
		own, err := c.Segments.ReadSegmentRows(ctx, c.app, []SegmentRow{index})
		if err != nil {
			return err
		}
		other, err := c.from.Segments.ReadSegmentRows(ctx, c.app, []SegmentRow{index})
		if err != nil {
			return err
		}
		differs = len(own[index]) > 0 && len(other[index]) > 0 && !bytes.Equal(own[index][0].Value, other[index][0].Value)
		c.indexes[at.Part] = differs
	}
	if bytes.Equal(cell, there) && !differs {
		return nil
	}
	gone, err := missingTokens(cell, there)
	if err != nil {
		return err
	}
	for _, token := range gone {
		if err := c.expireForEver(ctx, c.app, token, at); err != nil {
			return err
		}
		err := c.changeCell(ctx, c.app, at, func(cell []byte) ([]byte, error) {
			blanked, _, err := segment.Blank(cell, token)
			return blanked, err
		})
		if err != nil {
			return err
		}
	}
	now, err := c.Segments.ReadSegmentRows(ctx, c.app, []SegmentRow{at})
	if err != nil || len(now[at]) == 0 {
		return err
	}
	return c.changeCell(ctx, c.app, index, func(cell []byte) ([]byte,
		error) {
		return segment.BlankIndex(cell, at.N, now[at][0].Value)
	})
}

// missingTokens returns the tokens of a row of tokens that another form of the row lacks.
func missingTokens(cell, other []byte) ([]string, error) {
	row, err := segment.ParseTokens(cell)
	if err != nil {
		return nil, err
	}
	there, err := segment.ParseTokens(other)
	if err != nil {
		return nil, err
	}
	held := make(map[string]bool, there.Len())
	for i := range there.Len() {
		if token, ok := there.At(i); ok {
			held[token] = true
		}
	}
	var missing []string
	for i := range row.Len() {
		if token, ok := row.At(i); ok && !held[token] {
			missing = append(missing, token)
		}
	}
	return missing, nil
}
