package query

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/store"
)

// rowCache reads rows of parts and keeps them, up to a number of bytes. It also keeps
// profiles of users who have changed: see evaluation.judge. Only the purge
// of a deleted user changes a row of a part: it takes a token away, of a user whom the list
// of changes sets out.
type rowCache struct {
	kept cache.Map[rowKey, kept]
}

// rowKey names what is kept: a row, the list of a filter under a half-life, or the
// profile of a user.
type rowKey struct {
	app, user    string
	row          store.SegmentRow
	facet, value string
	halfLife     int
	hour         int64 // of Untils
}

// kept is a row, parsed where it is used so.
type kept struct {
	cells  []segment.Cell
	from   segment.Order // of a list: it has no lower Orders
	index  segment.TokenIndex
	tokens segment.TokenRow
	bytes  int

	profile []byte             // of a user, as stored
	cut     store.ChangeSlot   // it counts what was listed before
	ticket  int64              // of the row when it was read
	holdout experiment.Holdout // of the app then
}

func newRowCache(bytes int) *rowCache {
	return &rowCache{cache.NewSized(bytes, func(k rowKey, v kept) int {
		return len(k.app) + len(k.user) + len(k.facet) + len(k.value) + v.bytes
	})}
}

// cellBytes is the size of cells.
func cellBytes(cells []segment.Cell) (n int) {
	for _, c := range cells {
		n += len(c.Column) + len(c.Value) + 40
	}
	return n
}

