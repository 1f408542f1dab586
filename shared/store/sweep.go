package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/schema"
)

// Entry is a row of the log with all that it holds.
type Entry struct {
	User string
	LogRow
	Original []byte
	// Fault says that the row's key is not one of the log's.
	Fault error
}

// After is the place behind the entry.
func (e Entry) After() string {
	_, place, _ := strings.Cut(e.key, ",")
	if !utf8.ValidString(place) { // no row of ours; a place must be a text all the same
		return escapedPlace + url.QueryEscape(place) + "%00"
	}
	return place + "\x00"
}

// Key is the key of the entry's row.
func (e Entry) Key() string { return e.key }

// Compare tells which of two entries of an app comes first in the log, in
// whatever schemas they lie.
func (e Entry) Compare(o Entry) int { return strings.Compare(e.key, o.key) }

// sinceFilter passes cells of events not before a time. Copies are a millisecond
// older than their events.
func sinceFilter(since int64) bigtable.Filter {
	if since <= 1 {
		return bigtable.PassAllFilter()
	}
	return bigtable.TimestampRangeFilter(time.UnixMilli(since-1), time.Time{})
}

// Scan reads all of one schema's rows in a range, of events not before a time
// (ms), in order and whole. An error of fn ends the reading and is returned.
func (l Log) Scan(ctx context.Context, n schema.Name, r Range, since int64, fn func(Entry) error) error {
	return l.scanRange(ctx, n, r, sinceFilter(since), since, fn)
}

// ScanOriginals is Scan of the schema that is read, with the events as they were
// sent and without their filters.
func (l Log) ScanOriginals(ctx context.Context, r Range, since int64, fn func(Entry) error) error {
	return l.scanRange(ctx, l.layout.Read, r, bigtable.ChainFilters(family(familyOriginal), sinceFilter(since)), since, fn)
}

func (l Log) scanRange(ctx context.Context, n schema.Name, r Range, filter bigtable.Filter, since int64, fn func(Entry) error) error {
	rows, any := r.keys(l.app)
	if !any {
		return nil
	}
	return l.scan(ctx, n, rows, filter, since, fn)
}

// Entries reads rows of one schema by the keys of their entries, in no order.
func (l Log) Entries(ctx context.Context, n schema.Name, keys []string, fn func(Entry) error) error {
	for chunk := range slices.Chunk(keys, bulkRows) {
		if err := l.scan(ctx, n, bigtable.RowList(chunk), bigtable.PassAllFilter(), 0, fn); err != nil {
			return err
		}
	}
	return nil
}

func (l Log) scan(ctx context.Context, n schema.Name, rows bigtable.RowSet, filter bigtable.Filter, since int64, fn func(Entry) error) error {
	user := ""
	var failed error
	err := l.table(n, allUsers).ReadRows(ctx, rows, func(r bigtable.Row) bool {
		e := Entry{Original: original(r)}
		_, u, ms, id, err := parseLogKey(r.Key())
		if err == nil && ms < since {
			return true
		}
		if u != user {
			user = strings.Clone(u)
		}
		e.User, e.LogRow, e.Fault = user, logRow(r, history.Pos{Time: ms, ID: id}), err
		failed = fn(e)
		return failed == nil
	}, bigtable.RowFilter(filter))
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("scan log of %s, %s: %w", l.app, n, err)
	}
	return nil
}

// Empty tells whether an app has no row in a schema.
func (l Log) Empty(ctx context.Context, n schema.Name) (bool, error) {
	empty := true
	rows, _ := Range{}.keys(l.app)
	err := l.table(n, allUsers).ReadRows(ctx, rows, func(bigtable.Row) bool {
		empty = false
		return false
	}, keysOnly, bigtable.LimitRows(1))
	if err != nil {
		return false, fmt.Errorf("look at log of %s, %s: %w", l.app, n, err)
	}
	return empty, nil
}

// Drop removes all of one schema's rows in a range. Before every so many it asks
// whether it may, and after them it tells how many there were so far and the place
// behind them. An error of either ends it and is returned.
func (l Log) Drop(ctx context.Context, n schema.Name, r Range, may func() error, progress func(after string, rows int64) error) (int64, error) {
	var rows int64
	keys := make([]string, 0, bulkRows)
	flush := func() error {
		if len(keys) == 0 {
			return nil
		}
		if err := may(); err != nil {
			return err
		}
		if err := l.deleteRows(ctx, n, keys); err != nil {
			return err
		}
		rows += int64(len(keys))
		after := Entry{LogRow: LogRow{key: keys[len(keys)-1]}}.After()
		keys = keys[:0]
		return progress(after, rows)
	}
	keysOf, any := r.keys(l.app)
	if !any {
		return 0, nil
	}
	var failed error
	err := l.table(n, allUsers).ReadRows(ctx, keysOf, func(r bigtable.Row) bool {
		if keys = append(keys, r.Key()); len(keys) == bulkRows {
			failed = flush()
		}
		return failed == nil
	}, keysOnly)
	if err := errors.Join(err, failed); err != nil {
		return rows, fmt.Errorf("drop log of %s, %s: %w", l.app, n, err)
	}
	if err := flush(); err != nil {
		return rows, fmt.Errorf("drop log of %s, %s: %w", l.app, n, err)
	}
	return rows, nil
}

// DeleteEntries removes rows from one schema by the keys of their entries.
func (l Log) DeleteEntries(ctx context.Context, n schema.Name, keys []string) error {
	return l.deleteRows(ctx, n, keys)
}
