package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// LogCopy is how far the log of a user has been copied to the region that gets them.
type LogCopy struct {
	// Move is the id of the move of the app, and Epoch that of the owner's state under which the
	// copy began. Under others the copy begins again: epochs begin again, too, with a row that
	// was deleted.
	Move  string
	Epoch int64
	// Schema is the schema that is being copied, by its place in the layout, and Last the key of
	// the last row, behind the user's prefix. All rows of the schemas before are copied.
	Schema byte
	Last   string
}

func (c LogCopy) appendBinary(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Epoch))
	dst = append(append(dst, byte(len(c.Move))), c.Move...)
	return append(append(dst, c.Schema), c.Last...)
}

func parseLogCopy(value []byte) (LogCopy, error) {
	if len(value) == 0 {
		return LogCopy{}, nil
	}
	if len(value) > 9 {
		if n, rest := int(value[8]), value[9:]; len(rest) > n {
			return LogCopy{string(rest[:n]), int64(binary.BigEndian.Uint64(value)), rest[n], string(rest[n+1:])}, nil
		}
	}
	return LogCopy{}, fmt.Errorf("column %q: %x is no progress of a copy", familyState+":"+columnCopied, value)
}

// CopyLogFrom copies a user's events from the log in another region, in the schemas of the layout: those in the
// schema that readers use to all, because only that one surely has them while the log migrates. A
// copy stands behind what writers append, before or after: see Log.Copy. So they may write to both
// regions in the meantime. It continues behind done, which must be of this move and of the epoch of
// the user's row, and keeps its progress in the row of the other region after each page of so many
// rows. Between two pages it asks more, and ends early if that returns false. Before the first page it
// copies the remembered calls. It returns the number of rows that it copied, and whether all are
// copied.
func (s Events) CopyLogFrom(ctx context.Context, from *Store, app string, l schema.Layout, user string,
	done LogCopy, page int, more func() bool) (rows int, all bool, err error) {
	if done.Schema == 0 && done.Last == "" {
		if err := s.Calls.copyFrom(ctx, from, app, user); err != nil {
			return 0, false, err
		}
	}
	for i, n := range from.Events.Log(app, l).written() {
		if byte(i) < done.Schema {
			continue
		}
		if byte(i) > done.Schema {
			done.Schema, done.Last = byte(i), ""
		}
		for {
			copied := func() (int, string, error) { return s.copyLogPage(ctx, from, app, n, user, done.Last, page) }
			if n != l.Read { // the log migrates to it, or from it, and may lack rows there
				copied = func() (int, string, error) { return s.rewritePage(ctx, from, app, l, n, user, done.Last, page) }
			}
			count, last, err := copied()
			rows += count
			if err != nil {
				return rows, false, fmt.Errorf("copy log of %s,%s, %s: %w", app, user, n, err)
			}
			if count < page {
				break
			}
			done.Last = last
			if err := from.keepCopied(ctx, app, user, done); err != nil {
				return rows, false, err
			}
			if !more() {
				return rows, false, nil
			}
		}
	}
	return rows, true, nil
}

// copyLogPage copies the next rows of a log, and returns their number and the end of the last key.
func (s *Store) copyLogPage(ctx context.Context, from *Store, app string, n schema.Name, user, after string,
	page int) (count int, last string, err error) {
	prefix := userKey(app, user)
	start := prefix
	if after != "" {
		start += after + "\x00"
	}
	err = s.copyEvents(ctx, from, app, n, user, bigtable.NewRange(start, prefixEnd(prefix)), func(key string) {
		count, last = count+1, key[len(prefix):]
	}, bigtable.LimitRows(int64(page)))
	return count, last, err
}

// CopyEventsFrom copies some events of a user from the log in another region.
func (s Events) CopyEventsFrom(ctx context.Context, from *Store, app string, l schema.Layout, user string,
	events []schema.Pos) error {
	for _, n := range from.Events.Log(app, l).written() {
		for some := range slices.Chunk(events, copyPage) {
			keys := make(bigtable.RowList, len(some))
			for i, p := range some {
				keys[i] = logKey(app, user, p.Time, p.ID)
			}
			if err := s.copyEvents(ctx, from, app, n, user, keys, func(string) {}); err != nil {
				return fmt.Errorf("copy events of %s,%s, %s: %w", app, user, n, err)
			}
		}
	}
	return nil
}

// copyEvents copies rows of a log. It calls each with their keys.
func (s *Store) copyEvents(ctx context.Context, from *Store, app string, n schema.Name, user string,
	rows bigtable.RowSet, each func(key string), options ...bigtable.ReadOption) error {
	b, to := newBulk(ctx), s.tables.of(app, user).logs[n]
	var failed error
	err := from.tables.of(app, user).logs[n].ReadRows(ctx, rows, func(r bigtable.Row) bool {
		each(r.Key())
		m, size := copyOf(r)
		failed = b.add(to, r.Key(), m, size)
		return failed == nil
	}, options...)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return b.flush()
}

