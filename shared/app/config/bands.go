package config

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
)

// NumericBands are the numeric bands of an app's indexes, by index. An index that never
// had any is absent.
//
// The settings of an index have them too, for the filters of its objects. The app has a
// copy for those who know no index: process compares it with each message, the jobs that
// give logged events new bands go by it, and a profile is of no index.
type NumericBands map[string]IndexBands

// IndexBands are the numeric bands of one index.
type IndexBands struct {
	// Version is catalog.Settings.BandsVersion.
	Version int64 `json:"version"`
	// Bands are empty once they were removed.
	Bands catalog.Bands `json:"bands,omitempty"`
	// Applied is the version whose bands all logged events have, of all events that a
	// re-enrichment reads. Below Version, one is due.
	Applied int64 `json:"applied,omitempty"`
}

// maxBandsBytes bounds the JSON of an app's numeric bands, for the reason that
// maxPrivateBytes has.
const maxBandsBytes = 64 << 10

// ErrTooManyBands says that an app has as many numeric bands as it may.
var ErrTooManyBands error = fault.New(fault.Invalid,
	"The numericBands of all indexes have more than %d bytes of JSON: use fewer numbers, or fewer facets", maxBandsBytes)

// With returns n with the bands of an index, or ErrTooManyBands.
func (n NumericBands) With(index string, s catalog.Settings) (NumericBands, error) {
	with := maps.Clone(n)
	if with == nil {
		with = NumericBands{}
	}
	with[index] = IndexBands{Version: s.BandsVersion, Bands: s.NumericBands, Applied: with[index].Applied}
	text, err := json.Marshal(with)
	if err != nil {
		return nil, fmt.Errorf("encode numeric bands: %w", err)
	}
	if len(text) > maxBandsBytes {
		return nil, fmt.Errorf("index %q: %w", index, ErrTooManyBands)
	}
	return with, nil
}

// Unapplied returns the indexes whose logged events may have filters of earlier bands,
// and the version of their bands.
func (n NumericBands) Unapplied() map[string]int64 {
	due := map[string]int64{}
	for index, b := range n {
		if b.Applied < b.Version {
			due[index] = b.Version
		}
	}
	return due
}

// Apply returns n after all logged events of some indexes have got the bands of these
// versions, and reports whether that changes n. A version that is no longer the
// current one changes nothing.
func (n NumericBands) Apply(versions map[string]int64) (NumericBands, bool) {
	applied, changed := maps.Clone(n), false
	for index, version := range versions {
		if b := n[index]; b.Version == version && b.Applied < version {
			b.Applied, changed = version, true
			applied[index] = b
		}
	}
	return applied, changed
}

// Has reports whether a facet of any index has bands.
func (n NumericBands) Has(facet string) bool {
	for _, b := range n {
		if len(b.Bands[facet]) > 0 {
			return true
		}
	}
	return false
}

// Range returns the numbers that a filter means, if it is a band of an index.
func (n NumericBands) Range(facet, value string) (catalog.Range, bool) {
	for _, b := range n {
		if r, ok := b.Bands.Range(facet, value); ok {
			return r, true // a name means the same numbers in all indexes
		}
	}
	return catalog.Range{}, false
}
