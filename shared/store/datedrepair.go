package store

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/catalog"
)

// DatedPart is a part of the repair of an index's date rows.
type DatedPart struct {
	Index string
	// Attributes are those whose instants have date rows.
	Attributes []string
	// After is the Last of the part before, empty for the first one.
	After string
	// Before is the time before which a cell was written that may be replaced or
	// deleted: the writer of a later one may still be at work.
	Before time.Time
	// Limit is the number of rows to read.
	Limit int
}

// DatedRepair is what was done in a part.
type DatedRepair struct {
	Read    int // objects, or date rows
	Changed int // date rows inserted, replaced or deleted
	// Undated counts objects, by attribute, that hold no readable date there.
	Undated map[string]int64
	// Faulty is how many objects could not be read, and Faults say what is wrong with
	// the first of them.
	Faulty int
	Faults []string
	Last   string // behind which the next part begins
	Done   bool   // there is no next part
}

// wanted is a date row as its object wants it.
type wanted struct {
	key     string
	filters []byte
	written bigtable.Timestamp // when the object was
}

// InsertDated inserts the date rows that objects of a part lack, and replaces those of
// other filters. filters returns those that an object should have; it must not keep
// the record.
func (s Catalog) InsertDated(ctx context.Context, app string, part DatedPart,
	filters func(Object) (ObjectFilters, error)) (DatedRepair, error) {
	done := DatedRepair{Last: part.After, Undated: map[string]int64{}}
	rows, err := s.wantedDated(ctx, app, part, filters, &done)
	if err == nil {
		err = s.insertMissing(ctx, app, rows, part.Before, &done)
	}
	if err != nil {
		return done, fmt.Errorf("repair date rows of %s/%s: %w", app, part.Index, err)
	}
	return done, nil
}

// wantedDated returns the date rows that the objects of a part want.
func (s *Store) wantedDated(ctx context.Context, app string, part DatedPart,
	filters func(Object) (ObjectFilters, error),
	done *DatedRepair) ([]wanted, error) {
	var rows []wanted
	prefix := indexPrefix(app, part.Index)
	err := s.tables.of(app, allUsers).objects.ReadRows(ctx, behind(prefix, part.After), func(r bigtable.Row) bool {
		o := Object{ID: strings.TrimPrefix(r.Key(), prefix)}
		done.Read++
		done.Last = o.ID
		var written bigtable.Timestamp
		for _, item := range r[familyObject] {
			switch item.Column {
			case familyObject + ":" + columnRecord:
				o.Record, written = item.Value, item.Timestamp
			case familyObject + ":" + columnFilters:
				var err error
				if o.Filters, err = decodeFilters(item.Value); err != nil {
					o.Filters.SettingsVersion = -1 // of no settings, so that they are made again
				}
			}
		}
		fresh, err := filters(o)
		var value []byte
		if err == nil {
			value, err = fresh.encodeDated(catalog.Post(o.Record) != nil)
		}
		if err != nil {
			done.fault(r.Key(), err)
			return true
		}
		dates := datesOf(o.Record, part.Attributes)
		for _, attribute := range part.Attributes {
			if at, dated := dates[attribute]; dated {
				rows = append(rows, wanted{datedKey(app, part.Index, attribute, at, o.ID), value, written})
			} else {
				done.Undated[attribute]++
			}
		}
		return true
	}, bigtable.RowFilter(latestObject), bigtable.LimitRows(int64(part.Limit)))
	done.Done = done.Read < part.Limit
	return rows, err
}

// maxFaults is how many faults a part says.
const maxFaults = 20

func (r *DatedRepair) fault(key string, err error) {
	if r.Faulty++; len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, fmt.Sprintf("%s: %v", key, err))
	}
}

// behind returns the keys of a prefix behind a place.
func behind(prefix, after string) bigtable.RowRange {
	if after == "" {
		return bigtable.PrefixRange(prefix)
	}
	return bigtable.NewRange(prefix+after+"\x00", prefixEnd(prefix))
}

