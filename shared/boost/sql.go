package boost

import (
	"strconv"
	"strings"
)

// maxIdentifier is the length at which PostgreSQL cuts names, in bytes.
const maxIdentifier = 63

// expression returns the factor as SQL with bound parameters: $1 is the impact,
// and every affinity has its value and its weight. Columns are of type text,
// text[] or jsonb: as JSON, an array contains its elements, and a text itself.
// NULL matches nothing.
func expression(terms []term, impact int) map[string]any {
	var s strings.Builder
	params := make([]any, 1, 1+2*len(terms))
	params[0] = float64(impact) / MaxImpact
	s.Grow(100 * len(terms))
	s.WriteString("(1 + $1::float8 * least(1, ")
	for i, t := range terms {
		if i > 0 {
			s.WriteString(" + ")
		}
		s.WriteString("case when to_jsonb(")
		s.WriteString(column(t))
		s.WriteString(") @> to_jsonb($")
		s.WriteString(strconv.Itoa(2*i + 2))
		s.WriteString("::text) then $")
		s.WriteString(strconv.Itoa(2*i + 3))
		s.WriteString("::float8 else 0 end")
		params = append(params, t.value, float64(t.weight)/unit)
	}
	s.WriteString("))")
	return map[string]any{"expression": s.String(), "params": params}
}

// column returns the quoted name of a column. A dot in a name of FieldMap
// separates the table from the column; a dot in a facet is part of its name.
func column(t term) string {
	quoted := strings.ReplaceAll(t.field, `"`, `""`)
	if t.mapped {
		quoted = strings.ReplaceAll(quoted, ".", `"."`)
	}
	return `"` + quoted + `"`
}

func postgresRefuses(t term) string {
	parts := []string{t.field}
	if t.mapped {
		parts = strings.Split(t.field, ".")
	}
	for _, part := range parts {
		switch {
		case part == "":
			return "an empty column name"
		case len(part) > maxIdentifier:
			return "a column name of more than 63 bytes"
		case strings.Contains(part, "\x00"):
			return "a column name with a NUL character"
		}
	}
	if strings.Contains(t.value, "\x00") {
		return "PostgreSQL stores no NUL characters"
	}
	return ""
}

// miniSearch returns data for a function boostDocument: a list and not an object
// by value, in which a document with the value "constructor" would find a
// function.
func miniSearch(terms []term, impact int) map[string]any {
	type weighted struct {
		Field  string  `json:"field"`
		Value  string  `json:"value"`
		Weight float64 `json:"weight"`
	}
	affinities := make([]weighted, 0, len(terms))
	for _, t := range terms {
		affinities = append(affinities, weighted{t.field, t.value, float64(t.weight) / unit})
	}
	return map[string]any{"impact": float64(impact) / MaxImpact, "affinities": affinities}
}
