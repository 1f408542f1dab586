package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"
)

// While an app moves, clients change its catalog in both regions. A copy must lose to what
// they write, before or after, so its cells have the oldest time that there is. A copy that
// was read before an object was deleted, and written afterwards, brings it back in the new
// region alone. DropStaleCopies removes it again, once no copier runs any more.
const copyTime = bigtable.Timestamp(1000)

// copyPage is how many rows are read at a time.
const copyPage = 500

// keysPage is how many rows' keys are read at a time, without their values. A verification has
// no checkpoint: with so many a task of ten minutes compares tens of millions of rows, each
// page with two requests.
const keysPage = 10_000

// isCatalog reports whether clients change the rows of a table in both regions while an app
// moves.
func isCatalog(table string) bool { return table == TableObjects || table == TableDated }

// copiedKey returns the key of the copy of a row. Processes add to counters in one region
// at a time, and readers sum up the rows of a day. So a copy of counters gets a row of its
// own, and a second copy replaces the first one.
func copiedKey(r AppRows, key, from string) string {
	if r.Table == TableRefused || r.Table == TableUsage && key != usageKeysKey(r.App) {
		return key + "~" + from
	}
	return key
}

// CopyRows copies a range of an app's rows from another region, whose name is region. A
// second copy changes what has changed. After each request it calls progress with the
// number of rows and the key of the last one that it has read, and returns the error that
// progress returns.
func (s Rows) CopyRows(ctx context.Context, from *Store, region string, r AppRows,
	progress func(rows int, last string) error) error {
	source, to, options := from.tables.named(r.App, r.Table), s.tables.named(r.App, r.Table),
		[]bigtable.ReadOption{bigtable.LimitRows(copyPage)}
	if isCatalog(r.Table) {
		options = append(options, newestCells)
	}
	for {
		within, ok := r.set()
		if !ok {
			return nil
		}
		b, rows := newBulk(ctx), 0
		var failed error
		err := source.ReadRows(ctx, within, func(row bigtable.Row) bool {
			m, size := copyAsIs(row, r.Table)
			rows, r.After = rows+1, row.Key()
			failed = b.add(to, copiedKey(r, row.Key(), region), m, size)
			return failed == nil
		}, options...)
		if err := errors.Join(err, failed); err != nil {
			return fmt.Errorf("copy rows of app %s in %s: %w", r.App, r.Table, err)
		}
		if err := b.flush(); err != nil {
			return fmt.Errorf("copy rows of app %s in %s: %w", r.App, r.Table, err)
		}
		if rows == 0 {
			return nil
		}
		if err := progress(rows, r.After); err != nil {
			return err
		}
	}
}

// copyAsIs returns a mutation that writes the cells of a row of a table, at their times or, in
// the catalog, at copyTime. Samples of refused events replace those of an earlier copy, which
// would count again when a purge removes the newest cell of a slot.
func copyAsIs(row bigtable.Row, table string) (*bigtable.Mutation, int) {
	m, size, behind := bigtable.NewMutation(), 0, isCatalog(table)
	if table == TableRefused {
		m.DeleteCellsInFamily(familyRing)
	}
	for family, items := range row {
		for _, item := range items {
			at := item.Timestamp
			if behind {
				at = copyTime
			}
			m.Set(family, strings.TrimPrefix(item.Column, family+":"), at, item.Value)
			size += len(item.Column) + len(item.Value)
		}
	}
	return m, size
}

// DropStaleCopies deletes from a range of an app's rows what the region from does not
// have: rows, or in the catalog copies. It is right as soon as nobody copies any more. It calls
// progress as CopyRows does.
func (s Rows) DropStaleCopies(ctx context.Context, from *Store, r AppRows,
	progress func(rows int, last string) error) error {
	table, source := s.tables.named(r.App, r.Table), from.tables.named(r.App, r.Table)
	for {
		within, ok := r.set()
		if !ok {
			return nil
		}
		var found []bigtable.Row
		err := table.ReadRows(ctx, within, func(row bigtable.Row) bool {
			found, r.After = append(found, row), row.Key()
			return true
		}, bigtable.LimitRows(copyPage), bigtable.RowFilter(bigtable.StripValueFilter()))
		if err != nil {
			return fmt.Errorf("read the rows of app %s in %s: %w", r.App, r.Table, err)
		}
		if len(found) == 0 {
			return nil
		}
		there, err := keysWithin(ctx, source, found[0].Key(), r.After)
		if err != nil {
			return fmt.Errorf("read the rows of app %s in %s: %w", r.App, r.Table, err)
		}
		b := newBulk(ctx)
		for _, row := range found {
			m := staleCopy(row, there[row.Key()], isCatalog(r.Table))
			if m == nil {
				continue
			}
			if err := b.add(table, row.Key(), m, 0); err != nil {
				return fmt.Errorf("delete rows of app %s in %s: %w", r.App, r.Table, err)
			}
		}
		if err := b.flush(); err != nil {
			return fmt.Errorf("delete rows of app %s in %s: %w", r.App, r.Table, err)
		}
		if err := progress(len(found), r.After); err != nil {
			return err
		}
	}
}

