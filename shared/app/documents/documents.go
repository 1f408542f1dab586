// Package documents is the seam under the configuration and the jobs: small documents with
// fields, in collections, that change one at a time or in transactions. What an app or a
// job is, and what may follow what, is written once above it.
//
// There are two stores. Package documentdb keeps documents in Firestore, NewMemory in memory
// for the local engine and for tests, and NewStored also in the records of a data folder.
// TestStores tests both.
//
// A document is a struct whose fields have firestore tags, as the client library of
// Firestore reads them: a name, "-", or a name with omitempty or serverTimestamp. Firestore keeps times to the
// microsecond, so every store does.
package documents

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrNotFound means that the document does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists means that a document of that path exists already.
	ErrExists = errors.New("already exists")
	// ErrOvertaken means that a document has changed since it was read.
	ErrOvertaken = errors.New("another writer came first")
)

// Store keeps documents by their paths: the name of a collection, the id of a document in
// it, the name of a collection below that, and so on, with slashes between them. It is safe
// for concurrent use. Errors other than those of this package are faults of the backend, or
// come from a function that the caller gives.
type Store interface {
	// Get returns a document, or ErrNotFound.
	Get(ctx context.Context, path string) (Document, error)
	// Find returns the documents of a query.
	Find(ctx context.Context, q Query) ([]Document, error)
	// Count counts the documents of a query.
	Count(ctx context.Context, q Query) (int, error)
	// Sum adds up a field of the documents of a query. A name with dots is that of a field
	// in a field. Documents without the field, or with one that is no whole number, add
	// nothing.
	Sum(ctx context.Context, q Query, field string) (int64, error)
	// Commit makes writes, all of them or none. It returns ErrExists if a document to create
	// exists, and ErrOvertaken if a document is not as a write expects it, or if writers met.
	Commit(ctx context.Context, writes ...Write) error
	// Forget deletes the documents of collections and all documents below them. After an
	// error some are left, and the next call continues.
	Forget(ctx context.Context, collections ...string) error
	// Below returns the names of the collections below a document, which need not exist.
	Below(ctx context.Context, path string) ([]string, error)
}

// Document is a document that a Store has read.
type Document struct {
	Path string
	// Version tells what a document was when it was read from what it is later.
	Version any
	decode  func(into any) error
	made    *atomic.Pointer[any] // nil: the store remembers nothing
}

// NewDocument returns a document that decode decodes.
func NewDocument(path string, version any, decode func(into any) error) Document {
	return Document{Path: path, Version: version, decode: decode}
}

// Once returns what build has made of this version of the document before, if the store
// remembers it, and else calls build. All callers must build the same.
func Once[T any](d Document, build func() (T, error)) (T, error) {
	if d.made != nil {
		if made := d.made.Load(); made != nil {
			return (*made).(T), nil
		}
	}
	v, err := build()
	if err == nil && d.made != nil {
		made := any(v)
		d.made.Store(&made)
	}
	return v, err
}

// Decode reads the fields of the document into a struct. Fields that the document lacks
// stay as they are.
func (d Document) Decode(into any) error { return d.decode(into) }

// Query chooses documents of a collection. Without an order, a store returns them in any.
type Query struct {
	// Collection is the path of a collection, or with All the name of all collections to
	// look into, wherever they are.
	Collection string
	All        bool
	// Where are conditions that hold for all documents. Firestore needs an index of its own
	// over the fields of several.
	Where []Condition
	// OrderBy names the field that orders the documents, by falling values with Descending,
	// and those of equal values by their ids. Documents without the field are left out.
	OrderBy    string
	Descending bool
	// Limit is how many documents there may be at most; 0 is all.
	Limit int
	// Only names the fields to read; empty: all.
	Only []string
}

// Condition compares a field with a value. A document without the field does not meet it.
type Condition struct {
	Field string
	Is    Comparison
	Value any // with In a slice
}

// Comparison is how a condition compares.
type Comparison string

// The comparisons, by their names in Firestore.
const (
	Equal   Comparison = "=="
	Less    Comparison = "<"
	Greater Comparison = ">"
	In      Comparison = "in"
)

// Fields are values by the names of fields. A field with the value Removed goes.
type Fields map[string]any

type removed struct{}

// Removed is the value of a field to remove.
var Removed any = removed{}

type storeTime struct{}

// Now is the value of a field that gets the time of the write by the clock of the store, as a
// zero time with the option serverTimestamp does.
var Now any = storeTime{}

