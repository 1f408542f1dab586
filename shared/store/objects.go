package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unsafe"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
)

const (
	columnRecord  = "record"
	columnFilters = "filters"
)

// Object is a record of an index.
type Object struct {
	ID      string
	Record  []byte
	Filters ObjectFilters
}

// ObjectFilters are the filters of an object, and the version of the index
// settings that made them.
type ObjectFilters struct {
	SettingsVersion int64
	Filters         []event.Filter
}

// Size returns the memory that the filters take, in bytes.
func (f ObjectFilters) Size() int {
	size := len(f.Filters) * int(unsafe.Sizeof(event.Filter{}))
	for _, x := range f.Filters {
		size += len(x.Facet) + len(x.Value)
	}
	return size
}

// filtersJSON is the stored form: {"v":2,"f":[["color","Red"],["brand","Acme"]]}. That of a date
// row also says "p":true if the record holds a post of WordPress.
type filtersJSON struct {
	V int64       `json:"v"`
	F [][2]string `json:"f"`
	P bool        `json:"p,omitempty"`
}

func (f ObjectFilters) encode() ([]byte, error) { return f.encodeDated(false) }

// encodeDated returns the stored form of a date row.
func (f ObjectFilters) encodeDated(post bool) ([]byte, error) {
	j := filtersJSON{V: f.SettingsVersion, F: make([][2]string, len(f.Filters)), P: post}
	for i, x := range f.Filters {
		j.F[i] = [2]string{x.Facet, x.Value}
	}
	return json.Marshal(j)
}

func decodeFilters(b []byte) (ObjectFilters, error) {
	f, _, err := decodeDated(b)
	return f, err
}

// decodeDated decodes the stored form of a date row.
func decodeDated(b []byte) (filters ObjectFilters, post bool, err error) {
	var j filtersJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return ObjectFilters{}, false, err
	}
	f := ObjectFilters{SettingsVersion: j.V, Filters: make([]event.Filter, len(j.F))}
	for i, x := range j.F {
		f.Filters[i] = event.Filter{Facet: x[0], Value: x[1]}
	}
	return f, j.P, nil
}

// PutObjects stores objects. It replaces objects with the same ids. dates are the
// attributes of the index whose instants have date rows. After an error some of the
// objects may be stored.
func (s Catalog) PutObjects(ctx context.Context, app, index string, objects []Object, dates ...string) error {
	err := s.each(app, func(s *Store) error { return s.dating(app, index, dates).replace(ctx, objects) })
	if err != nil {
		return fmt.Errorf("store objects of %s/%s: %w", app, index, err)
	}
	return nil
}

// replace writes objects and their date rows.
func (d *dating) replace(ctx context.Context, objects []Object) error {
	err := d.readOld(ctx, len(objects), func(i int) string { return objects[i].ID })
	if err == nil {
		err = d.insert(ctx, objects)
	}
	if err == nil {
		err = d.put(ctx, objects)
	}
	if err == nil {
		err = d.written(ctx, objects)
	}
	return err
}

// put writes the rows of objects.
func (d *dating) put(ctx context.Context, objects []Object) error {
	b := newBulk(ctx)
	for _, o := range objects {
		filters, err := o.Filters.encode()
		if err != nil {
			return fmt.Errorf("encode filters of object %q: %w", o.ID, err)
		}
		m := bigtable.NewMutation()
		m.DeleteCellsInFamily(familyObject)
		m.Set(familyObject, columnRecord, bigtable.Now(), o.Record)
		m.Set(familyObject, columnFilters, bigtable.Now(), filters)
		if err := d.note(m, o.ID); err != nil {
			return err
		}
		size := len(o.Record) + len(filters)
		if err := b.add(d.tables.of(d.app, allUsers).objects, objectKey(d.app, d.index, o.ID), m, size); err != nil {
			return err
		}
	}
	return b.flush()
}

// DeleteObjects deletes objects. An id that does not exist is not an error. dates are
// as in PutObjects.
func (s Catalog) DeleteObjects(ctx context.Context, app, index string, ids []string, dates ...string) error {
	err := s.each(app, func(s *Store) error {
		d := s.dating(app, index, dates)
		err := d.readOld(ctx, len(ids), func(i int) string { return ids[i] })
		if err == nil {
			err = d.delete(ctx, ids)
		}
		if err == nil {
			err = d.written(ctx, nil)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete objects of %s/%s: %w", app, index, err)
	}
	return nil
}

// delete deletes the rows of objects.
func (d *dating) delete(ctx context.Context, ids []string) error {
	b := newBulk(ctx)
	for _, id := range ids {
		m := bigtable.NewMutation()
		m.DeleteRow()
		if err := b.add(d.tables.of(d.app, allUsers).objects, objectKey(d.app, d.index, id), m, 0); err != nil {
			return err
		}
	}
	return b.flush()
}

// ClearIndex deletes every object of an index. dates are as in PutObjects.
func (s Catalog) ClearIndex(ctx context.Context, app, index string, dates ...string) error {
	err := s.each(app, func(s *Store) error { return s.clearIndex(ctx, s.dating(app, index, dates)) })
	if err != nil {
		return fmt.Errorf("clear index %s/%s: %w", app, index, err)
	}
	return nil
}

func (s *Store) clearIndex(ctx context.Context, d *dating) error {
	app, index, b := d.app, d.index, newBulk(ctx)
	var failed error
	table, rows := s.tables.of(app, allUsers).objects, bigtable.PrefixRange(indexPrefix(app, index))
	err := table.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		m := bigtable.NewMutation()
		m.DeleteRow()
		failed = b.add(table, r.Key(), m, 0)
		return failed == nil
	}, keysOnly)
	if err = errors.Join(err, failed, b.flush()); err == nil {
		err = d.cleared(ctx)
	}
	return err
}

