// Package catalog holds what is known of the objects that events name: the
// records that customers send, the settings of an index, and the rules by which
// a record becomes filters such as brand:Apple, which is all that scoring reads.
//
// It is separate because three parts must agree on these rules: the function
// that takes records in, ingestion, which turns the objectIDs of an event into
// filters, and the re-enrichment that does so again when settings change. It
// stores nothing itself: records lie with their filters in the table of
// objects, one row per app, index and objectID, and settings lie in the
// configuration.
package catalog

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// Limits of what a client may send. Those of names and ids are Algolia's where
// it publishes one, and all of them fit a row key or a column name.
const (
	// MaxBody is the most bytes one batch or one settings body may have.
	MaxBody = 10_000_000
	// MaxActions is the most actions one batch may hold.
	MaxActions = 10_000
	// MaxRecord is the most bytes a record may have, without insignificant
	// whitespace and with its objectID.
	MaxRecord = 100_000
	// MaxObjectID is the most bytes an objectID may have.
	MaxObjectID = 512
	// MaxIndex is the most bytes the name of an index may have.
	MaxIndex = 512
	// MaxFacet is the most bytes the path of an attribute may have to become a
	// facet: the longest facet that a strategy can name.
	MaxFacet = 500
	// MaxFacets is the most entries attributesForFaceting may have.
	MaxFacets = 1000
)

func refuse(kind fault.Kind, format string, args ...any) *fault.Error {
	return fault.New(kind, format, args...)
}

// ValidIndex says whether s can name an index: 1 to 512 bytes of UTF-8.
func ValidIndex(s string) bool {
	return s != "" && len(s) <= MaxIndex && utf8.ValidString(s)
}

// lenient lets escapes through that stand for half a character, which
// JavaScript writes for a text cut within an emoji. They read as U+FFFD.
var lenient = jsontext.AllowInvalidUTF8(true)

// unmarshal decodes a request's body. Bodies that are too large, are not UTF-8,
// are no JSON, or say a key twice are refused.
func unmarshal(body []byte, v any) error {
	if len(body) > MaxBody {
		return refuse(fault.TooLarge, "the body has %d bytes, at most %d are accepted", len(body), MaxBody)
	}
	if !utf8.Valid(body) {
		return refuse(fault.Malformed, "the body is not valid UTF-8")
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

// place names a part of the body to a reader.
func place(p jsontext.Pointer) string {
	if p == "" {
		return "the body"
	}
	return "the value at " + string(p)
}
