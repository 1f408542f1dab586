package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
)

// PrivateFacets are an app's facets that no boost shows, by the index whose
// settings list them, as they were sent. An index without any is absent.
//
// They belong to the app and not to the settings of an index: a profile is of no
// index, so a facet is private if any index lists it, and each reader of the app
// knows all of them.
type PrivateFacets map[string][]string

// maxPrivateBytes bounds the JSON of an app's private facets: the app is read with
// most requests, and its document holds them beside the strategy.
const maxPrivateBytes = 64 << 10

// ErrTooManyPrivate says that an app has as many private facets as it may.
var ErrTooManyPrivate error = fault.New(fault.Invalid,
	"The privateFacets of all indexes and the names of these indexes have more than %d bytes of JSON: list a "+
		"facet in the settings of one index, which holds for all",
	maxPrivateBytes)

// With returns p with those of an index replaced, or ErrTooManyPrivate.
func (p PrivateFacets) With(index string, facets []string) (PrivateFacets, error) {
	with := maps.Clone(p)
	if with == nil {
		with = PrivateFacets{}
	}
	if with[index] = slices.Clone(facets); len(facets) == 0 {
		delete(with, index)
	}
	text, err := json.Marshal(with)
	if err != nil {
		return nil, fmt.Errorf("encode private facets: %w", err)
	}
	switch {
	case len(text) > maxPrivateBytes:
		return nil, fmt.Errorf("index %q: %w", index, ErrTooManyPrivate)
	case len(with) == 0:
		with = nil
	}
	return with, nil
}

// Union returns the facets that any index lists. An entry such as filterOnly(x)
// means the facet x, and also a facet of that very name.
func (p PrivateFacets) Union() map[string]bool {
	all := make(map[string]bool)
	for _, facets := range p {
		for _, f := range facets {
			all[f], all[catalog.Facet(f)] = true, true
		}
	}
	return all
}