// staleCopy returns a mutation that deletes what is stale of a row, nil if nothing is: all
// of a row that the other region lacks. Of the catalog, only copies are deleted: where a
// client has written the row in between, too, because its cells replace them.
func staleCopy(row bigtable.Row, there, catalog bool) *bigtable.Mutation {
	m, stale := bigtable.NewMutation(), false
	if !catalog {
		if there {
			return nil
		}
		m.DeleteRow()
		return m
	}
	copied, written := []string(nil), false
	for _, item := range row[familyObject] {
		if item.Timestamp == copyTime {
			copied = append(copied, strings.TrimPrefix(item.Column, familyObject+":"))
		} else {
			written = true
		}
	}
	for _, column := range copied {
		if !there || written {
			m.DeleteTimestampRange(familyObject, column, copyTime, copyTime+1000)
			stale = true
		}
	}
	if !stale {
		return nil
	}
	return m
}

// MissingRows reads some rows of a range in the region from, and returns the keys of those that
// this region lacks, and the last key that it has read; "" at the end of the range. A row that is
// deleted or written at that time may be among them: StillMissing tells.
func (s Rows) MissingRows(ctx context.Context, from *Store, r AppRows) (missing []string, last string, err error) {
	within, ok := r.set()
	if !ok {
		return nil, "", nil
	}
	keys, err := scanKeys(ctx, from.tables.named(r.App, r.Table), within, keysPage)
	if err != nil {
		return nil, "", fmt.Errorf("read the rows of app %s in %s: %w", r.App, r.Table, err)
	}
	if len(keys) == 0 {
		return nil, "", nil
	}
	last = keys[len(keys)-1]
	here, err := keysWithin(ctx, s.tables.named(r.App, r.Table), keys[0], last)
	if err != nil {
		return nil, "", fmt.Errorf("read the rows of app %s in %s: %w", r.App, r.Table, err)
	}
	for _, key := range keys {
		if !here[key] {
			missing = append(missing, key)
		}
	}
	return missing, last, nil
}

// StillMissing returns how many rows of an app the region from has and this one lacks, of
// those with the given keys.
func (s Rows) StillMissing(ctx context.Context, from *Store, app, table string, keys []string) (int, error) {
	missing := 0
	for some := range slices.Chunk(keys, copyPage) {
		there, err := keysOf(ctx, from.tables.named(app, table), bigtable.RowList(some))
		if err != nil {
			return missing, fmt.Errorf("read the rows of app %s in %s: %w", app, table, err)
		}
		here, err := keysOf(ctx, s.tables.named(app, table), bigtable.RowList(some))
		if err != nil {
			return missing, fmt.Errorf("read the rows of app %s in %s: %w", app, table, err)
		}
		for key := range there {
			if !here[key] {
				missing++
			}
		}
	}
	return missing, nil
}

// keysWithin returns the keys of a table from one to another, both included.
func keysWithin(ctx context.Context, table *bigtable.Table, first, last string) (map[string]bool, error) {
	return keysOf(ctx, table, bigtable.NewRange(first, last+"\x00"))
}

// keysOf returns the keys of those rows of a set that a table has.
func keysOf(ctx context.Context, table *bigtable.Table, rows bigtable.RowSet) (map[string]bool, error) {
	found := map[string]bool{}
	err := table.ReadRows(ctx, rows, func(row bigtable.Row) bool {
		found[row.Key()] = true
		return true
	}, keysOnly)
	return found, err
}
