package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// BlankSegmentToken takes a user's token out of the parts of the app's manifest that have
// it. Ordinals stay. It returns the number of parts that had it.
func (s Segments) BlankSegmentToken(ctx context.Context, app, user string) (int, error) {
	most := 0
	err := s.everywhere(app, func(s *Store) error {
		blanked, err := s.blankToken(ctx, app, user)
		most = max(most, blanked)
		return err
	})
	return most, err
}

func (s *Store) blankToken(ctx context.Context, app, user string) (int, error) {
	m, err := s.Segments.ReadSegmentManifest(ctx, app)
	if err != nil {
		return 0, err
	}
	var indexes []SegmentRow
	for _, p := range m.Parts {
		if p.Delta || p.Covers(user) {
			indexes = append(indexes, SegmentRow{Part: p.ID, Kind: segment.Index})
		}
	}
	found, err := s.Segments.ReadSegmentRows(ctx, app, indexes)
	if err != nil {
		return 0, err
	}
	blanked := 0
	for row, cells := range found {
		had, err := s.blankInPart(ctx, app, user, row, cells[0].Value)
		if err != nil {
			return blanked, fmt.Errorf("blank a token in part %s of %s: %w", row.Part, app, err)
		}
		if had {
			blanked++
		}
	}
	return blanked, nil
}

// blankInPart blanks a token in the row of tokens that has it, then in the index of the
// part. A call after one that failed between the two finds the row blanked, and the index
// still to do.
func (s *Store) blankInPart(ctx context.Context, app, user string, index SegmentRow, cell []byte) (bool, error) {
	x, err := segment.ParseIndex(cell)
	if err != nil {
		return false, err
	}
	n := x.Row(user)
	if n < 0 {
		return false, nil
	}
	at := SegmentRow{Part: index.Part, Kind: segment.Tokens, N: n}
	if err := s.expireForEver(ctx, app, user, at); err != nil {
		return false, err
	}
	var had bool
	var tokens []byte
	err = s.changeCell(ctx, app, at, func(cell []byte) ([]byte, error) {
		blanked, found, err := segment.Blank(cell, user)
		tokens, had = blanked, had || found
		return blanked, err
	})
	if err != nil || tokens == nil {
		return false, err
	}
	return had, s.changeCell(ctx, app, index,
		func(cell []byte) ([]byte, error) { return segment.BlankIndex(cell, n, tokens) })
}

// expireForEver makes queries leave out a user whose token, in a row of tokens, is about
// to be blanked.
func (s *Store) expireForEver(ctx context.Context, app, user string, at SegmentRow) error {
	found, err := s.Segments.ReadSegmentRows(ctx, app, []SegmentRow{at})
	if err != nil || len(found[at]) == 0 {
		return err
	}
	row, err := segment.ParseTokens(found[at][0].Value)
	if err != nil {
		return err
	}
	place, is := row.Find(user)
	if !is {
		return nil
	}
	gone := segment.GoneCell(uint16(at.N*segment.TokensPerRow + place))
	key := segmentPartKey(app, SegmentRow{Part: at.Part, Kind: segment.Untils})
	return s.writeSegment(ctx, app, key, familyPart, gone.Column, gone.Value)
}

// changeCell replaces the cell of a row of a part by what change makes of it. Other
// changes may take place at the same time: each is made of what the one before left.
func (s *Store) changeCell(ctx context.Context, app string, row SegmentRow, change func([]byte) ([]byte, error)) error {
	for {
		found, err := s.Segments.ReadSegmentRows(ctx, app, []SegmentRow{row})
		if err != nil || len(found[row]) == 0 {
			return err
		}
		was := found[row][0].Value
		value, err := change(was)
		if err != nil || bytes.Equal(value, was) {
			return err
		}
		m := bigtable.NewMutation()
		m.DeleteCellsInColumn(familyPart, "") // a superseded cell would still hold the token
		m.Set(familyPart, "", bigtable.ServerTime, value)
		same := bigtable.ChainFilters(column(familyPart, ""), bigtable.LatestNFilter(1),
			bigtable.ValueRangeFilter(was, append(bytes.Clone(was), 0)))
		var matched bool
		err = retryAtomic(ctx, func() error {
			return s.segments(app).Apply(ctx, segmentPartKey(app, row), bigtable.NewCondMutation(same, m, nil),
				bigtable.GetCondMutationResult(&matched))
		})
		if err != nil {
			return fmt.Errorf("change row %04x of part %s: %w", row.N, row.Part, err)
		}
	}
}

// DropSegmentParts deletes the rows of the parts of an app that obsolete selects, and the
// descriptions of such parts of generations.
func (s Segments) DropSegmentParts(ctx context.Context, app string, obsolete func(segment.PartID) bool) error {
	lists, parts := segmentPrefix(app, "v"), segmentPrefix(app, "p")
	err := errors.Join(
		s.dropSegments(ctx, app, lists, keysOnly, func(key string, _ []byte) (bool, error) {
			part, err := partOfList(key)
			return err == nil && obsolete(part), err
		}),
		s.dropSegments(ctx, app, parts, keysOnly, func(key string, _ []byte) (bool, error) {
			part, err := partOfRow(key, parts)
			return err == nil && obsolete(part), err
		}),
		s.dropSegments(ctx, app, segmentPrefix(app, "f"), newestCells, func(_ string, cell []byte) (bool, error) {
			p, err := segment.ParsePart(cell)
			return err == nil && obsolete(p.ID), err
		}))
	if err != nil {
		return fmt.Errorf("drop parts of segments of %s: %w", app, err)
	}
	return nil
}

// dropSegments deletes the rows with a prefix that drop selects by key and first cell. A row
// that drop cannot read stays.
func (s *Store) dropSegments(ctx context.Context, app, prefix string, read bigtable.ReadOption,
	drop func(key string, cell []byte) (bool, error)) error {
	b, table := newBulk(ctx), s.segments(app)
	m := bigtable.NewMutation()
	m.DeleteRow()
	var unread error
	err := s.readRows(ctx, table, bigtable.PrefixRange(prefix), func(r *rowstream.Row) error {
		key := string(r.Key)
		dropped, err := drop(key, r.Cells[0].Value)
		if err != nil {
			unread = fmt.Errorf("row %q: %w", key, err)
		}
		if !dropped {
			return nil
		}
		return b.add(table, key, m, 0)
	}, read)
	return errors.Join(err, b.flush(), unread)
}
