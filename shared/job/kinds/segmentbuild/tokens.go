package segmentbuild

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// maxTokenRows is how many rows of tokens a delta reads at a time.
const maxTokenRows = 64

// tokens returns the tokens of users of a part who count in it: no newer part sets them
// out, and nobody has blanked them.
func (d *delta) tokens(ctx context.Context, p segment.Part, ordinals []uint16) (tokens []string, err error) {
	out := &segment.Set{}
	for _, of := range d.out {
		for _, o := range of[p.ID] {
			out.Add(o)
		}
	}
	byRow := map[int][]uint16{}
	for _, o := range ordinals {
		if !out.Has(o) {
			n := int(o) / segment.TokensPerRow
			byRow[n] = append(byRow[n], o)
		}
	}
	err = eachRow(ctx, d, p, byRow, func(row segment.TokenRow, n int) {
		for _, o := range byRow[n] {
			if token, ok := row.At(int(o) % segment.TokensPerRow); ok {
				tokens = append(tokens, token)
			}
		}
	})
	return tokens, err
}

// ordinals returns the places of users in a part, of those who are in it.
func (d *delta) ordinals(ctx context.Context, p segment.Part, users []string) (ordinals []uint16, err error) {
	if len(users) == 0 || p.Users == 0 {
		return nil, nil
	}
	index := store.SegmentRow{Part: p.ID, Kind: segment.Index}
	rows, err := d.storeOf(d.app).Segments.ReadSegmentRows(ctx, d.app.ID, []store.SegmentRow{index})
	if err != nil {
		return nil, err
	}
	if len(rows[index]) == 0 {
		return nil, fmt.Errorf("part %s of %s has no index of tokens", p.ID, d.app.ID)
	}
	x, err := segment.ParseIndex(rows[index][0].Value)
	if err != nil {
		return nil, err
	}
	byRow := map[int][]string{}
	for _, user := range users {
		if n := x.Row(user); n >= 0 {
			byRow[n] = append(byRow[n], user)
		}
	}
	err = eachRow(ctx, d, p, byRow, func(row segment.TokenRow, n int) {
		for _, user := range byRow[n] {
			if place, found := row.Find(user); found {
				ordinals = append(ordinals, uint16(n*segment.TokensPerRow+place))
			}
		}
	})
	return ordinals, err
}

// eachRow reads the rows of tokens of a part that are the keys of a map, in order.
func eachRow[T any](ctx context.Context, d *delta, p segment.Part, wanted map[int]T,
	fn func(row segment.TokenRow, n int)) error {
	for numbers := range slices.Chunk(slices.Sorted(maps.Keys(wanted)), maxTokenRows) {
		rows := make([]store.SegmentRow, len(numbers))
		for i, n := range numbers {
			rows[i] = store.SegmentRow{Part: p.ID, Kind: segment.Tokens, N: n}
		}
		cells, err := d.storeOf(d.app).Segments.ReadSegmentRows(ctx, d.app.ID, rows)
		if err != nil {
			return err
		}
		for i, n := range numbers {
			if len(cells[rows[i]]) == 0 {
				return fmt.Errorf("part %s of %s has no row %d of tokens", p.ID, d.app.ID, n)
			}
			row, err := segment.ParseTokens(cells[rows[i]][0].Value)
			if err != nil {
				return err
			}
			fn(row, n)
		}
	}
	return nil
}
