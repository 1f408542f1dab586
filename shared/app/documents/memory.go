package documents

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Records keep texts by name, for a process whose data outlive it.
type Records interface {
	// Load calls f with all records, and returns its error.
	Load(f func(name string, value []byte) error) error
	// Save sets records, or deletes those without a value: all of them, or none if it
	// returns an error.
	Save(records ...Record) error
}

// Record is a record with its name. A nil value deletes it.
type Record struct {
	Name  string
	Value []byte
}

// Memory keeps documents in memory, and in records if it has any.
type Memory struct {
	records Records // nil: nothing outlives the process
	mu      sync.Mutex
	// collections are documents by their ids, by the paths of their collections.
	collections map[string]map[string]*written
}

// written is what one write has made of a document. Its fields never change.
type written struct {
	fields map[string]any
	made   atomic.Pointer[any] // see Once
}

var _ Store = (*Memory)(nil)

// NewMemory returns a store without documents, which ends with the process.
func NewMemory() *Memory { return &Memory{collections: map[string]map[string]*written{}} }

// NewStored returns a store that keeps its documents in records too, each under its path.
// It begins with those that they hold, but for those whose field expiresAt has passed, which
// it deletes. What fails to be saved is not changed.
func NewStored(r Records) (*Memory, error) {
	m := NewMemory()
	m.records = r
	var expired []Record
	err := r.Load(func(path string, text []byte) error {
		fields, err := ofRecord(text)
		if err != nil {
			return fmt.Errorf("document %s: %w", path, err)
		}
		if at, ok := fields["expiresAt"].(time.Time); ok && at.Before(time.Now()) {
			expired = append(expired, Record{Name: path})
			return nil
		}
		m.put(path, fields)
		return nil
	})
	if err == nil && len(expired) > 0 {
		err = r.Save(expired...)
	}
	if err != nil {
		return nil, fmt.Errorf("read the documents: %w", err)
	}
	return m, nil
}

// split returns the collection of a document and its id there.
func split(path string) (collection, id string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

func (m *Memory) put(path string, fields map[string]any) {
	collection, id := split(path)
	if m.collections[collection] == nil {
		m.collections[collection] = map[string]*written{}
	}
	m.collections[collection][id] = &written{fields: fields}
}

// get returns a document, nil if there is none. The lock must be held.
func (m *Memory) get(path string) *written {
	collection, id := split(path)
	return m.collections[collection][id]
}

// read returns a document, or ErrNotFound.
func (m *Memory) read(ctx context.Context, path string) (*written, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.get(path)
	if w == nil {
		return nil, fmt.Errorf("document %s: %w", path, ErrNotFound)
	}
	return w, nil
}

func document(path string, w *written) Document {
	d := NewDocument(path, w, func(into any) error {
		if err := decodeStruct(w.fields, reflect.ValueOf(into).Elem()); err != nil {
			return fmt.Errorf("document %s: %w", path, err)
		}
		return nil
	})
	d.made = &w.made
	return d
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, path string) (Document, error) {
	w, err := m.read(ctx, path)
	if err != nil {
		return Document{}, err
	}
	return document(path, w), nil
}

// Commit implements Store.
func (m *Memory) Commit(ctx context.Context, writes ...Write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, after := time.Now(), make([]map[string]any, len(writes))
	var records []Record
	for i, w := range writes {
		var err error
		if after[i], err = w.on(m.get(w.Path), at); err != nil {
			return fmt.Errorf("document %s: %w", w.Path, err)
		}
		if m.records == nil {
			continue
		}
		record := Record{Name: w.Path}
		if after[i] != nil {
			if record.Value, err = toRecord(after[i]); err != nil {
				return fmt.Errorf("document %s: %w", w.Path, err)
			}
		}
		records = append(records, record)
	}
	if m.records != nil {
		if err := m.records.Save(records...); err != nil {
			return fmt.Errorf("save documents: %w", err)
		}
	}
	for i, w := range writes {
		if after[i] != nil {
			m.put(w.Path, after[i])
			continue
		}
		collection, id := split(w.Path)
		if delete(m.collections[collection], id); len(m.collections[collection]) == 0 {
			delete(m.collections, collection)
		}
	}
	return nil
}

// on returns the fields of a document after a write, nil if there is none then.
func (w Write) on(before *written, at time.Time) (map[string]any, error) {
	switch {
	case w.New && before != nil && w.Fields != nil:
		return nil, ErrExists
	case w.New && before != nil:
		return nil, ErrOvertaken
	case w.Read != nil && (before == nil || w.Read.Version != before):
		return nil, ErrOvertaken
	case w.Fields == nil:
		return nil, nil
	}
	set, err := encodeFields(w.Fields, at)
	if err != nil || w.Whole {
		return set, err
	}
	fields := maps.Clone(before.fields)
	for name, value := range w.Fields {
		if _, gone := value.(removed); gone {
			delete(fields, name)
		}
	}
	maps.Copy(fields, set)
	return fields, nil
}

// found is a document that meets the conditions of a query.
type found struct {
	collection, id string
	*written
}

// find returns what a query finds; unordered in no order, and more than its limit.
func (m *Memory) find(ctx context.Context, q Query, unordered bool) ([]found, error) {
	where := make([]Condition, len(q.Where))
	for i, c := range q.Where {
		value, err := encode(reflect.ValueOf(c.Value), time.Time{})
		if err != nil {
			return nil, fmt.Errorf("condition on %s: %w", c.Field, err)
		}
		where[i] = Condition{c.Field, c.Is, value}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []found
	for _, collection := range m.chosen(q) {
		for id, w := range m.collections[collection] {
			meets := !slices.ContainsFunc(where, func(c Condition) bool { return !c.holds(w.fields) })
			if _, ordered := field(w.fields, q.OrderBy); meets && (ordered || q.OrderBy == "") {
				all = append(all, found{collection, id, w})
			}
		}
	}
	if unordered {
		return all, nil
	}
	slices.SortFunc(all, func(a, b found) int {
		order := 0
		if q.OrderBy != "" {
			x, _ := field(a.fields, q.OrderBy)
			y, _ := field(b.fields, q.OrderBy)
			order, _ = compare(x, y)
		}
		if order = cmp.Or(order, strings.Compare(a.collection, b.collection), strings.Compare(a.id, b.id)); q.Descending {
			return -order
		}
		return order
	})
	if q.Limit > 0 {
		all = all[:min(q.Limit, len(all))]
	}
	return all, nil
}

// chosen returns the paths of the collections of a query.
func (m *Memory) chosen(q Query) []string {
	if !q.All {
		return []string{q.Collection}
	}
	var paths []string
	for path := range m.collections {
		if path == q.Collection || strings.HasSuffix(path, "/"+q.Collection) {
			paths = append(paths, path)
		}
	}
	return paths
}

// field returns the field of a name, which has dots if it is a field in a field.
func field(fields map[string]any, name string) (any, bool) {
	for {
		first, rest, nested := strings.Cut(name, ".")
		value, ok := fields[first]
		if !nested || !ok {
			return value, ok
		}
		if fields, ok = value.(map[string]any); !ok {
			return nil, false
		}
		name = rest
	}
}

func (c Condition) holds(fields map[string]any) bool {
	value, ok := field(fields, c.Field)
	if !ok {
		return false
	}
	if c.Is == In {
		among, _ := c.Value.([]any)
		return slices.ContainsFunc(among, func(one any) bool { return reflect.DeepEqual(value, one) })
	}
	order, comparable := compare(value, c.Value)
	switch {
	case !comparable:
		return false
	case c.Is == Less:
		return order < 0
	case c.Is == Greater:
		return order > 0
	}
	return order == 0
}

// compare orders two values of the same kind.
func compare(a, b any) (order int, comparable bool) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), true
		}
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b), true
		}
	case time.Time:
		if b, ok := b.(time.Time); ok {
			return a.Compare(b), true
		}
	}
	return 0, a == nil && b == nil
}

