package catalog_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

var prices = catalog.Bands{"price": {0, 50, 100}}

// Bands of an index whose facets were never listed are those of any attribute.
func TestBandsWithoutListedFacets(t *testing.T) {
	next, changed, err := catalog.Change{NumericBands: catalog.Bands{"price": {0, 50}}}.After(catalog.Settings{})
	if err != nil || !changed {
		t.Fatalf("changed %t, error %v", changed, err)
	}
	got, err := catalog.Filters([]byte(`{"objectID":"1","price":12,"brand":"Acme"}`), next)
	want := []event.Filter{{Facet: "brand", Value: "Acme"}, {Facet: "price", Value: "0-50"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("filters %v, error %v, want %v", got, err, want)
	}
}

func TestBandsOfValues(t *testing.T) {
	settings := catalog.Settings{AttributesForFaceting: []string{"price", "offers.price", "brand"}, NumericBands: prices, Version: 1}
	tests := []struct {
		record  string
		want    []string
		without int
	}{
		{`{"price":-0.01}`, []string{"<0"}, 0},
		{`{"price":0}`, []string{"0-50"}, 0},
		{`{"price":-0}`, []string{"0-50"}, 0},
		{`{"price":49.999}`, []string{"0-50"}, 0},
		{`{"price":50}`, []string{"50-100"}, 0},
		{`{"price":5e1}`, []string{"50-100"}, 0},
		{`{"price":"50.00"}`, []string{"50-100"}, 0},
		{`{"price":100}`, []string{"100+"}, 0},
		{`{"price":1e308}`, []string{"100+"}, 0},
		{`{"price":[10,20,"120",null,""]}`, []string{"0-50", "100+"}, 0},
		{`{"price":1e999}`, nil, 1},
		{`{"price":"1e999"}`, nil, 1},
		{`{"price":["12 EUR"," 12","+12","012",".5","0x10","1_000","Inf","NaN",true,60]}`, []string{"50-100"}, 10},
		{`{"price":null}`, nil, 0},
	}
	for _, tt := range tests {
		filters, err := catalog.Filters([]byte(tt.record), settings)
		var got []string
		for _, f := range filters {
			got = append(got, f.Value)
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, error %v; want %q", tt.record, got, err, tt.want)
		}
		plan, err := catalog.NewPlan([]catalog.Action{{Kind: catalog.AddObject, ObjectID: "1", Record: []byte(tt.record)}}, nil, settings)
		if err != nil || plan.Left.NotNumbers["price"] != tt.without {
			t.Errorf("%s: %v values are no numbers, error %v; want %d", tt.record, plan.Left.NotNumbers, err, tt.without)
		}
	}
	filters, err := catalog.Filters([]byte(`{"offers":{"price":12},"brand":"12"}`), settings)
	want := []event.Filter{{Facet: "brand", Value: "12"}, {Facet: "offers.price", Value: "12"}}
	if diff := cmp.Diff(want, filters); err != nil || diff != "" {
		t.Errorf("facets without bands, error %v (-want +got):\n%s", err, diff)
	}
}

// Facets that the settings name and that exceed a limit are counted; others have no filters
// by design.
func TestDroppedFacetsAreCounted(t *testing.T) {
	long, values := strings.Repeat("x", 1001), `["0"`
	for i := range 1000 {
		values += fmt.Sprintf(`,"%d"`, i+1)
	}
	named := catalog.Settings{Version: 1, AttributesForFaceting: []string{"a", "b.c", "none"}}
	for record, want := range map[string]map[string]int{
		`{"a":"x","other":"` + long + `"}`:                    nil,
		`{"a":["x","` + long + `"],"b":{"c":"` + long + `"}}`: {"a": 2, "b.c": 2},
		`{"a":` + values + `]}`:                               {"a": 2},
	} {
		for settings, want := range map[*catalog.Settings]map[string]int{&named: want, {}: nil} {
			plan, err := catalog.NewPlan([]catalog.Action{{Kind: catalog.AddObject, ObjectID: "1", Record: []byte(record)},
				{Kind: catalog.AddObject, ObjectID: "2", Record: []byte(record)}}, nil, *settings)
			if err != nil || !maps.Equal(plan.Left.Dropped, want) {
				t.Errorf("%.30s: dropped %v, %v; want %v", record, plan.Left.Dropped, err, want)
			}
		}
	}
}

// A number is in the band whose range holds it, and in no other; the name of a band
// gives its range back.
func TestBandsHoldEachNumberOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Float64Range(-1e15, 1e15), rapid.Map(rapid.IntRange(-5, 5), func(i int) float64 { return float64(i) })),
			1, 8, func(n float64) float64 { return n + 0 }).Draw(t, "limits")
		for i := range limits {
			limits[i] += 0
		}
		slices.Sort(limits)
		bands := catalog.Bands{"price": limits}
		n := rapid.OneOf(rapid.Float64(), rapid.SampledFrom(limits)).Draw(t, "number")
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return
		}
		name := bands.Of("price", n)
		r, ok := bands.Range("price", name)
		if !ok || r.String() != name {
			t.Fatalf("no range for %q", name)
		}
		if from, ok := r.From(); ok && n < from {
			t.Fatalf("%v is in %q, which begins at %v", n, name, from)
		}
		if below, ok := r.Below(); ok && n >= below {
			t.Fatalf("%v is in %q, which ends at %v", n, name, below)
		}
	})
	for _, name := range []string{"", "50", "0-100", "<50", "50+", "100", "0 - 50"} {
		if r, ok := prices.Range("price", name); ok {
			t.Errorf("%q is %v, want no band", name, r)
		}
	}
	if r, ok := prices.Range("brand", "0-50"); ok {
		t.Errorf("a facet without bands has %v", r)
	}
}

