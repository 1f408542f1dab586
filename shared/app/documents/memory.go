package documents

import (
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
