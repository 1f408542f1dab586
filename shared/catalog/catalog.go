// Package catalog turns the records of a customer's objects into filters.
//
// A record is a JSON object with an objectID. A filter is a facet and a value,
// such as brand:Apple. Events name objects by their objectIDs, and a strategy
// scores the filters of these objects. The settings of an index say which
// attributes of its records are facets.
//
// A client sends records in a batch of actions. [DecodeBatch] decodes it, and
// [NewPlan] merges its actions with the stored records into one change for each
// object. [Filters] returns the filters of a record under the settings.
//
// The package keeps no data. Records and their filters are stored in the table
// objects (see package store), in one row for each app, index and objectID.
// Settings are stored in the configuration (see package config).
package catalog

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// Limits of what a client may send. Those of names and IDs are Algolia's, if it
// publishes one, and fit into a row key and a column name.
const (
	// MaxBody is the maximum size in bytes of a batch, or of settings.
	MaxBody = 10_000_000
	// MaxActions is the maximum number of actions in a batch.
	MaxActions = 10_000
	// MaxRecord is the maximum size of a record in bytes, without insignificant
	// whitespace and with its objectID.
	MaxRecord = 100_000
	// MaxObjectID is the maximum length of an objectID in bytes.
	MaxObjectID = 512
	// MaxIndex is the maximum length of the name of an index in bytes.
	MaxIndex = 512
	// MaxFacet is the maximum length of a facet in bytes, as in a strategy. An
	// attribute with a longer path has no filters.
	MaxFacet = 500
	// MaxFacets is the maximum number of entries in attributesForFaceting.
	MaxFacets = 1000
	// MaxPrivateFacets is the maximum number of entries in privateFacets.
	MaxPrivateFacets = 100
)

// refuse returns the error for a request that a client must change.
func refuse(kind fault.Kind, format string, args ...any) *fault.Error {
	return fault.New(kind, format, args...)
}

// ValidIndex reports whether s can name an index: 1 to MaxIndex bytes of UTF-8.
func ValidIndex(s string) bool {
	return s != "" && len(s) <= MaxIndex && utf8.ValidString(s)
}

// lenient accepts the escape of an unpaired surrogate, which JavaScript writes
// for text that is cut within an emoji. It is read as U+FFFD.
var lenient = jsontext.AllowInvalidUTF8(true)

// unmarshal decodes the body of a request. It refuses a body that is too large,
// is not UTF-8, is not JSON, or has a key twice in one object.
func unmarshal(body []byte, v any) error {
	if len(body) > MaxBody {
		return refuse(fault.TooLarge, "the body has %d bytes, at most %d are accepted", len(body), MaxBody)
	}
	if reason := fault.NotUTF8(body); reason != "" {
		return refuse(fault.Malformed, "the body is not valid UTF-8: %s", reason)
	}
	err := json.Unmarshal(body, v, lenient)
	var semantic *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &semantic):
		return refuse(fault.Malformed, "%s has a wrong JSON type: %v", place(semantic.JSONPointer), semantic.JSONKind)
	default:
		return refuse(fault.Malformed, "the body is not valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
}

// place names a part of the body in a message.
func place(p jsontext.Pointer) string {
	if p == "" {
		return "the body"
	}
	return "the value at " + string(p)
}