func TestDecodeBands(t *testing.T) {
	many, long := make([]string, catalog.MaxBandedFacets+1), make([]string, catalog.MaxBandLimits+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"f%d":[1]`, i)
	}
	for i := range long {
		long[i] = strconv.Itoa(i)
	}
	tests := []struct {
		body  string
		want  catalog.Bands
		fault string // empty: none
	}{
		{`{}`, nil, ""},
		{`{"numericBands":null}`, catalog.Bands{}, ""},
		{`{"numericBands":{}}`, catalog.Bands{}, ""},
		{`{"numericBands":{"filterOnly(price)":[-0, 1.5, 2e2]}}`, catalog.Bands{"price": {0, 1.5, 200}}, ""},
		{`{"numericBands":[1]}`, nil, "must be an object"},
		{`{"numericBands":{"price":7}}`, nil, "must be an object"},
		{`{"numericBands":{"price":[]}}`, nil, `"price" has 0 numbers, 1 to 100`},
		{`{"numericBands":{"price":null}}`, nil, `"price" has 0 numbers`},
		{`{"numericBands":{"price":["50"]}}`, nil, `holds "50", which is no number`},
		{`{"numericBands":{"price":[1e16]}}`, nil, "from -1000000000000000 to 1000000000000000"},
		{`{"numericBands":{"price":[1e999]}}`, nil, "no number from"},
		{`{"numericBands":{"price":[50,0]}}`, nil, "must ascend, but 0 comes after 50"},
		{`{"numericBands":{"price":[0,-0]}}`, nil, "must ascend"},
		{`{"numericBands":{"price":[1],"searchable(price)":[2]}}`, nil, "twice"},
		{`{"numericBands":{"":[1]}}`, nil, "or none"},
		{`{"numericBands":{` + strings.Join(many, ",") + `}}`, nil, "has 51 facets, at most 50"},
		{`{"numericBands":{"price":[` + strings.Join(long, ",") + `]}}`, nil, "has 101 numbers, 1 to 100"},
	}
	for _, tt := range tests {
		c, err := catalog.DecodeSettings([]byte(tt.body))
		var refusal *fault.Error
		switch {
		case tt.fault == "" && err != nil, tt.fault != "" && (!errors.As(err, &refusal) || !strings.Contains(refusal.Message, tt.fault)):
			t.Errorf("%.60s: error %v, want %q", tt.body, err, tt.fault)
		case tt.fault == "":
			if diff := cmp.Diff(tt.want, c.NumericBands); diff != "" {
				t.Errorf("%.60s (-want +got):\n%s", tt.body, diff)
			}
		}
	}
}

// A version counts changes, that of the bands only changes of bands.
func TestSettingsAfterAChange(t *testing.T) {
	old := catalog.Settings{AttributesForFaceting: []string{"price"}, NumericBands: prices, BandsVersion: 2, Version: 5}
	tests := []struct {
		name   string
		change catalog.Change
		want   catalog.Settings
	}{
		{"nothing", catalog.Change{}, old},
		{"equal", catalog.Change{AttributesForFaceting: []string{"price"}, NumericBands: catalog.Bands{"price": {0, 50, 100}}}, old},
		{"attributes", catalog.Change{AttributesForFaceting: []string{}},
			catalog.Settings{AttributesForFaceting: []string{}, NumericBands: prices, BandsVersion: 2, Version: 6}},
		{"bands", catalog.Change{NumericBands: catalog.Bands{"price": {1}}},
			catalog.Settings{AttributesForFaceting: []string{"price"}, NumericBands: catalog.Bands{"price": {1}}, BandsVersion: 6, Version: 6}},
		{"no bands", catalog.Change{NumericBands: catalog.Bands{}},
			catalog.Settings{AttributesForFaceting: []string{"price"}, BandsVersion: 6, Version: 6}},
	}
	for _, tt := range tests {
		got, changed, err := tt.change.After(old)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" || changed != (got.Version != old.Version) {
			t.Errorf("%s: changed %v, error %v (-want +got):\n%s", tt.name, changed, err, diff)
		}
	}
}
