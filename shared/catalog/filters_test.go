package catalog_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/realdata"
)

// declared returns settings that name some attributes.
func declared(attributes ...string) catalog.Settings {
	return catalog.Settings{AttributesForFaceting: attributes, Version: 3}
}

func TestFiltersLimits(t *testing.T) {
	numbers := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = strconv.Itoa(i)
		}
		return list
	}
	tests := []struct {
		name     string
		value    any
		settings catalog.Settings
		want     int
	}{
		{"unset, value of 100 bytes", strings.Repeat("x", 100), catalog.Settings{}, 1},
		{"unset, value of 101 bytes", strings.Repeat("x", 101), catalog.Settings{}, 0},
		{"unset, 51 characters of 2 bytes", strings.Repeat("é", 51), catalog.Settings{}, 0},
		{"unset, one long value spoils the attribute", []string{"short", strings.Repeat("x", 101)}, catalog.Settings{}, 0},
		{"unset, 100 values", numbers(100), catalog.Settings{}, 100},
		{"unset, 101 values", numbers(101), catalog.Settings{}, 0},
		{"unset, 101 values of which 100 differ", append(numbers(100), "0"), catalog.Settings{}, 100},
		{"declared, value of 1000 bytes", strings.Repeat("x", 1000), declared("a"), 1},
		{"declared, value of 1001 bytes", strings.Repeat("x", 1001), declared("a"), 0},
		{"declared, 1000 values", numbers(1000), declared("a"), 1000},
		{"declared, 1001 values", numbers(1001), declared("a"), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			record, err := json.Marshal(map[string]any{"a": tt.value, "b": nil})
			must.Succeed(t, err)
			got, err := catalog.Filters(record, tt.settings)
			if err != nil || len(got) != tt.want {
				t.Errorf("got %d filters, error %v; want %d", len(got), err, tt.want)
			}
		})
	}
}

func TestFiltersBounds(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat(`{"a":`, depth) + `1` + strings.Repeat(`}`, depth)
	}
	tests := []struct {
		name, record string
		want         int
	}{
		{"value in 50 objects", nested(50), 1},
		{"value in 51 objects", nested(51), 0},
		{"value in an object and 49 lists", `{"a":` + strings.Repeat(`[`, 49) + `1` + strings.Repeat(`]`, 49) + `}`, 1},
		{"value in an object and 50 lists", `{"a":` + strings.Repeat(`[`, 50) + `1` + strings.Repeat(`]`, 50) + `}`, 0},
		{"path of 500 bytes", `{"` + strings.Repeat("k", 498) + `":{"a":1}}`, 1},
		{"path of 501 bytes", `{"` + strings.Repeat("k", 499) + `":{"a":1}}`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := catalog.Filters([]byte(tt.record), catalog.Settings{})
			if err != nil || len(got) != tt.want {
				t.Errorf("got %d filters, error %v; want %d", len(got), err, tt.want)
			}
		})
	}
}

// naive returns the filters of a record under settings in the simplest way: it
// follows each declared path. It knows no limits and no dots in keys.
func naive(record any, paths []string) map[event.Filter]bool {
	found := make(map[event.Filter]bool)
	var walk func(path string, keys []string, v any)
	walk = func(path string, keys []string, v any) {
		switch v := v.(type) {
		case []any:
			for _, element := range v {
				walk(path, keys, element)
			}
		case map[string]any:
			if len(keys) > 0 {
				walk(path, keys[1:], v[keys[0]])
			}
		case string, bool, float64:
			if text := fmt.Sprint(v); len(keys) == 0 && text != "" {
				found[event.Filter{Facet: path, Value: text}] = true
			}
		}
	}
	for _, path := range paths {
		walk(path, strings.Split(path, "."), record)
	}
	return found
}

func TestFiltersAgreeWithTheRule(t *testing.T) {
	scalar := rapid.OneOf(
		rapid.Map(rapid.StringN(0, 5, 20), func(s string) any { return s }),
		rapid.Map(rapid.IntRange(-9, 9), func(n int) any { return float64(n) }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](nil),
	)
	key := rapid.SampledFrom([]string{"a", "b", "c"})
	value := scalar
	for range 3 {
		inner := value
		value = rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(inner, 0, 4), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(key, inner, 0, 3), func(m map[string]any) any { return m }))
	}
	record := rapid.MapOfN(key, value, 0, 3)
	path := rapid.Map(rapid.SliceOfN(key, 1, 4), func(keys []string) string { return strings.Join(keys, ".") })
	rapid.Check(t, func(t *rapid.T) {
		r, paths := record.Draw(t, "record"), rapid.SliceOfN(path, 0, 5).Draw(t, "declared")
		raw, err := json.Marshal(r)
		must.Succeed(t, err)
		got, err := catalog.Filters(raw, declared(paths...))
		must.Succeed(t, err)
		want := naive(map[string]any(r), paths)
		for _, f := range got {
			if !want[f] {
				t.Errorf("unexpected or repeated %v", f)
			}
			delete(want, f)
		}
		if len(want) > 0 {
			t.Errorf("missing %v", want)
		}
		if !sorted(got) {
			t.Errorf("out of order: %v", got)
		}
	})
}