// Write is a change of one document.
type Write struct {
	Path string
	// Fields are those of a document that is created or put, or those that change. Nil: there
	// is no document afterwards.
	Fields Fields
	// Whole says that the document has no other fields afterwards.
	Whole bool
	// Read is the document as it must be still. Nil: with New there must be none, and without
	// it there may be any.
	Read *Document
	New  bool
}

// Create returns the write that creates a document with the fields of values.
func Create(path string, values ...any) Write {
	return Write{Path: path, Fields: FieldsOf(values...), Whole: true, New: true}
}

// Put returns the write that creates or replaces a document.
func Put(path string, values ...any) Write {
	return Write{Path: path, Fields: FieldsOf(values...), Whole: true}
}

// Change returns the write that sets fields of a document that is as it was read. There must
// be at least one.
func Change(d Document, fields Fields) Write {
	if fields == nil {
		fields = Fields{} // nil would delete the document
	}
	return Write{Path: d.Path, Fields: fields, Read: &d}
}

// Delete returns the write that deletes a document that is as it was read.
func Delete(d Document) Write { return Write{Path: d.Path, Read: &d} }

// Absent returns the write that changes nothing, but for which there must be no document.
func Absent(path string) Write { return Write{Path: path, New: true} }

// maxAttempts bounds how often a change is tried that conflicts with other writers.
const maxAttempts = 20

// Retry calls try until it returns another error than ErrOvertaken, at most maxAttempts
// times, with growing pauses of random length.
func Retry(ctx context.Context, try func() error) error {
	const first, longest = 10 * time.Millisecond, time.Second
	for attempt := 0; ; attempt++ {
		err := try()
		if !errors.Is(err, ErrOvertaken) || attempt == maxAttempts-1 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(min(longest, first<<attempt))):
		}
	}
}

// Update is a compare-and-set: it sets the fields that change returns, and calls change
// again with the current document after a conflict. If change returns an error or no
// fields, the document stays as it is. It returns ErrNotFound if there is none.
func Update(ctx context.Context, s Store, path string, change func(Document) (Fields, error)) error {
	return Retry(ctx, func() error {
		d, err := s.Get(ctx, path)
		if err != nil {
			return err
		}
		fields, err := change(d)
		if err != nil || len(fields) == 0 {
			return err
		}
		return s.Commit(ctx, Change(d, fields))
	})
}

// FieldsOf returns the fields of structs. Those that are empty and have omitempty are
// Removed. An embedded struct without a name of its own adds its fields; nil has none.
func FieldsOf(values ...any) Fields {
	all := Fields{}
	for _, v := range values {
		if v != nil {
			eachField(reflect.ValueOf(v), func(name, option string, f reflect.Value) {
				switch all[name] = f.Interface(); {
				case option == "omitempty" && isEmpty(f):
					all[name] = Removed
				case option == "serverTimestamp" && f.IsZero():
					all[name] = Now
				}
			})
		}
	}
	return all
}

// isEmpty reports whether a field with omitempty is left out.
func isEmpty(f reflect.Value) bool {
	switch f.Kind() {
	case reflect.Slice, reflect.Map:
		return f.Len() == 0
	}
	return f.IsZero()
}

// structField is a field of a struct, or of a struct that is embedded in it.
type structField struct {
	index        []int
	name, option string
}

// structFields are the fields of structs that were met, by their types.
var structFields sync.Map

func fieldsOfType(t reflect.Type) []structField {
	if known, ok := structFields.Load(t); ok {
		return known.([]structField)
	}
	var all []structField
	for i := range t.NumField() {
		name, option, _ := strings.Cut(t.Field(i).Tag.Get("firestore"), ",")
		switch {
		case name == "-":
		case t.Field(i).Anonymous && name == "":
			for _, f := range fieldsOfType(t.Field(i).Type) {
				all = append(all, structField{append([]int{i}, f.index...), f.name, f.option})
			}
		default:
			all = append(all, structField{[]int{i}, name, option})
		}
	}
	structFields.Store(t, all)
	return all
}

// eachField calls fn with the fields of a struct.
func eachField(v reflect.Value, fn func(name, option string, f reflect.Value)) {
	for _, f := range fieldsOfType(v.Type()) {
		fn(f.name, f.option, v.FieldByIndex(f.index))
	}
}

var escaper = strings.NewReplacer("~", "~~", "/", "~s")

// ID returns the id of a document with a name: the name, escaped if Firestore would refuse
// it as an id.
func ID(name string) string {
	id := escaper.Replace(name)
	if id == "" || strings.HasPrefix(id, ".") || strings.HasPrefix(id, "__") {
		return "~p" + id
	}
	return id
}