func (s *Store) keepCopied(ctx context.Context, app, user string, c LogCopy) error {
	err := s.tables.of(app, user).users.Apply(ctx, userKey(app, user), replace(columnCopied, c.appendBinary(nil)))
	if err != nil {
		return fmt.Errorf("keep how far the log of %s,%s is copied: %w", app, user, err)
	}
	return nil
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
			if old, seen := counted[item.Column]; objects && (!seen || item.Timestamp > old.Timestamp) ||
				!objects && item.Timestamp == newest {
				counted[item.Column] = item
			}
		}
	}
	return counted
}

// MissingInLog returns the positions of a user's events, from a position on, that the log
// in another region holds and this one lacks. It reads both logs side by side, and holds
// neither.
func (s Events) MissingInLog(ctx context.Context, from *Store, app string, l schema.Layout, user string,
	first schema.Pos) ([]schema.Pos, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	there, stop := iter.Pull2(from.positions(ctx, app, l.Read, user, first))
	defer stop()
	here, stop := iter.Pull2(s.positions(ctx, app, l.Read, user, first))
	defer stop()
	var missing []schema.Pos
	own, err, more := here()
	for {
		wanted, failed, ok := there()
		for more && err == nil && ok && own.Compare(wanted) < 0 {
			own, err, more = here()
		}
		switch {
		case err != nil || failed != nil:
			return nil, errors.Join(err, failed)
		case !ok:
			return missing, nil
		case !more || own != wanted:
			missing = append(missing, wanted)
		}
	}
}

// positions lists a user's events in a log, in order. An error is the last item.
func (s *Store) positions(ctx context.Context, app string, n schema.Name, user string,
	first schema.Pos) iter.Seq2[schema.Pos, error] {
	return func(yield func(schema.Pos, error) bool) {
		rows, on := bigtable.NewRange(logKey(app, user, first.Time, first.ID), prefixEnd(userKey(app, user))), true
		err := s.tables.of(app, user).logs[n].ReadRows(ctx, rows, func(r bigtable.Row) bool {
			if _, _, ms, id, err := parseLogKey(r.Key()); err == nil {
				on = yield(schema.Pos{Time: ms, ID: strings.Clone(id)}, nil)
			}
			return on
		}, keysOnly)
		if err != nil && on {
			yield(schema.Pos{}, fmt.Errorf("list log of %s,%s, %s: %w", app, user, n, err))
		}
	}
}

// ForgetLeft deletes the blocks and the profiles of a user who has moved away, and the manifest,
// if the row still says of the owner what the caller has read. A reader that finds no block
// takes the log, and nobody else needs them: blocks do not travel.
func (s Events) ForgetLeft(ctx context.Context, app, user string, owner Owner) error {
	m, now := bigtable.NewMutation(), owner.appendBinary(nil)
	m.DeleteCellsInFamily(familyProfile)
	m.DeleteCellsInFamily(familyInline)
	m.DeleteCellsInFamily(familyExposed)
	m.DeleteCellsInColumn(familyState, columnManifest)
	left, err := s.swap(ctx, app, user, bigtable.NewCondMutation(latest(columnOwner, now,
		append(bytes.Clone(now), 0)), m, nil), false)
	if err != nil || !left {
		return err
	}
	ids, err := s.Histories.ListBlocks(ctx, app, user)
	if err != nil {
		return err
	}
	return s.Histories.DeleteBlocks(ctx, app, user, ids)
}

// LogIsEmpty reports whether a region has no event of a user, in the log of any schema.
func (s Events) LogIsEmpty(ctx context.Context, app, user string) (bool, error) {
	prefix := userKey(app, user)
	for _, n := range schema.Names {
		keys, err := scanKeys(ctx, s.tables.of(app, user).logs[n], bigtable.NewRange(prefix, prefixEnd(prefix)), 1)
		if err != nil || len(keys) > 0 {
			return false, err
		}
	}
	return true, nil
}

// LeaveUser deletes what a region holds of a user who has moved away, but for who owns them
// now: events, blocks, and the rest of their row. The caller knows that nobody reads or
// writes these any more.
func (s Events) LeaveUser(ctx context.Context, app, user string) error {
	for _, n := range schema.Names {
		l := s.Events.Log(app, schema.Layout{Read: n})
		_, err := l.deleteRange(ctx, n, user, userKey(app, user), prefixEnd(userKey(app, user)))
		if err != nil {
			return fmt.Errorf("delete log of %s,%s, %s: %w", app, user, n, err)
		}
	}
	ids, err := s.Histories.ListBlocks(ctx, app, user)
	if err == nil {
		err = s.Histories.DeleteBlocks(ctx, app, user, ids)
	}
	if err != nil {
		return err
	}
	m := bigtable.NewMutation()
	m.DeleteCellsInFamily(familyProfile)
	m.DeleteCellsInFamily(familyInline)
	m.DeleteCellsInFamily(familyExposed)
	for _, column := range []string{columnCounter, columnManifest, columnDeleted, columnExcluded, columnVersion,
		columnMarks, columnCopied, columnLinks} {
		m.DeleteCellsInColumn(familyState, column)
	}
	if err := s.tables.of(app, user).users.Apply(ctx, userKey(app, user), m); err != nil {
		return fmt.Errorf("clear the row of %s,%s: %w", app, user, err)
	}
	return nil
}