func sorted(filters []event.Filter) bool {
	return slices.IsSortedFunc(filters, func(a, b event.Filter) int {
		return strings.Compare(a.Facet+"\x00"+a.Value, b.Facet+"\x00"+b.Value)
	})
}

// readData calls fn with every record of the real catalogs.
func readData(t *testing.T, fn func(record []byte)) {
	t.Helper()
	for _, set := range realdata.With(t, realdata.ObjectsFile) {
		for record := range realdata.Lines(t, set, realdata.ObjectsFile) {
			fn(record)
		}
	}
}

// The real records are flat, and their values are short. So each value of each
// attribute gives a filter.
func TestFiltersOfRealRecords(t *testing.T) {
	readData(t, func(record []byte) {
		var attributes map[string]any
		if err := json.Unmarshal(record, &attributes); err != nil {
			t.Fatalf("%s: %v", record, err)
		}
		delete(attributes, "objectID")
		names := slices.Collect(func(yield func(string) bool) {
			for name := range attributes {
				if !yield(name) {
					return
				}
			}
		})
		got, err := catalog.Filters(record, catalog.Settings{})
		if err != nil {
			t.Fatalf("%s: %v", record, err)
		}
		again, err := catalog.Filters(record, declared(names...))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("%s: %v without settings, %v with (error %v)", record, got, again, err)
		}
		want := naive(attributes, names)
		for _, f := range got {
			if !want[f] {
				t.Errorf("%s: unexpected or repeated %v", record, f)
			}
			delete(want, f)
		}
		if len(want) > 0 {
			t.Errorf("%s: missing %v", record, want)
		}
	})
}

const benchRecord = `{"objectID":"P100","name":"Trail running shoe","description":"` +
	`A light shoe for long days on soft ground, with a sole that grips wet rock and a mesh that dries within the hour.",` +
	`"brand":"Acme","colour":["navy blue","grey"],"price":119.90,"available":true,"rating":{"average":4.5,"count":31},` +
	`"categories":{"lvl0":"Shoes","lvl1":"Shoes > Running","lvl2":"Shoes > Running > Trail"},` +
	`"sizes":[38,39,40,41,42,43,44],"images":[{"url":"https://cdn.example.com/p/100/front.jpg","alt":"front"},` +
	`{"url":"https://cdn.example.com/p/100/side.jpg","alt":"side"}]}`

func BenchmarkFilters(b *testing.B) {
	for name, settings := range map[string]catalog.Settings{
		"unset":    {},
		"declared": declared("brand", "searchable(colour)", "categories.lvl1", "filterOnly(price)"),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(benchRecord)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := catalog.Filters([]byte(benchRecord), settings); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzFilters(f *testing.F) {
	f.Add([]byte(benchRecord), "brand")
	f.Add([]byte(`{"a.b":1,"a":{"b":[null,"",{"c":[]}]}}`), "searchable(a.b)")
	f.Add([]byte(`{"a":"\ud83d","a":`), "")
	f.Fuzz(func(t *testing.T, record []byte, attribute string) {
		for _, settings := range []catalog.Settings{{}, declared(attribute)} {
			got, err := catalog.Filters(record, settings)
			if err != nil {
				continue
			}
			again, err := catalog.Filters(record, settings)
			if err != nil || !reflect.DeepEqual(got, again) {
				t.Fatalf("two calls differ: %v and %v, error %v", got, again, err)
			}
			seen := make(map[event.Filter]bool)
			for _, f := range got {
				if f.Facet == "" || f.Value == "" || seen[f] {
					t.Fatalf("empty or repeated filter %q", f)
				}
				seen[f] = true
			}
		}
	})
}

// The filters of a record that is within its own limit are limited too.
func TestAllFiltersOfARecordAreBounded(t *testing.T) {
	var attributes []string
	for i := range 9000 {
		attributes = append(attributes, fmt.Sprintf(`"k%04d":%d`, i, i))
	}
	for name, record := range map[string]string{
		"many":      `{` + strings.Join(attributes, ",") + `}`,
		"long path": `{"` + strings.Repeat("p", 400) + `":{` + strings.Join(attributes, ",") + `}}`,
	} {
		filters, err := catalog.Filters([]byte(record), catalog.Settings{})
		must.Succeed(t, err)
		size := 0
		for _, f := range filters {
			size += len(f.Facet) + len(f.Value)
		}
		if len(filters) == 0 || len(filters) > 1000 || size > 64<<10 {
			t.Errorf("%s: %d filters of %d bytes, want some, at most 1,000 of 64 KB", name, len(filters), size)
		}
	}
}
