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

	"github.com/affinityengine/affinity/shared/score/schema"
)

// Entry is a complete row of the log.
type Entry struct {
	User string
	LogRow
	Original []byte
	// Fault is not nil if the row's key is not a key of the log.
	Fault error
}

// After returns the place right after the entry, for a Range.
func (e Entry) After() string {
	_, place, _ := strings.Cut(e.key, ",")
	if !utf8.ValidString(place) { // a place must be text, also of a foreign key
		return escapedPlace + url.QueryEscape(place) + "%00"
	}
	return place + "\x00"
}

// Key returns the key of the entry's row.
func (e Entry) Key() string { return e.key }

// Written returns the event of the row, without its content.
func (e Entry) Written() *LogEvent {
	return &LogEvent{User: e.User, Time: e.Time, ID: e.ID, Receipt: e.receipt, Original: e.Original}
}

// Compare compares the positions of two entries in an app's log, in any schema.
func (e Entry) Compare(o Entry) int { return strings.Compare(e.key, o.key) }

// sinceFilter passes the cells of events at or after a time (ms). A copy is a
// millisecond older than its event, and the cell of a receipt up to maxAhead.
func sinceFilter(since int64) bigtable.Filter {
	if since <= maxAhead {
		return bigtable.PassAllFilter()
	}
	return bigtable.TimestampRangeFilter(time.UnixMilli(since-maxAhead), time.Time{})
}

// Scan streams, in order, the complete rows of one schema in a range, for events at
// or after a time (ms). It returns the first error from fn.
func (l Log) Scan(ctx context.Context, n schema.Name, r Range, since int64, fn func(Entry) error) error {
	return l.scanRange(ctx, n, r, sinceFilter(since), since, fn)
}

// ScanOriginals is Scan of the schema that readers use, without the filters.
func (l Log) ScanOriginals(ctx context.Context, r Range, since int64, fn func(Entry) error) error {
	return l.scanRange(ctx, l.layout.Read, r,
		bigtable.ChainFilters(column(familyOriginal, columnOriginal), sinceFilter(since)), since, fn)
}

func (l Log) scanRange(ctx context.Context, n schema.Name, r Range, filter bigtable.Filter, since int64,
	fn func(Entry) error) error {
	rows, ok := r.keys(l.app)
	if !ok {
		return nil
	}
	return l.scan(ctx, n, rows, filter, since, fn)
}

// Entries reads rows of one schema by key, in no order.
func (l Log) Entries(ctx context.Context, n schema.Name, keys []string, fn func(Entry) error) error {
	return l.entries(ctx, n, keys, bigtable.PassAllFilter(), fn)
}

func (l Log) entries(ctx context.Context, n schema.Name, keys []string, filter bigtable.Filter,
	fn func(Entry) error) error {
	for chunk := range slices.Chunk(keys, bulkRows) {
		if err := l.scan(ctx, n, bigtable.RowList(chunk), filter, 0, fn); err != nil {
			return err
		}
	}
	return nil
}

func (l Log) scan(ctx context.Context, n schema.Name, rows bigtable.RowSet, filter bigtable.Filter, since int64,
	fn func(Entry) error) error {
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
		e.User, e.LogRow, e.Fault = user, logRow(r, schema.Pos{Time: ms, ID: id}), err
		failed = fn(e)
		return failed == nil
	}, bigtable.RowFilter(filter))
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("scan log of %s, %s: %w", l.app, n, err)
	}
	return nil
}

// Empty reports whether an app has no row in a schema.
func (l Log) Empty(ctx context.Context, n schema.Name) (bool, error) {
	empty := true
	rows, _ := Range{}.keys(l.app)
	err := l.table(n, allUsers).ReadRows(ctx, rows, func(bigtable.Row) bool {
		empty = false
		return false
	}, keysOnly, bigtable.LimitRows(1))
	if err != nil {
		return false, fmt.Errorf("read log of %s, %s: %w", l.app, n, err)
	}
	return empty, nil
}

// Drop deletes all rows of one schema in a range. It calls check before each batch.
// After the batch it calls progress with the place after the batch and the number
// of rows so far. It returns the first error of the two.
func (l Log) Drop(ctx context.Context, n schema.Name, r Range, check func() error,
	progress func(after string, rows int64) error) (int64, error) {
	var rows int64
	keys := make([]string, 0, bulkRows)
	flush := func() error {
		if len(keys) == 0 {
			return nil
		}
		if err := check(); err != nil {
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
	keyRange, ok := r.keys(l.app)
	if !ok {
		return 0, nil
	}
	var failed error
	err := l.table(n, allUsers).ReadRows(ctx, keyRange, func(r bigtable.Row) bool {
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

// DeleteEntries deletes rows of one schema by key.
func (l Log) DeleteEntries(ctx context.Context, n schema.Name, keys []string) error {
	return l.deleteRows(ctx, n, keys)
}
