package documents

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

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