// ObjectRef names an object of an app.
type ObjectRef struct{ Index, ID string }

// ReadFilters reads the filters of objects in one request. It returns no entry for
// an unknown object.
func (s Catalog) ReadFilters(ctx context.Context, app string, refs []ObjectRef) (map[ObjectRef]ObjectFilters, error) {
	found := make(map[ObjectRef]ObjectFilters, len(refs))
	err := s.Catalog.ScanFilters(ctx, app, refs, func(ref ObjectRef, f ObjectFilters) error {
		found[ref] = f
		return nil
	})
	return found, err
}

// ScanFilters reads the filters of objects in one request. It calls fn for each
// known object, one at a time, in no particular order. An error of fn ends the
// request.
func (s Catalog) ScanFilters(ctx context.Context, app string, refs []ObjectRef,
	fn func(ObjectRef, ObjectFilters) error) error {
	return s.readObjects(ctx, app, refs, columnFilters, func(ref ObjectRef, value []byte) error {
		f, err := decodeFilters(value)
		if err != nil {
			return err
		}
		return fn(ref, f)
	})
}

// ReadRecords reads objects as the client sent them, in one request. It returns no entry
// for an unknown object.
func (s Catalog) ReadRecords(ctx context.Context, app string, refs []ObjectRef) (map[ObjectRef][]byte, error) {
	found := make(map[ObjectRef][]byte, len(refs))
	err := s.Catalog.ScanRecords(ctx, app, refs, func(ref ObjectRef, record []byte) error {
		found[ref] = record
		return nil
	})
	return found, err
}

// ScanRecords is ScanFilters for objects as the client sent them.
func (s Catalog) ScanRecords(ctx context.Context, app string, refs []ObjectRef,
	fn func(ObjectRef, []byte) error) error {
	return s.readObjects(ctx, app, refs, columnRecord, fn)
}

// ScanObjects reads objects with their filters in one request. It calls fn for
// each known object, one at a time, in no particular order. Records are large,
// so they should not be kept.
func (s Catalog) ScanObjects(ctx context.Context, app string, refs []ObjectRef,
	fn func(ObjectRef, Object) error) error {
	return s.readObjectRows(ctx, app, refs, latestObject, func(ref ObjectRef, items []bigtable.ReadItem) error {
		o := Object{ID: ref.ID}
		for _, item := range items {
			var err error
			switch item.Column {
			case familyObject + ":" + columnRecord:
				o.Record = item.Value
			case familyObject + ":" + columnFilters:
				o.Filters, err = decodeFilters(item.Value)
			}
			if err != nil {
				return err
			}
		}
		return fn(ref, o)
	})
}

var latestObject = bigtable.ChainFilters(bigtable.FamilyFilter(familyObject), bigtable.LatestNFilter(1))

// maxReadBytes bounds the keys in one request. Bigtable accepts requests of 512 KB,
// and sends some bytes with each key.
const maxReadBytes = 256 << 10

func (s *Store) readObjects(ctx context.Context, app string, refs []ObjectRef, column string,
	fn func(ObjectRef, []byte) error) error {
	filter := bigtable.ChainFilters(bigtable.ColumnRangeFilter(familyObject, column, column+"\x00"),
		bigtable.LatestNFilter(1))
	return s.readObjectRows(ctx, app, refs, filter, func(ref ObjectRef, items []bigtable.ReadItem) error {
		for _, item := range items {
			if err := fn(ref, item.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

// readObjectRows passes the cells of each known object to fn.
func (s *Store) readObjectRows(ctx context.Context, app string, refs []ObjectRef, filter bigtable.Filter,
	fn func(ObjectRef, []bigtable.ReadItem) error) error {
	byKey := make(map[string]ObjectRef, len(refs))
	for _, keys := range keyChunks(refs, func(r ObjectRef) string { return objectKey(app, r.Index, r.ID) }, byKey) {
		var failed error
		err := s.tables.of(app, allUsers).objects.ReadRows(ctx, keys, func(r bigtable.Row) bool {
			if failed = fn(byKey[r.Key()], r[familyObject]); failed != nil {
				failed = fmt.Errorf("row %q: %w", r.Key(), failed)
			}
			return failed == nil
		}, bigtable.RowFilter(filter))
		if err := errors.Join(err, failed); err != nil {
			return fmt.Errorf("read %d objects of %s: %w", len(refs), app, err)
		}
	}
	return nil
}

// keyChunks returns the keys of items in lists that each fit one request. It
// records the item of each key in byKey.
func keyChunks[T any](items []T, key func(T) string, byKey map[string]T) []bigtable.RowList {
	var chunks []bigtable.RowList
	size := maxReadBytes
	for _, item := range items {
		k := key(item)
		byKey[k] = item
		if size+len(k) > maxReadBytes {
			chunks, size = append(chunks, nil), 0
		}
		chunks[len(chunks)-1] = append(chunks[len(chunks)-1], k)
		size += len(k) + 8
	}
	return chunks
}
