package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/catalog"
)

// A writer inserts the new date rows, writes the objects, and deletes the date rows
// that their former records had and the new ones have not. If it dies on the way there
// is a date row too many, and never one too few.
//
// Two writers of one object may interleave. The one that writes the object last is
// right, and the other must not delete its date row. So a writer deletes only cells
// that were there overtake before it began: a writer that inserted such a cell, and
// whose object comes later than this one's, took longer than overtake from the one to
// the other. That one inserts its date rows again once its objects are written.

// overtake is the longest time between a writer's date rows and the object, and the
// largest difference of clocks, for which other writers leave the rows alone.
const overtake = 10 * time.Second

const (
	columnDated = "f" // of a date row: the filters
	columnDates = "at"
)

// dating is the part of a write of objects that keeps the date rows.
type dating struct {
	*Store
	app, index string
	attributes []string // none: there are no date rows to keep
	began      time.Time
	old, new   map[string]map[string]int64 // instants by objectID and attribute
}

func (s *Store) dating(app, index string, attributes []string) *dating {
	return &dating{Store: s, app: app, index: index, attributes: attributes, began: s.now()}
}

// now is the clock of cells whose age counts.
func (s *Store) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}

// readOld reads the instants of objects as they are stored.
func (d *dating) readOld(ctx context.Context, n int, id func(int) string) (err error) {
	if len(d.attributes) == 0 {
		return nil
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = id(i)
	}
	d.old, err = d.readDates(ctx, d.app, d.index, ids, d.attributes)
	return err
}

// datesOf returns the instants that attributes of a record hold.
func datesOf(record []byte, attributes []string) map[string]int64 {
	dates := make(map[string]int64, len(attributes))
	for _, attribute := range attributes {
		if at, ok := catalog.Date(record, attribute); ok {
			dates[attribute] = at
		}
	}
	return dates
}

