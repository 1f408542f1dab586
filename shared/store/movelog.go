package store

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/schema"
)

// CopyLogFrom copies a user's events from the log in another region, in the schemas of the
// layout. A copy stands behind what writers append, before or after: see Log.Copy. So they
// may write to both regions in the meantime. A second run writes the same cells. It returns
// the number of rows.
func (s *Store) CopyLogFrom(ctx context.Context, from *Store, app string, l schema.Layout, user string) (int, error) {
	copied := 0
	for _, n := range from.Log(app, l).written() {
		rows, err := s.copyRows(ctx, from, app, n, user)
		copied = max(copied, rows)
		if err != nil {
			return copied, fmt.Errorf("copy log of %s,%s, %s: %w", app, user, n, err)
		}
	}
	return copied, nil
}

func (s *Store) copyRows(ctx context.Context, from *Store, app string, n schema.Name, user string) (int, error) {
	b, to, rows := newBulk(ctx), s.tables.of(app, user).logs[n], 0
	var failed error
	err := from.tables.of(app, user).logs[n].ReadRows(ctx, bigtable.PrefixRange(userKey(app, user)), func(r bigtable.Row) bool {
		rows++
		m, size := copyOf(r)
		failed = b.add(to, r.Key(), m, size)
		return failed == nil
	})
	if err := errors.Join(err, failed); err != nil {
		return rows, err
	}
	return rows, b.flush()
}

// copyOf returns a mutation that writes the cells of a row of the log that count, a
// millisecond older than the event. That of the objects keeps its time, which is the
// receipt.
func copyOf(r bigtable.Row) (*bigtable.Mutation, int) {
	m, size := bigtable.NewMutation(), 0
	cells, at := countedCells(r), bigtable.Timestamp(0)
	if _, _, ms, _, err := parseLogKey(r.Key()); err == nil {
		at = bigtable.Timestamp(max(ms-1, 0) * 1000)
	}
	for column, c := range cells {
		time := at
		if column == familyOriginal+":"+columnObjects {
			time = c.Timestamp
		}
		family, qualifier := cutColumn(c)
		m.Set(family, qualifier, time, c.Value)
		size += len(column) + len(c.Value)
	}
	return m, size
}

// countedCells returns the cells of a row of the log that count, by column: the newest of
// the objects, and all others of the newest time.
func countedCells(r bigtable.Row) map[string]bigtable.ReadItem {
	newest := bigtable.Timestamp(-1)
	for family, items := range r {
		for _, item := range items {
			if family != familyOriginal || !isObjects(item) {
				newest = max(newest, item.Timestamp)
			}
		}
	}
	counted := map[string]bigtable.ReadItem{}
	for family, items := range r {
		for _, item := range items {
			objects := family == familyOriginal && isObjects(item)
			if old, seen := counted[item.Column]; objects && (!seen || item.Timestamp > old.Timestamp) || !objects && item.Timestamp == newest {
				counted[item.Column] = item
			}
		}
	}
	return counted
}

// MissingInLog returns the positions of a user's events, from a position on, that the log
// in another region holds and this one lacks.
func (s *Store) MissingInLog(ctx context.Context, from *Store, app string, l schema.Layout, user string, first history.Pos) ([]history.Pos, error) {
	there, err := from.positions(ctx, app, l.Read, user, first)
	if err != nil {
		return nil, err
	}
	here, err := s.positions(ctx, app, l.Read, user, first)
	if err != nil {
		return nil, err
	}
	var missing []history.Pos
	for p := range there {
		if !here[p] {
			missing = append(missing, p)
		}
	}
	return missing, nil
}

func (s *Store) positions(ctx context.Context, app string, n schema.Name, user string, first history.Pos) (map[history.Pos]bool, error) {
	found := map[history.Pos]bool{}
	rows := bigtable.NewRange(logKey(app, user, first.Time, first.ID), prefixEnd(userKey(app, user)))
	err := s.tables.of(app, user).logs[n].ReadRows(ctx, rows, func(r bigtable.Row) bool {
		if _, _, ms, id, err := parseLogKey(r.Key()); err == nil {
			found[history.Pos{Time: ms, ID: id}] = true
		}
		return true
	}, keysOnly)
	if err != nil {
		return nil, fmt.Errorf("list log of %s,%s, %s: %w", app, user, n, err)
	}
	return found, nil
}

// LeaveUser deletes what a region holds of a user who has moved away, but for who owns them
// now: events, blocks, and the rest of their row. The caller knows that nobody reads or
// writes these any more.
func (s *Store) LeaveUser(ctx context.Context, app, user string) error {
	for _, n := range schema.Names {
		l := s.Log(app, schema.Layout{Read: n})
		_, err := l.deleteRange(ctx, n, user, userKey(app, user), prefixEnd(userKey(app, user)))
		if err = ignoreMissingTable(err); err != nil {
			return fmt.Errorf("delete log of %s,%s, %s: %w", app, user, n, err)
		}
	}
	ids, err := s.ListBlocks(ctx, app, user)
	if err == nil {
		err = s.DeleteBlocks(ctx, app, user, ids)
	}
	if err != nil {
		return err
	}
	m := bigtable.NewMutation()
	m.DeleteCellsInFamily(familyProfile)
	m.DeleteCellsInFamily(familyInline)
	for _, column := range []string{columnCounter, columnManifest, columnDeleted, columnExcluded, columnVersion, columnMarks} {
		m.DeleteCellsInColumn(familyState, column)
	}
	if err := s.tables.of(app, user).users.Apply(ctx, userKey(app, user), m); err != nil {
		return fmt.Errorf("clear the row of %s,%s: %w", app, user, err)
	}
	return nil
}
