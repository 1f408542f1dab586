package store

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"
)

// Every row that belongs to an app has a key that begins with the app's id and a
// comma, in every table. No id contains a comma, so the rows of an app are those of
// one range, whatever other ids begin with it.

// AppRows is a range of an app's rows in one table: those behind After, and from
// From to To, which are user tokens or empty.
type AppRows struct {
	App, Table string
	From, To   string
	After      string // a key
	// Except leaves out the rows whose keys begin with it, behind the app's id and the comma.
	Except string
}

// set returns the keys of the range, false if there are none. Ranges with one's To as the
// other's From meet without a gap, in tables of any keys.
func (r AppRows) set() (bigtable.RowRangeList, bool) {
	first, end := r.App+",", prefixEnd(r.App+",")
	if r.From != "" {
		first = userKey(r.App, r.From)
	}
	if r.To != "" {
		end = userKey(r.App, r.To)
	}
	if r.After >= first {
		first = r.After + "\x00"
	}
	if r.Except == "" {
		return bigtable.RowRangeList{bigtable.NewRange(first, end)}, first < end
	}
	var ranges bigtable.RowRangeList
	except := r.App + "," + r.Except
	for _, part := range [][2]string{{first, min(end, except)}, {max(first, prefixEnd(except)), end}} {
		if part[0] < part[1] {
			ranges = append(ranges, bigtable.NewRange(part[0], part[1]))
		}
	}
	return ranges, len(ranges) > 0
}

// DeleteRows deletes the rows of a range. After each request that deletes some it
// calls progress with their number and the last of their keys, and returns the
// error that progress returns. A store of several regions deletes them in each. It calls progress without a key, which
// may name a user of any region; a caller that goes on looks at all once more.
func (s Rows) DeleteRows(ctx context.Context, r AppRows, progress func(rows int, last string) error) error {
	if all := s.tables.router; all != nil {
		r.After = ""
		return all.all(func(s *Store) error {
			return s.Rows.DeleteRows(ctx, r, func(rows int, _ string) error { return progress(rows, "") })
		})
	}
	table := s.tables.named(r.App, r.Table)
	for {
		rows, ok := r.set()
		if !ok {
			return nil
		}
		keys, err := scanKeys(ctx, table, rows, bulkRows)
		if err != nil {
			return fmt.Errorf("read the rows of app %s in %s: %w", r.App, r.Table, err)
		}
		if len(keys) == 0 {
			return nil
		}
		if err := deleteKeys(ctx, table, keys); err != nil {
			return fmt.Errorf("delete rows of app %s in %s: %w", r.App, r.Table, err)
		}
		r.After = keys[len(keys)-1]
		if err := progress(len(keys), r.After); err != nil {
			return err
		}
	}
}

// FindRows returns the keys of the first rows of a range, at most limit. A store of several
// regions looks in each.
func (s Rows) FindRows(ctx context.Context, r AppRows, limit int) ([]string, error) {
	if all := s.tables.router; all != nil {
		var found []string
		err := all.all(func(s *Store) error {
			keys, err := s.Rows.FindRows(ctx, r, limit)
			found = append(found, keys...)
			return err
		})
		return found[:min(limit, len(found))], err
	}
	rows, ok := r.set()
	if !ok {
		return nil, nil
	}
	keys, err := scanKeys(ctx, s.tables.named(r.App, r.Table), rows, limit)
	if err != nil {
		return nil, fmt.Errorf("read the rows of app %s in %s: %w", r.App, r.Table, err)
	}
	return keys, nil
}

// deleteKeys deletes rows.
func deleteKeys(ctx context.Context, table *bigtable.Table, keys []string) error {
	b, m := newBulk(ctx), deletion()
	for _, key := range keys {
		if err := b.add(table, key, m, 0); err != nil {
			return err
		}
	}
	return b.flush()
}

// scanKeys returns the keys of rows, at most limit.
func scanKeys(ctx context.Context, table *bigtable.Table, rows bigtable.RowSet, limit int) ([]string, error) {
	var keys []string
	err := table.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		keys = append(keys, r.Key())
		return true
	}, bigtable.LimitRows(int64(limit)), keysOnly)
	return keys, err
}
