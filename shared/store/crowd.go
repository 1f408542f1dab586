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

	"github.com/affinityengine/affinity/shared/event"
)

const (
	columnGenerations = "n"
	columnImport      = "i"
	columnCrowd       = "g"
)

// The kinds of rows of a generation.
const (
	crowdCounts      = "c"
	crowdFrequencies = "f"
	crowdObject      = "o"
	crowdLiked       = "l"
	crowdHeader      = "h"
	crowdRun         = "r"
)

// ReadCrowdManifest reads the stored manifest of an index's statistics, for crowd.ReadManifest. It
// is nil for an index without statistics.
func (s Crowd) ReadCrowdManifest(ctx context.Context, app, index string) ([]byte, error) {
	value, err := s.readCrowdCell(ctx, app, indexPrefix(app, index), columnGenerations)
	if err != nil {
		return nil, fmt.Errorf("read crowd statistics of %s/%s: %w", app, index, err)
	}
	return value, nil
}

// readCrowdCell reads a cell of the family of pointers, nil if it does not
// exist.
func (s *Store) readCrowdCell(ctx context.Context, app, key, column string) ([]byte, error) {
	row, err := s.tables.of(app, allUsers).crowd.ReadRow(ctx, key, bigtable.RowFilter(bigtable.ChainFilters(
		bigtable.ColumnRangeFilter(familyPointer, column, column+"\x00"), bigtable.LatestNFilter(1))))
	if err != nil {
		return nil, err
	}
	for _, item := range row[familyPointer] {
		return item.Value, nil
	}
	return nil, nil
}

// SwapCrowdManifest replaces the manifest of an index if its stored bytes are
// still those of ReadCrowdManifest. It returns false if they are not, or if the
// first answer was lost; in the second case it may have replaced them.
func (s Crowd) SwapCrowdManifest(ctx context.Context, app, index string, stored, value []byte) (bool, error) {
	set := bigtable.NewMutation()
	set.DeleteCellsInColumn(familyPointer, columnGenerations)
	set.Set(familyPointer, columnGenerations, bigtable.ServerTime, value)
	current := func(from, to []byte) bigtable.Filter {
		return bigtable.ChainFilters(bigtable.ColumnRangeFilter(familyPointer, columnGenerations, columnGenerations+"\x00"),
			bigtable.LatestNFilter(1), bigtable.ValueRangeFilter(from, to))
	}
	cond, inverse := bigtable.NewCondMutation(current(stored, append(slices.Clone(stored), 0)), set, nil), false
	if len(stored) == 0 {
		cond, inverse = bigtable.NewCondMutation(current([]byte{0}, nil), nil, set), true
	}
	var matched bool
	err := retryAtomic(ctx, func() error {
		return s.tables.of(app, allUsers).crowd.Apply(ctx, indexPrefix(app, index), cond,
			bigtable.GetCondMutationResult(&matched))
	})
	if err != nil {
		return false, fmt.Errorf("swap crowd statistics of %s/%s: %w", app, index, err)
	}
	return matched != inverse, nil
}

// importColumn is the column of the last import of events or, of an index, of objects.
func importColumn(index string) string {
	if index == "" {
		return columnImport
	}
	return columnImport + "," + index
}

// NoteImport stores the time of an app's last import of events or, of an index, of objects.
func (s Crowd) NoteImport(ctx context.Context, app, index string, at time.Time) error {
	m := bigtable.NewMutation()
	m.Set(familyPointer, importColumn(index), bigtable.Timestamp(max(at.UnixMilli(), 0)*1000),
		bigEndian(at.UnixMilli()))
	return s.each(app, func(s *Store) error {
		if err := s.tables.of(app, allUsers).crowd.Apply(ctx, app+",", m); err != nil {
			return fmt.Errorf("note an import of %s: %w", app, err)
		}
		return nil
	})
}

// LastImport returns the time that NoteImport stored, zero if none.
func (s Crowd) LastImport(ctx context.Context, app, index string) (time.Time, error) {
	value, err := s.readCrowdCell(ctx, app, app+",", importColumn(index))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the last import of %s: %w", app, err)
	}
	if len(value) != 8 {
		return time.Time{}, nil
	}
	var ms int64
	for _, b := range value {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms), nil
}

// CrowdIndexes lists the indexes of an app that have rows of crowd statistics.
func (s Crowd) CrowdIndexes(ctx context.Context, app string) ([]string, error) {
	return s.Crowd.FirstCrowdIndexes(ctx, app, math.MaxInt)
}

// FirstCrowdIndexes is CrowdIndexes up to a number of indexes, in the order of their
// keys. It reads a row for each.
func (s Crowd) FirstCrowdIndexes(ctx context.Context, app string, most int) ([]string, error) {
	indexes, err := firstIndexes(ctx, s.tables.of(app, allUsers).crowd, app, most)
	if err != nil {
		return nil, fmt.Errorf("list crowd statistics of %s: %w", app, err)
	}
	return indexes, nil
}

// CatalogIndexes lists the indexes of an app that hold objects.
func (s Catalog) CatalogIndexes(ctx context.Context, app string) ([]string, error) {
	return s.Catalog.FirstCatalogIndexes(ctx, app, math.MaxInt)
}

