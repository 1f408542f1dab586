package query

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// overlay sets out the users whom the lists do not describe, and returns their tokens:
// who changed since their part was cut, whose profile has expired, and whose profile is
// of an instant to come. It fails if there are more than most.
func (e *evaluation) overlay(ctx context.Context, most int) ([]string, error) {
	var changed []string
	var expired [][]uint16
	g, within := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		changed, err = e.changed(within, most)
		return err
	})
	g.Go(func() (err error) {
		expired, err = e.rows.expired(within, e.view, e.at)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	e.out = make([]*segment.Set, len(e.parts))
	for i, ordinals := range e.setOut {
		e.out[i] = &segment.Set{}
		for _, o := range ordinals {
			e.out[i].Add(o)
		}
	}
	places, err := e.find(ctx, changed)
	if err != nil {
		return nil, err
	}
	for _, of := range places {
		for _, p := range of {
			e.out[p.part].Add(p.ordinal)
		}
	}
	unnamed := e.setOutExpired(expired)
	n := len(changed) + len(unnamed)
	if n > most {
		return nil, e.tooMany(ctx, most)
	}
	if n > UpdateFrom {
		e.update(ctx, e.view)
	}
	tokens, err := e.tokensAt(ctx, unnamed)
	if err != nil {
		return nil, err
	}
	for _, token := range tokens {
		if token != "" {
			changed = append(changed, token)
		}
	}
	return changed, nil
}

// setOutExpired sets out the users, by part, whose profiles have expired, and those whose
// profiles are of an instant to come. It returns those whom nothing has set out before.
func (e *evaluation) setOutExpired(expired [][]uint16) []position {
	var users []position
	for i, p := range e.parts {
		for _, a := range p.Ahead {
			if e.at < a.Until {
				expired[i] = append(expired[i], a.Ordinal)
			}
		}
		for _, o := range expired[i] {
			if !e.out[i].Has(o) {
				e.out[i].Add(o)
				users = append(users, position{i, o})
			}
		}
	}
	return users
}

// changed returns the users who are listed since their part was cut, in any room.
func (e *evaluation) changed(ctx context.Context, most int) ([]string, error) {
	listed, more := make([]map[string]store.ChangeSlot, len(e.rooms)), make([]bool, len(e.rooms))
	// Of parts that were cut at different times, the list names some users too many.
	err := atOnce(ctx, len(e.rooms), func(ctx context.Context, i int) (err error) {
		listed[i], more[i], err = e.rooms[i].store.Changes.List(ctx, e.appID, e.rooms[i].since, 2*most)
		return err
	})
	if err != nil {
		return nil, err
	}
	if slices.Contains(more, true) {
		return nil, e.tooMany(ctx, most)
	}
	e.listed = listed[0]
	var changed []string
	for i, of := range listed {
		for user, slot := range of {
			if slot >= e.rooms[i].cut(user) {
				changed = append(changed, user)
			}
			if i > 0 {
				e.listed[user] = max(e.listed[user], slot)
			}
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed), nil
}

// find returns the places of users in all parts that have them.
func (e *evaluation) find(ctx context.Context, users []string) (map[string][]position, error) {
	found := make(map[string][]position, len(users))
	var unknown []string
	e.view.mu.Lock()
	for _, user := range users {
		if places, known := e.places[user]; known {
			found[user] = places
		} else {
			unknown = append(unknown, user)
		}
	}
	e.view.mu.Unlock()
	if len(unknown) == 0 {
		return found, nil
	}
	if err := e.search(ctx, unknown, found); err != nil {
		return nil, err
	}
	e.view.mu.Lock()
	defer e.view.mu.Unlock()
	if len(e.places)+len(unknown) > maxPlaces {
		clear(e.places)
	}
	for _, user := range unknown {
		e.places[user] = found[user]
	}
	return found, nil
}

// search looks users up in the rows of tokens.
func (e *evaluation) search(ctx context.Context, users []string, found map[string][]position) error {
	indexes, err := e.rows.indexes(ctx, e.view)
	if err != nil {
		return err
	}
	type candidate struct {
		user string
		part int
		row  store.SegmentRow
	}
	var candidates []candidate
	var rows []store.SegmentRow
	for _, user := range users {
		for i, p := range e.parts {
			if !p.Delta && !p.Covers(user) {
				continue
			}
			if n := indexes[i].Row(user); n >= 0 {
				row := store.SegmentRow{Part: p.ID, Kind: segment.Tokens, N: n}
				candidates, rows = append(candidates, candidate{user, i, row}), append(rows, row)
			}
		}
	}
	tokens, err := e.rows.tokens(ctx, e.view, rows)
	if err != nil {
		return err
	}
	for _, c := range candidates {
		if place, is := tokens[c.row].Find(c.user); is {
			found[c.user] = append(found[c.user], position{c.part, uint16(c.row.N*segment.TokensPerRow + place)})
		}
	}
	return nil
}

// ordinalsAfter returns, by part, the first user whose token follows that of a cursor.
func (e *evaluation) ordinalsAfter(ctx context.Context, after *segment.Cursor) ([]int, error) {
	from := make([]int, len(e.parts))
	if after == nil {
		return from, nil
	}
	indexes, err := e.rows.indexes(ctx, e.view)
	if err != nil {
		return nil, err
	}
	for i, p := range e.parts {
		n := indexes[i].Row(after.Token)
		if n < 0 {
			continue // all its tokens follow
		}
		row := store.SegmentRow{Part: p.ID, Kind: segment.Tokens, N: n}
		rows, err := e.rows.tokens(ctx, e.view, []store.SegmentRow{row})
		if err != nil {
			return nil, err
		}
		place, is := rows[row].Find(after.Token)
		if from[i] = n*segment.TokensPerRow + place; is {
			from[i]++
		}
	}
	return from, nil
}

// tokens returns the tokens of users of a part, "" for one that is blanked.
func (e *evaluation) tokens(ctx context.Context, part int, ordinals []uint16) ([]string, error) {
	wanted := make([]position, len(ordinals))
	for i, o := range ordinals {
		wanted[i] = position{part, o}
	}
	found, err := e.tokensAt(ctx, wanted)
	if err != nil {
		return nil, err
	}
	tokens := make([]string, len(ordinals))
	for i, p := range wanted {
		tokens[i] = found[p]
	}
	return tokens, nil
}

// tokensAt returns the tokens of users, "" for one that is blanked.
func (e *evaluation) tokensAt(ctx context.Context, users []position) (map[position]string, error) {
	rows := make([]store.SegmentRow, len(users))
	for i, u := range users {
		rows[i] = store.SegmentRow{Part: e.parts[u.part].ID, Kind: segment.Tokens, N: int(u.ordinal) / segment.TokensPerRow}
	}
	tokens, err := e.rows.tokens(ctx, e.view, rows)
	if err != nil {
		return nil, err
	}
	found := make(map[position]string, len(users))
	for i, u := range users {
		found[u], _ = tokens[rows[i]].At(int(u.ordinal) % segment.TokensPerRow)
	}
	return found, nil
}