// insertMissing writes the rows that are missing. Its cells have the time of the
// object, so that none hides one that a writer has inserted since.
func (s *Store) insertMissing(ctx context.Context, app string, rows []wanted, before time.Time,
	done *DatedRepair) error {
	stored := make(map[string]bigtable.ReadItem, len(rows))
	table := s.tables.of(app, allUsers).dated
	for _, keys := range keyChunks(rows, func(w wanted) string { return w.key }, make(map[string]wanted, len(rows))) {
		err := table.ReadRows(ctx, keys, func(r bigtable.Row) bool {
			for _, item := range r[familyObject] {
				stored[r.Key()] = item
			}
			return true
		}, bigtable.RowFilter(latestDated))
		if err != nil {
			return err
		}
	}
	b := newBulk(ctx)
	for _, w := range rows {
		cell, at := stored[w.key], w.written
		if cell.Row != "" {
			if bytes.Equal(cell.Value, w.filters) || cell.Timestamp >= bigtable.Time(before) {
				continue
			}
			at = max(at, cell.Timestamp+1000)
		}
		m := bigtable.NewMutation()
		m.Set(familyObject, columnDated, at, w.filters)
		if err := b.add(table, w.key, m, len(w.filters)); err != nil {
			return err
		}
		done.Changed++
	}
	return b.flush()
}

// SweepDated deletes the date rows of a part that their objects do not confirm.
func (s Catalog) SweepDated(ctx context.Context, app string, part DatedPart) (DatedRepair, error) {
	done, err := s.sweepDated(ctx, app, part)
	if err != nil {
		return done, fmt.Errorf("sweep date rows of %s/%s: %w", app, part.Index, err)
	}
	return done, nil
}

// datedRow is a date row that may be swept.
type datedRow struct {
	key, attribute, id string
	at                 int64
}

func (s *Store) sweepDated(ctx context.Context, app string, part DatedPart) (DatedRepair, error) {
	done := DatedRepair{Last: part.After}
	table, prefix := s.tables.of(app, allUsers).dated, indexPrefix(app, part.Index)
	var old []datedRow
	err := table.ReadRows(ctx, behind(prefix, part.After), func(r bigtable.Row) bool {
		done.Read++
		done.Last = strings.TrimPrefix(r.Key(), prefix)
		for _, item := range r[familyObject] {
			if item.Timestamp < bigtable.Time(part.Before) {
				old = append(old, newDatedRow(r.Key(), done.Last))
			}
		}
		return true
	}, bigtable.RowFilter(bigtable.ChainFilters(latestDated, bigtable.StripValueFilter())),
		bigtable.LimitRows(int64(part.Limit)))
	if err != nil {
		return done, err
	}
	done.Done = done.Read < part.Limit
	ids := make([]string, len(old))
	for i, row := range old {
		ids[i] = row.id
	}
	dates, err := s.readDates(ctx, app, part.Index, ids, part.Attributes)
	if err != nil {
		return done, err
	}
	b, m := newBulk(ctx), deleteDatedBefore(part.Before)
	for _, row := range old {
		if at, dated := dates[row.id][row.attribute]; dated && at == row.at {
			continue
		}
		if err := b.add(table, row.key, m, 0); err != nil {
			return done, err
		}
		done.Changed++
	}
	return done, b.flush()
}

// newDatedRow returns the parts of a key. A key of another form has none, so that no
// object confirms it.
func newDatedRow(key, rest string) datedRow {
	escaped, rest, _ := strings.Cut(rest, ",")
	attribute, err := url.QueryUnescape(escaped)
	at, id, malformed := parseDated(rest)
	if err != nil || malformed != nil {
		return datedRow{key: key}
	}
	return datedRow{key: key, attribute: attribute, id: id, at: at}
}

// DatedIndexes lists the indexes of an app that have date rows.
func (s Catalog) DatedIndexes(ctx context.Context, app string) ([]string, error) {
	indexes, err := listIndexes(ctx, s.tables.of(app, allUsers).dated, app)
	if err != nil {
		return nil, fmt.Errorf("list date rows of %s: %w", app, err)
	}
	return indexes, nil
}
