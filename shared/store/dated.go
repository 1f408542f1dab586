package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
)

// A date row says that an attribute of an object holds an instant, and with which
// filters. Its key falls with time, so that a scan meets the newest object first. The
// truth is the object's record: a date row that the record does not confirm is of a
// writer that died, or of one that another overtook, and is in no listing of records.
// No object that has been written lacks its date rows for longer than until the next
// repair; the writers are in datedwrite.go, the repair is in datedrepair.go.

// maxDatedRows is how many rows ListDated reads at most.
const maxDatedRows = 5_000

// firstWindow is the width of the first range that ListDated reads, and lastWindow that
// of the last one but one: what is older comes in one range.
const (
	firstWindow = time.Hour
	lastWindow  = 4096 * time.Hour
)

// DatedObject is an object with the instant that an attribute holds.
type DatedObject struct {
	ID string
	// At is in ms since 1970.
	At int64
	// Filters are those of the object when the date row was written.
	Filters ObjectFilters
	// Post says that the record then held a post of WordPress, see catalog.Post.
	Post bool
}

// DatedQuery selects objects of an index by an attribute's instant.
type DatedQuery struct {
	Index, Attribute string
	// Newest and Oldest bound the instants, both included, in ms since 1970.
	Newest, Oldest int64
	// Keep selects objects. nil selects all. The filters of an object may be of older
	// settings: a filter that is missing then is no reason to leave the object out.
	Keep func(DatedObject) bool
	// Limit is how many objects are wanted. 0: all.
	Limit int
	// MaxBytes bounds the memory of the listed objects: older ones are left out. 0: it
	// is not bounded.
	MaxBytes int
}

// ListDated lists objects by an attribute's instant, the newest first and equal ones
// by objectID. It reads ranges of doubling width until it has enough, and maxDatedRows
// rows at most; truncated says that it left older ones out for that reason, or for
// MaxBytes.
//
// An object is listed once. It may have been deleted, or hold another instant, since
// its date row was written: the caller compares catalog.Date of its record with At.
func (s Catalog) ListDated(ctx context.Context, app string,
	q DatedQuery) (list []DatedObject, truncated bool, err error) {
	return s.listDated(ctx, app, q, maxDatedRows)
}

func (s *Store) listDated(ctx context.Context, app string, q DatedQuery,
	maxRows int) (list []DatedObject, truncated bool, err error) {
	l := dateLister{query: q, table: s.tables.of(app, allUsers).dated,
		prefix: datedPrefix(app, q.Index, q.Attribute), left: maxRows}
	width := firstWindow.Milliseconds()
	for to := q.Newest; to >= q.Oldest && !l.ended; width *= 2 {
		from := max(q.Oldest, to-width+1)
		if width > lastWindow.Milliseconds() {
			from = q.Oldest
		}
		if err := l.window(ctx, from, to); err != nil {
			return nil, false, fmt.Errorf("list %s/%s by %s: %w", app, q.Index, q.Attribute, err)
		}
		to = from - 1
	}
	list, err = s.once(ctx, app, q, l.list)
	return list, l.left < 0, err
}

// dateLister reads the rows of a listing.
type dateLister struct {
	query  DatedQuery
	table  *bigtable.Table
	prefix string
	left   int // rows that it may read; below 0: there was another one
	bytes  int // of the list
	list   []DatedObject
	ended  bool
}

// window reads the rows of instants from one to another, both included.
func (l *dateLister) window(ctx context.Context, from, to int64) error {
	var failed error
	rows := bigtable.NewRange(l.prefix+fallingTime(to), l.prefix+fallingTime(from)+"-") // a dash is behind the comma
	err := l.table.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		if l.left--; l.left < 0 {
			l.ended = true
			return false
		}
		var o DatedObject
		if o, failed = datedObject(strings.TrimPrefix(r.Key(), l.prefix), r); failed != nil {
			failed = fmt.Errorf("row %q: %w", r.Key(), failed)
			return false
		}
		if l.query.Keep == nil || l.query.Keep(o) {
			l.keep(o)
		}
		return !l.ended
	}, bigtable.RowFilter(latestDated), bigtable.LimitRows(int64(l.left+1)))
	return errors.Join(err, failed)
}

// keep adds an object to the list, if it has room.
func (l *dateLister) keep(o DatedObject) {
	l.bytes += datedBytes + len(o.ID) + o.Filters.Size()
	if l.query.MaxBytes > 0 && l.bytes > l.query.MaxBytes {
		l.left, l.ended = -1, true
		return
	}
	l.list = append(l.list, o)
	l.ended = l.query.Limit > 0 && len(l.list) == l.query.Limit
}

// datedBytes is what a listed object takes beside its id and its filters.
const datedBytes = 64

var latestDated = bigtable.ChainFilters(bigtable.ColumnRangeFilter(familyObject, columnDated,
	columnDated+"\x00"), bigtable.LatestNFilter(1))

// once leaves out the rows of objects that have several and do not confirm them.
func (s *Store) once(ctx context.Context, app string, q DatedQuery, list []DatedObject) ([]DatedObject, error) {
	times := make(map[string]int, len(list))
	var several []string
	for _, o := range list {
		if times[o.ID]++; times[o.ID] == 2 {
			several = append(several, o.ID)
		}
	}
	if len(several) == 0 {
		return list, nil
	}
	dates, err := s.readDates(ctx, app, q.Index, several, []string{q.Attribute})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(o DatedObject) bool {
		at, dated := dates[o.ID][q.Attribute]
		return times[o.ID] > 1 && (!dated || at != o.At)
	}), nil
}

// datedObject decodes a row whose key ends in rest. Damaged filters are of no
// settings, so that they are made again.
func datedObject(rest string, r bigtable.Row) (DatedObject, error) {
	at, id, err := parseDated(rest)
	o := DatedObject{ID: id, At: at}
	for _, item := range r[familyObject] {
		var damaged error
		if o.Filters, o.Post, damaged = decodeDated(item.Value); damaged != nil {
			o.Filters = ObjectFilters{SettingsVersion: -1}
		}
	}
	return o, err
}

// datedPrefix escapes the names of an index and of an attribute, which may contain
// commas. An objectID needs no escape, because it stands last.
func datedPrefix(app, index, attribute string) string {
	return indexPrefix(app, index) + url.QueryEscape(attribute) + ","
}

func datedKey(app, index, attribute string, at int64, objectID string) string {
	return datedPrefix(app, index, attribute) + fallingTime(at) + "," + objectID
}

// fallingTime returns an instant in ms in a form that sorts the latest first.
func fallingTime(ms int64) string { return fmt.Sprintf("%016x", uint64(math.MaxInt64)-uint64(ms)) }

// parseDated returns the instant and the objectID at the end of a key.
func parseDated(rest string) (at int64, id string, err error) {
	falling, id, ok := strings.Cut(rest, ",")
	n, err := strconv.ParseUint(falling, 16, 64)
	if err == nil && (!ok || len(falling) != 16) {
		err = errors.New("not of the form time,objectID")
	}
	return int64(uint64(math.MaxInt64) - n), id, err
}