// FirstCatalogIndexes is CatalogIndexes up to a number of indexes, in the order of their
// keys. It reads a row for each.
func (s Catalog) FirstCatalogIndexes(ctx context.Context, app string, most int) ([]string, error) {
	indexes, err := firstIndexes(ctx, s.tables.of(app, allUsers).objects, app, most)
	if err != nil {
		return nil, fmt.Errorf("list indexes of %s: %w", app, err)
	}
	return indexes, nil
}

// listIndexes reads one key of each index of a table whose keys begin
// "app,index,".
func listIndexes(ctx context.Context, table *bigtable.Table, app string) ([]string, error) {
	return firstIndexes(ctx, table, app, math.MaxInt)
}

// firstIndexes is listIndexes up to a number of indexes.
func firstIndexes(ctx context.Context, table *bigtable.Table, app string, most int) ([]string, error) {
	var indexes []string
	from := app + ",\x00" // behind the row of the app itself
	for len(indexes) < most {
		var failed error
		found := ""
		err := table.ReadRows(ctx, bigtable.NewRange(from, prefixEnd(app+",")), func(r bigtable.Row) bool {
			_, rest, _ := strings.Cut(r.Key(), ",")
			escaped, _, _ := strings.Cut(rest, ",")
			if found, failed = url.QueryUnescape(escaped); failed != nil {
				failed = fmt.Errorf("row %q: %w", r.Key(), failed)
			}
			return false
		}, keysOnly, bigtable.LimitRows(1))
		if err := errors.Join(err, failed); err != nil || found == "" {
			return indexes, err
		}
		indexes, from = append(indexes, found), prefixEnd(indexPrefix(app, found))
	}
	return indexes, nil
}

// ScanObjectIDs streams the ids of the objects of an index, in order.
func (s Catalog) ScanObjectIDs(ctx context.Context, app, index string, fn func(id string) error) error {
	return s.Catalog.ScanObjectIDsAfter(ctx, app, index, "", fn)
}

// ScanObjectIDsAfter is ScanObjectIDs of the objects behind an objectID, which need not exist.
// The empty one stands before all.
func (s Catalog) ScanObjectIDsAfter(ctx context.Context, app, index, after string, fn func(id string) error) error {
	return s.scanObjects(ctx, app, index, after, keysOnly, func(id string, _ bigtable.Row) error { return fn(id) })
}

// ScanFiltersAfter streams the filters of the objects behind an objectID, as ScanObjectIDsAfter
// does their ids.
func (s Catalog) ScanFiltersAfter(ctx context.Context, app, index, after string,
	fn func(id string, f []event.Filter) error) error {
	return s.scanFilters(ctx, app, index, after, func(id string, f ObjectFilters) error { return fn(id, f.Filters) })
}

// ScanObjectFilters streams the ids of the objects of an index with their
// filters, in order.
func (s Catalog) ScanObjectFilters(ctx context.Context, app, index string,
	fn func(id string, f ObjectFilters) error) error {
	return s.scanFilters(ctx, app, index, "", fn)
}

func (s *Store) scanFilters(ctx context.Context, app, index, after string,
	fn func(id string, f ObjectFilters) error) error {
	filters := bigtable.RowFilter(bigtable.ChainFilters(
		bigtable.ColumnRangeFilter(familyObject, columnFilters, columnFilters+"\x00"), bigtable.LatestNFilter(1)))
	return s.scanObjects(ctx, app, index, after, filters, func(id string, r bigtable.Row) error {
		items := r[familyObject]
		if len(items) == 0 {
			return nil
		}
		f, err := decodeFilters(items[0].Value)
		if err != nil {
			return fmt.Errorf("row %q: %w", r.Key(), err)
		}
		return fn(id, f)
	})
}

// ScanObjectRecords streams the objects of an index as the client sent them, in order: those
// behind an objectID, as ScanObjectIDsAfter does.
func (s Catalog) ScanObjectRecords(ctx context.Context, app, index, after string,
	fn func(id string, record []byte) error) error {
	records := bigtable.RowFilter(bigtable.ChainFilters(column(familyObject, columnRecord), bigtable.LatestNFilter(1)))
	return s.scanObjects(ctx, app, index, after, records, func(id string, r bigtable.Row) error {
		for _, item := range r[familyObject] {
			if err := fn(id, item.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) scanObjects(ctx context.Context, app, index, after string, filter bigtable.ReadOption,
	fn func(string, bigtable.Row) error) error {
	var failed error
	prefix := indexPrefix(app, index)
	err := s.tables.of(app, allUsers).objects.ReadRows(ctx, behind(prefix, after), func(r bigtable.Row) bool {
		failed = fn(strings.TrimPrefix(r.Key(), prefix), r)
		return failed == nil
	}, filter)
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("read objects of %s/%s: %w", app, index, err)
	}
	return nil
}

// crowdKey returns the key of a row of a generation. An objectID needs no escape,
// because it stands last.
func crowdKey(app, index, generation, kind, name string) string {
	return indexPrefix(app, index) + generation + "," + kind + "," + name
}

// hex4 returns a number in a form that sorts as the number does.
func hex4(n int) string { return fmt.Sprintf("%04x", min(max(n, 0), math.MaxUint16)) }

func parseHex4(s string) (int, error) {
	n, err := strconv.ParseUint(s, 16, 16)
	return int(n), err
}
