package profile

import (
	"context"
	"slices"

	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// completeKinds reads the originals of rows that do not tell their types and names,
// and adds the rows that score.
func (r *reading) completeKinds(ctx context.Context, all []*computation) error {
	unknown := make([][]candidate, len(all))
	var rows []*store.LogRow
	for i, u := range all {
		unwanted := func(c candidate) bool { return !u.newest.log.WantsTime(c.row.Time) }
		unknown[i] = slices.DeleteFunc(u.newest.unknown.Newest(), unwanted)
		rows = append(rows, rowsOf(unknown[i])...)
	}
	if err := r.logs.of(r.app).CompleteObjects(ctx, rows); err != nil {
		return err
	}
	for i, u := range all {
		u.addKinds(unknown[i])
		if n := len(unknown[i]); n > 0 && n == r.limits.sessionUnknown {
			if err := r.completeOlder(ctx, u, unknown[i][n-1].row.Pos); err != nil {
				return err
			}
		}
	}
	return nil
}

// completeOlder completes the kinds of rows before a position: there may be more
// than the reading has kept. It reads the log again, and keeps so many rows at once.
func (r *reading) completeOlder(ctx context.Context, u *computation, before history.Pos) error {
	found := u.newest.log
	if !found.WantsTime(before.Time) {
		return nil
	}
	log, scorer := r.logs.of(r.app), store.NewLogScorer(r.compiled)
	var batch []candidate
	complete := func() error {
		err := log.CompleteObjects(ctx, rowsOf(batch))
		if err == nil {
			u.addKinds(batch)
		}
		batch = batch[:0]
		return err
	}
	add := func(_ string, row store.LogRow) error {
		if _, known := scorer.Kind(row, u.scorer); known || !found.WantsTime(row.Time) {
			return nil
		}
		if batch = append(batch, candidate{row: row, again: true}); len(batch) < r.limits.sessionUnknown {
			return nil
		}
		return complete()
	}
	// The columns that the first reading asked for: with others, a row whose kind it
	// knew could count a second time.
	read := func(ranges []store.UserRange) error { return log.ReadWithObjects(ctx, ranges, r.compiled, add) }
	readGaps := read
	if r.why == forRefresh {
		readGaps = func(ranges []store.UserRange) error { return log.Read(ctx, ranges, add) }
	}
	if err := readGaps(preceding(r.ranges, u.token, before)); err != nil {
		return err
	}
	older := *r
	if older.sifted = preceding(r.sifted, u.token, before); len(older.sifted) > 0 {
		var err error
		if failed := older.readSifted(ctx, func(token string, row store.LogRow) {
			if err == nil {
				err = add(token, row)
			}
		}); failed != nil {
			err = failed
		}
		if err != nil {
			return err
		}
	}
	if err := read(preceding(u.newest.parts, u.token, before)); err != nil {
		return err
	}
	return complete()
}

// preceding returns the parts of a user's ranges before a position.
func preceding(ranges []store.UserRange, user string, before history.Pos) []store.UserRange {
	var parts []store.UserRange
	for _, part := range ranges {
		if part.User == user && part.From.Compare(before) < 0 {
			if part.To.Compare(before) > 0 {
				part.To = before
			}
			parts = append(parts, part)
		}
	}
	return parts
}

// addKinds adds completed rows whose types and names score.
func (u *computation) addKinds(rows []candidate) {
	for _, c := range rows {
		if o, _ := c.row.Objects(); u.newest.log.Wants(c.row.Time, string(o.Type), o.Name) {
			u.newest.log.Add(c.row.Time, c.row.ID, 0, c)
		}
	}
}
