// Package openapi holds the description of the public API: as an OpenAPI 3.1
// document for programs, and as HTML pages for people, which are rendered from
// the same document.
//
// The document is embedded and keeps no data. Its source is in the folder spec;
// "go test ./shared/web/openapi -rewrite" builds it. Function docs serves both.
package openapi

import (
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/web/openapi/internal/tree"
)

//go:embed openapi.json
var document []byte

// Document returns the description as OpenAPI 3.1 in JSON, with the keys that only
// the pages read.
func Document() []byte { return slices.Clone(document) }

// Public returns the description for programs: in half the bytes, without the keys
// that begin with x-, since only the pages read these, and without line breaks.
func Public() ([]byte, error) {
	doc, err := decode()
	if err != nil {
		return nil, err
	}
	withoutExtensions(doc)
	return []byte(tree.Compact(doc)), nil
}

func withoutExtensions(v any) {
	switch v := v.(type) {
	case *tree.Object:
		for _, key := range slices.Clone(v.Keys()) {
			if strings.HasPrefix(key, "x-") {
				v.Delete(key)
			} else {
				withoutExtensions(v.Value(key))
			}
		}
	case []any:
		for _, one := range v {
			withoutExtensions(one)
		}
	}
}

func decode() (*tree.Object, error) {
	v, err := tree.Decode(document)
	if err != nil {
		return nil, err
	}
	doc, ok := v.(*tree.Object)
	if !ok {
		return nil, errors.New("the description of the API is not an object")
	}
	return doc, nil
}
