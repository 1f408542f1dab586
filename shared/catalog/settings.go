package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// Settings say which attributes of an index's records are facets, and which of these
// hold numbers that become bands.
type Settings struct {
	// AttributesForFaceting are the dotted paths of attributes, as they were
	// sent. searchable(x), filterOnly(x) and afterDistinct(x) all name x: the
	// modifiers are meant for a search engine. Nil means that they were never set: every
	// attribute that is short enough is then a facet.
	AttributesForFaceting []string
	// NumericBands are the bands of facets that hold numbers. Facets are written
	// without modifiers.
	NumericBands Bands
	// BandsVersion is the version at which NumericBands last changed, 0 if they never
	// did.
	BandsVersion int64
	// Version counts the changes. 0 means that there are no settings.
	Version int64
}

// modifiers are what Algolia allows around the path of an attribute.
var modifiers = []string{"searchable(", "filterOnly(", "afterDistinct("}

// facet returns the attribute that an entry of attributesForFaceting names.
func facet(entry string) string {
	entry = strings.TrimSpace(entry)
	for _, m := range modifiers {
		inner, opened := strings.CutPrefix(entry, m)
		inner, closed := strings.CutSuffix(inner, ")")
		if opened && closed {
			return facet(inner)
		}
	}
	return entry
}

// Facet returns the attribute that an entry of settings names: entry itself, or x
// for searchable(x), filterOnly(x) and afterDistinct(x).
func Facet(entry string) string { return facet(entry) }

// Change is what a body that sets settings changes. A list that the body does not
// have is nil, and does not change. An empty list is not nil.
type Change struct {
	// AttributesForFaceting are as in Settings, at most MaxFacets.
	AttributesForFaceting []string
	// PrivateFacets are the facets of the index that no boost shows, at most
	// MaxPrivateFacets, written as attributes for faceting are.
	PrivateFacets []string
	// NumericBands are as in Settings, at most MaxBandedFacets facets of MaxBandLimits
	// numbers.
	NumericBands Bands
}

// After returns the settings that follow old, and reports whether they differ. It
// ignores private facets. The error is a *fault.Error: bands of an attribute that is no
// facet.
func (c Change) After(old Settings) (Settings, bool, error) {
	next := old
	if c.AttributesForFaceting != nil {
		next.AttributesForFaceting = slices.Clone(c.AttributesForFaceting)
	}
	if c.NumericBands != nil {
		next.NumericBands = maps.Clone(c.NumericBands)
		if err := next.checkBands(); err != nil {
			return old, false, err
		}
	}
	banded := !next.NumericBands.Equal(old.NumericBands)
	first := old.AttributesForFaceting == nil && c.AttributesForFaceting != nil
	if !first && !banded && slices.Equal(old.AttributesForFaceting, next.AttributesForFaceting) {
		return old, false, nil
	}
	next.Version++
	if banded {
		next.BandsVersion = next.Version
	}
	return next, true, nil
}

// checkBands refuses bands of an attribute that is no facet of the index: they would
// never hold a value.
func (s Settings) checkBands() error {
	if s.AttributesForFaceting == nil {
		return nil
	}
	facets := map[string]bool{}
	for _, entry := range s.AttributesForFaceting {
		facets[facet(entry)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.NumericBands)) {
		if !facets[name] {
			return refuse(fault.Invalid, "numericBands names %q, which attributesForFaceting does not list: list it there too", clip(name))
		}
	}
	return nil
}

// DecodeSettings decodes a body that sets settings. Clients send all settings
// of their search engine. The engine keeps attributesForFaceting and
// privateFacets, as they were sent, and numericBands, and ignores the others. null is
// an empty list, or no bands.
// The error is a *fault.Error.
func DecodeSettings(body []byte) (Change, error) {
	var sent map[string]jsontext.Value
	if err := unmarshal(body, &sent); err != nil {
		return Change{}, err
	}
	if sent == nil {
		return Change{}, refuse(fault.Malformed, "the body must be a JSON object, got null")
	}
	var c Change
	var err error
	if c.AttributesForFaceting, err = entries(sent, "attributesForFaceting", MaxFacets); err != nil {
		return Change{}, err
	}
	if c.PrivateFacets, err = entries(sent, "privateFacets", MaxPrivateFacets); err != nil {
		return Change{}, err
	}
	if c.NumericBands, err = decodeBands(sent); err != nil {
		return Change{}, err
	}
	return c, nil
}

// entries returns a list of attributes, or nil if it was not sent.
func entries(sent map[string]jsontext.Value, name string, most int) ([]string, error) {
	value, given := sent[name]
	if !given {
		return nil, nil
	}
	list := []string{}
	if err := json.Unmarshal(value, &list, lenient); err != nil {
		return nil, refuse(fault.Invalid, "%s must be a list of strings", name)
	}
	if len(list) > most {
		return nil, refuse(fault.Invalid, "%s has %d entries, at most %d are accepted", name, len(list), most)
	}
	for i, entry := range list {
		if facet(entry) == "" {
			return nil, refuse(fault.Invalid, "%s[%d] names no attribute", name, i)
		}
		if len(entry) > MaxFacet {
			return nil, refuse(fault.Invalid, "%s[%d] has %d bytes, at most %d are accepted", name, i, len(entry), MaxFacet)
		}
	}
	if list == nil { // null
		list = []string{}
	}
	return list, nil
}