// insert writes the date rows of objects.
func (d *dating) insert(ctx context.Context, objects []Object) error {
	if len(d.attributes) == 0 {
		return nil
	}
	if d.new == nil {
		d.new = make(map[string]map[string]int64, len(objects))
		for _, o := range objects {
			d.new[o.ID] = datesOf(o.Record, d.attributes)
		}
	}
	b, table, at := newBulk(ctx), d.tables.of(d.app, allUsers).dated, bigtable.Time(d.now())
	for _, o := range objects {
		if len(d.new[o.ID]) == 0 {
			continue
		}
		filters, err := o.Filters.encodeDated(catalog.Post(o.Record) != nil)
		if err != nil {
			return fmt.Errorf("encode filters of object %q: %w", o.ID, err)
		}
		m := bigtable.NewMutation()
		m.Set(familyObject, columnDated, at, filters)
		for attribute, ms := range d.new[o.ID] {
			if err := b.add(table, datedKey(d.app, d.index, attribute, ms, o.ID), m, len(filters)); err != nil {
				return fmt.Errorf("store date rows of %s/%s: %w", d.app, d.index, err)
			}
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("store date rows of %s/%s: %w", d.app, d.index, err)
	}
	return nil
}

// note adds an object's instants to the mutation that writes its row.
func (d *dating) note(m *bigtable.Mutation, id string) error {
	if len(d.attributes) == 0 {
		return nil
	}
	value, err := encodeDates(d.new[id], d.attributes)
	if err == nil {
		m.Set(familyObject, columnDates, bigtable.Time(d.began), value)
	}
	return err
}

// written ends the write: the objects are there as they shall be.
func (d *dating) written(ctx context.Context, objects []Object) error {
	if len(d.attributes) > 0 && len(objects) > 0 && d.now().Sub(d.began) > overtake/2 {
		if err := d.insert(ctx, objects); err != nil {
			return err
		}
	}
	b, table := newBulk(ctx), d.tables.of(d.app, allUsers).dated
	for id, dates := range d.old {
		for attribute, ms := range dates {
			if at, dated := d.new[id][attribute]; dated && at == ms {
				continue
			}
			if err := b.add(table, datedKey(d.app, d.index, attribute, ms, id), deleteDated(d.began), 0); err != nil {
				return fmt.Errorf("delete date rows of %s/%s: %w", d.app, d.index, err)
			}
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("delete date rows of %s/%s: %w", d.app, d.index, err)
	}
	return nil
}

// cleared deletes the date rows of an index that has been cleared.
func (d *dating) cleared(ctx context.Context) error {
	if len(d.attributes) == 0 {
		return nil
	}
	b, table, m := newBulk(ctx), d.tables.of(d.app, allUsers).dated, deleteDated(d.began)
	var failed error
	err := table.ReadRows(ctx, bigtable.PrefixRange(indexPrefix(d.app, d.index)), func(r bigtable.Row) bool {
		failed = b.add(table, r.Key(), m, 0)
		return failed == nil
	}, keysOnly)
	if err := errors.Join(err, failed, b.flush()); err != nil {
		return fmt.Errorf("clear date rows of %s/%s: %w", d.app, d.index, err)
	}
	return nil
}

// deleteDated returns the mutation by which a writer that began at that time deletes
// a date row.
func deleteDated(began time.Time) *bigtable.Mutation { return deleteDatedBefore(began.Add(-overtake)) }

// deleteDatedBefore returns a mutation that deletes the cells of a date row that are
// older than a time.
func deleteDatedBefore(t time.Time) *bigtable.Mutation {
	m := bigtable.NewMutation()
	// An end of 0 would be no end.
	m.DeleteTimestampRange(familyObject, columnDated, 0, max(bigtable.Time(t).TruncateToMilliseconds(), 1000))
	return m
}

// readDates returns the instants that attributes of objects hold, by objectID and
// attribute. An unknown object has no entry. It reads the record of an object only if
// its row does not say the instants of all attributes.
func (s *Store) readDates(ctx context.Context, app, index string, ids,
	attributes []string) (map[string]map[string]int64, error) {
	refs := make([]ObjectRef, len(ids))
	for i, id := range ids {
		refs[i] = ObjectRef{Index: index, ID: id}
	}
	found := make(map[string]map[string]int64, len(ids))
	var unsaid []ObjectRef
	err := s.readObjectRows(ctx, app, refs, datesAndFilters, func(ref ObjectRef, items []bigtable.ReadItem) error {
		for _, item := range items {
			if item.Column != familyObject+":"+columnDates {
				continue
			}
			if dates, said := decodeDates(item.Value, attributes); said {
				found[ref.ID] = dates
				return nil
			}
		}
		unsaid = append(unsaid, ref)
		return nil
	})
	if err != nil || len(unsaid) == 0 {
		return found, err
	}
	return found, s.Catalog.ScanRecords(ctx, app, unsaid, func(ref ObjectRef, record []byte) error {
		found[ref.ID] = datesOf(record, attributes)
		return nil
	})
}

// datesAndFilters is one range of columns that every object has a cell in, and that
// leaves the record out.
var datesAndFilters = bigtable.ChainFilters(bigtable.ColumnRangeFilter(familyObject, columnDates,
	columnFilters+"\x00"), bigtable.LatestNFilter(1))

// encodeDates returns the stored form of an object's instants:
// {"publishedAt":1790000000000,"updatedAt":null}. null means that the record holds no
// date there; an attribute that is absent was not looked at.
func encodeDates(dates map[string]int64, attributes []string) ([]byte, error) {
	stored := make(map[string]*int64, len(attributes))
	for _, attribute := range attributes {
		stored[attribute] = nil
		if at, ok := dates[attribute]; ok {
			stored[attribute] = &at
		}
	}
	return json.Marshal(stored)
}

// decodeDates returns the instants of attributes, and whether the stored form says
// all of them.
func decodeDates(value []byte, attributes []string) (dates map[string]int64, said bool) {
	var stored map[string]*int64
	if err := json.Unmarshal(value, &stored); err != nil {
		return nil, false // damaged: the record says them too
	}
	dates = make(map[string]int64, len(attributes))
	for _, attribute := range attributes {
		at, ok := stored[attribute]
		if !ok {
			return nil, false
		}
		if at != nil {
			dates[attribute] = *at
		}
	}
	return dates, true
}