// read returns rows, of which parse makes what is kept.
func (c *rowCache) read(ctx context.Context, v *view, rows []store.SegmentRow,
	parse func([]segment.Cell) (kept, error)) (map[store.SegmentRow]kept, error) {
	app, found, missing := v.appID, make(map[store.SegmentRow]kept, len(rows)), []store.SegmentRow(nil)
	asked := map[store.SegmentRow]bool{}
	for _, row := range rows {
		if _, done := found[row]; done || asked[row] {
			continue
		}
		if v, ok := c.kept.Get(rowKey{app: app, row: row}); ok {
			found[row] = v
		} else {
			asked[row] = true
			missing = append(missing, row)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	cells, err := fromRooms(ctx, v, missing, func(row store.SegmentRow) segment.PartID { return row.Part },
		func(ctx context.Context, s *store.Store, rows []store.SegmentRow) (map[store.SegmentRow][]segment.Cell, error) {
			return s.Segments.ReadSegmentRows(ctx, app, rows)
		})
	if err != nil {
		return nil, err
	}
	for _, row := range missing {
		v, err := parse(cells[row])
		if err != nil {
			return nil, fmt.Errorf("part %s of app %s: %w", row.Part, app, err)
		}
		if err := admission.Take(ctx, int64(v.bytes)); err != nil {
			return nil, err
		}
		c.kept.Set(rowKey{app: app, row: row}, v)
		found[row] = v
	}
	return found, nil
}

// tokens returns rows of tokens.
func (c *rowCache) tokens(ctx context.Context, v *view,
	rows []store.SegmentRow) (map[store.SegmentRow]segment.TokenRow, error) {
	found, err := c.read(ctx, v, rows, func(cells []segment.Cell) (v kept, err error) {
		if v.tokens, err = segment.ParseTokens(only(cells)); err == nil {
			v.bytes = v.tokens.Size()
		}
		return v, err
	})
	if err != nil {
		return nil, err
	}
	tokens := make(map[store.SegmentRow]segment.TokenRow, len(found))
	for row, v := range found {
		tokens[row] = v.tokens
	}
	return tokens, nil
}

// only returns the value of a row of one cell.
func only(cells []segment.Cell) []byte {
	if len(cells) == 0 {
		return nil
	}
	return cells[0].Value
}

// indexes returns the index of each part's tokens.
func (c *rowCache) indexes(ctx context.Context, v *view) ([]segment.TokenIndex, error) {
	rows := make([]store.SegmentRow, len(v.parts))
	for i, p := range v.parts {
		rows[i] = store.SegmentRow{Part: p.ID, Kind: segment.Index}
	}
	found, err := c.read(ctx, v, rows, func(cells []segment.Cell) (v kept, err error) {
		if v.index, err = segment.ParseIndex(only(cells)); err == nil {
			v.bytes = v.index.Size()
		}
		return v, err
	})
	if err != nil {
		return nil, err
	}
	indexes := make([]segment.TokenIndex, len(rows))
	for i, row := range rows {
		indexes[i] = found[row].index
	}
	return indexes, nil
}

// expired returns, by part, the users whose profiles have expired at an instant.
func (c *rowCache) expired(ctx context.Context, v *view, at int64) ([][]uint16, error) {
	hour := at / time.Hour.Milliseconds()
	cells := make([][]segment.Cell, len(v.parts))
	key := func(p segment.Part) rowKey {
		return rowKey{app: v.appID, row: store.SegmentRow{Part: p.ID, Kind: segment.Untils}, hour: hour}
	}
	var missing []segment.PartID
	for i, p := range v.parts {
		if known, ok := c.kept.Get(key(p)); ok {
			cells[i] = known.cells
		} else {
			missing = append(missing, p.ID)
		}
	}
	if len(missing) > 0 {
		read, err := fromRooms(ctx, v, missing, func(id segment.PartID) segment.PartID { return id },
			func(ctx context.Context, s *store.Store, ids []segment.PartID) (map[segment.PartID][]segment.Cell, error) {
				return s.Segments.ReadSegmentUntils(ctx, v.appID, ids, at)
			})
		if err != nil {
			return nil, err
		}
		for i, p := range v.parts {
			if slices.Contains(missing, p.ID) {
				cells[i] = read[p.ID]
				c.kept.Set(key(p), kept{cells: cells[i], bytes: cellBytes(cells[i])})
			}
		}
	}
	expired := make([][]uint16, len(v.parts))
	for i := range v.parts {
		if err := segment.Expired(cells[i], at, func(ordinal uint16) {
			expired[i] = append(expired[i],
				ordinal)
		}); err != nil {
			return nil, fmt.Errorf("part %s of app %s: %w", v.parts[i].ID, v.appID, err)
		}
	}
	return expired, nil
}

// lists returns, by part and term, the cells that can lie above the term's threshold at
// an instant.
func (c *rowCache) lists(ctx context.Context, v *view, q *segment.Query, at int64) ([][][]segment.Cell, error) {
	lists := make([][][]segment.Cell, len(v.parts))
	for i := range lists {
		lists[i] = make([][]segment.Cell, len(q.Terms))
	}
	g, ctx := errgroup.WithContext(ctx)
	for t, term := range q.Terms {
		g.Go(func() error { return c.list(ctx, v, lists, t, term, q.Lists(t, at)) })
	}
	g.Go(func() error { return c.bucketed(ctx, v, q, lists) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return lists, nil
}

// list reads the lists of a term in the parts whose lists have rows of their own.
func (c *rowCache) list(ctx context.Context, v *view, lists [][][]segment.Cell, t int, term segment.Term,
	threshold segment.Order) error {
	key := func(p segment.Part) rowKey {
		return rowKey{app: v.appID, row: store.SegmentRow{Part: p.ID, Kind: segment.List}, facet: term.Facet,
			value: term.Value, halfLife: term.HalfLife}
	}
	var missing []segment.Part
	places := map[segment.PartID]int{}
	for i, p := range v.parts {
		if p.Buckets > 0 {
			continue
		}
		if known, ok := c.kept.Get(key(p)); ok && known.from <= threshold {
			lists[i][t] = known.cells
		} else {
			missing = append(missing, p)
			places[p.ID] = i
		}
	}
	if len(missing) == 0 {
		return nil
	}
	read, err := fromRooms(ctx, v, missing, func(p segment.Part) segment.PartID { return p.ID },
		func(ctx context.Context, s *store.Store, parts []segment.Part) (map[segment.PartID][]segment.Cell, error) {
			return s.Segments.ReadSegmentLists(ctx, v.appID,
				store.SegmentList{Term: term, Threshold: threshold, Parts: parts})
		})
	if err != nil {
		return err
	}
	for _, p := range missing {
		cells := read[p.ID]
		bytes := cellBytes(cells)
		if err := admission.Take(ctx, int64(bytes)); err != nil {
			return err
		}
		c.kept.Set(key(p), kept{cells: cells, from: threshold, bytes: bytes})
		lists[places[p.ID]][t] = cells
	}
	return nil
}

// bucketed reads the lists of all terms in the parts whose lists share rows.
func (c *rowCache) bucketed(ctx context.Context, v *view, q *segment.Query, lists [][][]segment.Cell) error {
	var rows []store.SegmentRow
	bucket := func(p segment.Part, term segment.Term) store.SegmentRow {
		return store.SegmentRow{Part: p.ID, Kind: segment.Bucket, N: segment.BucketOf(term.Facet, term.Value, p.Buckets)}
	}
	for _, p := range v.parts {
		if p.Buckets > 0 {
			for _, term := range q.Terms {
				rows = append(rows, bucket(p, term))
			}
		}
	}
	found, err := c.read(ctx, v, rows, func(cells []segment.Cell) (kept, error) {
		return kept{cells: cells, bytes: cellBytes(cells)}, nil
	})
	if err != nil {
		return err
	}
	for i, p := range v.parts {
		for t, term := range q.Terms {
			if p.Buckets == 0 {
				continue
			}
			cell := only(found[bucket(p, term)].cells)
			if cell == nil {
				continue
			}
			of, err := segment.Lists(cell, q.Terms[t:t+1])
			if err != nil {
				return fmt.Errorf("part %s of app %s: %w", p.ID, v.appID, err)
			}
			lists[i][t] = of[0]
		}
	}
	return nil
}
