package simulate

import (
	"fmt"
	"strings"
	"unicode"
)

// Limits of Typesense, from its source.
const (
	typesenseSortFields = 3   // of sort_by
	typesenseOperators  = 100 // of one clause: --filter-by-max-ops
	typesenseBucketed   = 250 // results that are put into buckets
)

// sortField is one part of sort_by: a text match in a number of buckets, or the
// clauses of _eval.
type sortField struct {
	buckets int
	clauses []clause
}

type clause struct {
	holds func(Document) bool
	score float64
}

// Typesense orders documents by the search parameter sort_by, {"sort_by":"..."},
// whose fields are _text_match(buckets: N):desc and _eval([(filter):score, ...]):desc.
// The first clause that holds gives a document's score: scores are not added up.
//
// A filter := compares words: neither case nor punctuation counts.
//
// The best 250 documents by text are cut into N buckets of equal size; all of a
// bucket count as equal to its best one. Fewer documents than buckets are not
// cut. Documents beyond the first 250 keep their text score.
//
// It reads sort_by as Typesense 30 does.
func Typesense(docs []Document, query []byte) ([]Hit, error) { return typesense(docs, query, false) }

// Typesense29 is Typesense up to 29.0, whose parser of _eval takes a parenthesis in
// backticks for one of the language.
func Typesense29(docs []Document, query []byte) ([]Hit, error) { return typesense(docs, query, true) }

func typesense(docs []Document, query []byte, before30 bool) ([]Hit, error) {
	var q struct {
		SortBy string `json:"sort_by"`
	}
	if err := decode(query, &q); err != nil {
		return nil, err
	}
	fields := []sortField{{buckets: 0}} // without sort_by the order is that of the text
	if q.SortBy != "" {
		var err error
		if fields, err = parseSortBy(q.SortBy, before30); err != nil {
			return nil, fmt.Errorf("sort_by: %w", err)
		}
	}
	rows := make([]row, len(docs))
	for i, d := range docs {
		rows[i].hit.ID = d.ID
		d.Facets = spelled(d.Facets)
		for _, f := range fields {
			key := d.Text
			if f.clauses != nil {
				key = f.value(d)
				rows[i].hit.Score = key
			}
			rows[i].keys = append(rows[i].keys, key)
		}
	}
	sortRows(rows)
	for at, f := range fields {
		if f.buckets > 0 {
			fillBuckets(rows, at, f.buckets)
		}
	}
	return order(rows), nil
}

// value is the score of the first clause that holds for a document.
func (f sortField) value(d Document) float64 {
	for _, c := range f.clauses {
		if c.holds(d) {
			return c.score
		}
	}
	return 0
}

// fillBuckets gives the rows of a bucket the key of its best one. Rows are sorted.
func fillBuckets(rows []row, key, buckets int) {
	n := min(len(rows), typesenseBucketed)
	if n < buckets {
		return
	}
	size := n / buckets
	for start := 0; start < n; start += size {
		for i := start; i < min(start+size, n); i++ {
			rows[i].keys[key] = rows[start].keys[key]
		}
	}
}

// spelled returns the values of facets as Typesense compares them.
func spelled(facets map[string][]string) map[string][]string {
	all := make(map[string][]string, len(facets))
	for facet, values := range facets {
		for _, v := range values {
			all[facet] = append(all[facet], words(v))
		}
	}
	return all
}

// words returns the words of a text: in lower case, of letters, marks and digits,
// one space between them.
func words(text string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case unicode.In(r, unicode.Letter, unicode.Mark, unicode.Digit):
			return unicode.ToLower(r)
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, text)
	return strings.Join(strings.Fields(kept), " ")
}
