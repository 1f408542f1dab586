package catalog

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// Settings say which attributes of an index's records are facets.
type Settings struct {
	// AttributesForFaceting are the dotted paths of attributes, as they were
	// sent. searchable(x), filterOnly(x) and afterDistinct(x) all name x: the
	// modifiers are meant for a search engine.
	AttributesForFaceting []string
	// Version counts the changes. 0 means that there are no settings. Every
	// attribute that is short enough is then a facet.
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

// DecodeSettings decodes a body that sets settings. Clients send all settings
// of their search engine. The engine keeps attributesForFaceting, as it was
// sent, and ignores the others. given is false if the body has no
// attributesForFaceting, which then does not change. null gives an empty list.
// The error is a *fault.Error.
func DecodeSettings(body []byte) (attributesForFaceting []string, given bool, err error) {
	var sent map[string]jsontext.Value
	if err := unmarshal(body, &sent); err != nil {
		return nil, false, err
	}
	if sent == nil {
		return nil, false, refuse(fault.Malformed, "the body must be a JSON object, got null")
	}
	value, given := sent["attributesForFaceting"]
	if !given {
		return nil, false, nil
	}
	list := []string{}
	if err := json.Unmarshal(value, &list, lenient); err != nil {
		return nil, false, refuse(fault.Invalid, "attributesForFaceting must be a list of strings")
	}
	if len(list) > MaxFacets {
		return nil, false, refuse(fault.Invalid, "attributesForFaceting has %d entries, at most %d are accepted", len(list), MaxFacets)
	}
	for i, entry := range list {
		if facet(entry) == "" {
			return nil, false, refuse(fault.Invalid, "attributesForFaceting[%d] names no attribute", i)
		}
		if len(entry) > MaxFacet {
			return nil, false, refuse(fault.Invalid, "attributesForFaceting[%d] has %d bytes, at most %d are accepted", i, len(entry), MaxFacet)
		}
	}
	return list, true, nil
}