// Find implements Store.
func (m *Memory) Find(ctx context.Context, q Query) ([]Document, error) {
	all, err := m.find(ctx, q, false)
	var read []Document
	for _, f := range all {
		path := f.collection + "/" + f.id
		if len(q.Only) == 0 {
			read = append(read, document(path, f.written))
			continue
		}
		some := map[string]any{}
		for _, name := range q.Only {
			if value, ok := f.fields[name]; ok {
				some[name] = value
			}
		}
		d := document(path, &written{fields: some})
		d.Version = f.written
		read = append(read, d)
	}
	return read, err
}

// Count implements Store.
func (m *Memory) Count(ctx context.Context, q Query) (int, error) {
	all, err := m.find(ctx, q, q.Limit == 0)
	return len(all), err
}

// Sum implements Store.
func (m *Memory) Sum(ctx context.Context, q Query, name string) (int64, error) {
	all, err := m.find(ctx, q, q.Limit == 0)
	var sum int64
	for _, f := range all {
		value, _ := field(f.fields, name)
		n, _ := value.(int64)
		sum += n
	}
	return sum, err
}

// Forget implements Store.
func (m *Memory) Forget(ctx context.Context, collections ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone []string
	var records []Record
	for path, all := range m.collections {
		if slices.ContainsFunc(collections, func(c string) bool { return path == c || strings.HasPrefix(path, c+"/") }) {
			gone = append(gone, path)
			for id := range all {
				records = append(records, Record{Name: path + "/" + id})
			}
		}
	}
	if m.records != nil && len(records) > 0 {
		if err := m.records.Save(records...); err != nil {
			return fmt.Errorf("delete documents: %w", err)
		}
	}
	for _, path := range gone {
		delete(m.collections, path)
	}
	return nil
}

// Below implements Store.
func (m *Memory) Below(ctx context.Context, path string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for collection := range m.collections {
		if rest, ok := strings.CutPrefix(collection, path+"/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
