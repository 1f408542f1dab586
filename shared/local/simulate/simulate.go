// Package simulate orders documents as Algolia, Typesense and Elasticsearch order
// them under a boost. These servers cannot run everywhere, so tests and the
// demo compare what a boost promises with what its engine would do. Each function
// follows the published documentation of its engine, or, for Typesense, also its
// source, and refuses what it does not know. The package keeps nothing.
package simulate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Document is one match of a search, before the boost. All documents match the
// words of the search equally well where an engine ranks by that before it ranks
// by the boost.
type Document struct {
	ID     string
	Text   float64             // the engine's own score, 0 or above
	Facets map[string][]string // the values of each attribute, by the engine's name
}

// Hit is a document in its place. Score is what its engine computed from the
// boost: a sum of filter scores (Algolia), the value of _eval (Typesense), or
// the product with the text score (Elasticsearch).
type Hit struct {
	ID    string
	Score float64
}

// has reports whether a document has a value of a facet. Algolia compares values
// without their case, and Elasticsearch compares them exactly.
func (d Document) has(facet, value string, equal func(a, b string) bool) bool {
	return slices.ContainsFunc(d.Facets[facet], func(v string) bool { return equal(v, value) })
}

// exactly is the comparison of keywords.
func exactly(a, b string) bool { return a == b }

// row is a document with what it is sorted by, the most important number first.
type row struct {
	hit  Hit
	keys []float64
}

// sortRows sorts rows by their keys, the highest first, and equal ones by ID.
func sortRows(rows []row) {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(slices.Compare(b.keys, a.keys), strings.Compare(a.hit.ID, b.hit.ID))
	})
}

func order(rows []row) []Hit {
	sortRows(rows)
	hits := make([]Hit, len(rows))
	for i, r := range rows {
		hits[i] = r.hit
	}
	return hits
}

// decode reads one JSON value, and refuses members that it does not know.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("decode the query: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the query has more than one JSON value")
	}
	return nil
}
