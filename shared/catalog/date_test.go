package catalog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/catalog"
)

func TestDate(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for record, want := range map[string]time.Time{
		`{"at":"2026-11-20T12:00:00Z"}`:      noon,
		`{"at":"2026-11-20T13:00:00+01:00"}`: noon,
		`{"at":"2026-11-20T12:00:00.250Z"}`:  noon.Add(250 * time.Millisecond),
		`{"at":"2026-11-20T12:00:00"}`:       noon,
		`{"at":"2026-11-20 12:00:00"}`:       noon,
		`{"at":"2026-11-20"}`:                noon.Add(-12 * time.Hour),
		`{"at":1795176000}`:                  noon,
		`{"at":1795176000000}`:               noon,
		`{"at":1.795176e9}`:                  noon,
		`{"at":"1795176000"}`:                noon,
		`{"at":1795176000000000}`:            noon,
		`{"at":"1795176000000000000"}`:       noon,
		`{"at":"2026-11-20 09:00:00 -0300"}`: noon,
		`{"at":"2026-11-20T12:00Z"}`:         noon,

		`{"at":"Fri, 20 Nov 2026 12:00:00 GMT"}`: noon, // of RSS
		`{"at":"2026-11-20 12:00:00 UTC"}`:       noon, // of BigQuery

		`{"at":"1960-01-01"}`:              time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC),
		`{"at":"2026-11-20 12:00:00 EST"}`: {},
		`{"at":0}`:                         {},
		`{"at":2026}`:                      {},
		`{"at":"20261120"}`:                {},
		`{"at":-315619200}`:                {},
		`{"at":"0001-01-01T00:00:00Z"}`:    {},
		`{"objectID":"1","at":null,"b":2}`: {},
		`{"objectID":"1"}`:                 {},
		`{"at":""}`:                        {},
		`{"at":"yesterday"}`:               {},
		`{"at":"NaN"}`:                     {},
		`{"at":"Inf"}`:                     {},
		`{"at":1e300}`:                     {},
		`{"at":-1e300}`:                    {},
		`{"at":true}`:                      {},
		`{"at":["2026-11-20"]}`:            {},
		`{"at":{"at":"2026-11-20"}}`:       {},
		`{"at`:                             {},
		`[]`:                               {},
	} {
		ms, ok := catalog.Date([]byte(record), "at")
		if ok == want.IsZero() || ok && !time.UnixMilli(ms).Equal(want) {
			t.Errorf("%s: %s, %v, want %s", record, time.UnixMilli(ms).UTC(), ok, want)
		}
	}
}

func TestDateOfNestedAttribute(t *testing.T) {
	for _, record := range []string{
		`{"meta":{"published":{"at":1795176000}}}`,
		`{"meta.published":{"at":1795176000}}`,
		`{"meta":{"published.at":1795176000}}`,
		`{"meta":{"other":1},"meta.published.at":1795176000}`,
	} {
		if ms, ok := catalog.Date([]byte(record), "meta.published.at"); !ok || ms != 1_795_176_000_000 {
			t.Errorf("%s: %d, %v, want 1795176000000", record, ms, ok)
		}
	}
	if ms, ok := catalog.Date([]byte(`{"meta":{"published":5}}`), "meta.published.at"); ok {
		t.Errorf("an attribute that is missing: %d", ms)
	}
}

func TestNumbers(t *testing.T) {
	record := []byte(`{"price":49.9,"text":"12","none":"cheap","list":[1,"2",null,"x",{"a":1},3e2],"a":{"b":7,"c.d":8},"yes":true,"hex":"0x10","large":1e999}`)
	for attribute, want := range map[string]string{
		"price": "[49.9]", "text": "[12]", "none": "[]", "list": "[1 2 300]", "a.b": "[7]", "a.c.d": "[8]", "a": "[]", "yes": "[]",
		"missing": "[]", "hex": "[]", "large": "[]",
	} {
		if got := fmt.Sprint(catalog.Numbers(record, attribute)); got != want {
			t.Errorf("%s: %s, want %s", attribute, got, want)
		}
	}
	if got := catalog.Numbers([]byte("no JSON"), "price"); got != nil {
		t.Error(got)
	}
}
