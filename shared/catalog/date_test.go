package catalog_test

import (
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
		`{"at":"1960-01-01"}`:                time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC),
		`{"objectID":"1","at":null,"b":2}`:   {},
		`{"objectID":"1"}`:                   {},
		`{"at":""}`:                          {},
		`{"at":"yesterday"}`:                 {},
		`{"at":"NaN"}`:                       {},
		`{"at":"Inf"}`:                       {},
		`{"at":1e300}`:                       {},
		`{"at":-1e300}`:                      {},
		`{"at":true}`:                        {},
		`{"at":["2026-11-20"]}`:              {},
		`{"at":{"at":"2026-11-20"}}`:         {},
		`{"at`:                               {},
		`[]`:                                 {},
	} {
		ms, ok := catalog.Date([]byte(record), "at")
		if ok == want.IsZero() || ok && !time.UnixMilli(ms).Equal(want) {
			t.Errorf("%s: %s, %v, want %s", record, time.UnixMilli(ms).UTC(), ok, want)
		}
	}
}

func TestDateOfNestedAttribute(t *testing.T) {
	for _, record := range []string{
		`{"meta":{"published":{"at":86400}}}`,
		`{"meta.published":{"at":86400}}`,
		`{"meta":{"published.at":86400}}`,
		`{"meta":{"other":1},"meta.published.at":86400}`,
	} {
		if ms, ok := catalog.Date([]byte(record), "meta.published.at"); !ok || ms != 86_400_000 {
			t.Errorf("%s: %d, %v, want a day after 1970", record, ms, ok)
		}
	}
	if ms, ok := catalog.Date([]byte(`{"meta":{"published":5}}`), "meta.published.at"); ok {
		t.Errorf("an attribute that is missing: %d", ms)
	}
}
