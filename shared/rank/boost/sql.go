package boost

import (
	"strconv"
	"strings"
)

// maxIdentifier is the length at which PostgreSQL cuts names, in bytes.
const maxIdentifier = 63

// expression returns the factor as SQL with bound parameters: $1 is the impact,
// and every affinity has its value, or the ends of its range, and its weight.
// Columns are of type text, text[] or jsonb: as JSON, an array contains its
// elements, and a text itself. A range also takes columns of numbers, and compares
// texts that hold a number. NULL matches nothing.
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
		bind := func(value any) string {
			params = append(params, value)
			return "$" + strconv.Itoa(len(params))
		}
		s.WriteString("case when ")
		if t.numbers != nil {
			s.WriteString(sqlRange(t, bind))
		} else {
			s.WriteString("to_jsonb(" + column(t) + ") @> to_jsonb(" + bind(t.value) + "::text)")
		}
		s.WriteString(" then " + bind(float64(t.weight)/unit) + "::float8 else 0 end")
	}
	s.WriteString("))")
	return map[string]any{"expression": s.String(), "params": params}
}

// sqlRange returns the condition that a number of a column lies in a range. In a path of
// JSON, an array has its elements, and what is no number is in no range.
func sqlRange(t term, bind func(any) string) string {
	var path, ends []string
	for _, e := range t.numbers.ends() {
		name := map[string]string{">=": "from", "<": "below"}[e.compare]
		path = append(path, "@.double() "+e.compare+" $"+name)
		ends = append(ends, "'"+name+"', "+bind(e.number)+"::float8")
	}
	return "jsonb_path_exists(to_jsonb(" + column(t) + "), '$ ? (" + strings.Join(path, " && ") +
		")', jsonb_build_object(" +
		strings.Join(ends, ", ") + "), true)"
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
// function. A band has the ends gte and lt of its range.
func miniSearch(terms []term, impact int) map[string]any {
	type weighted struct {
		Field  string   `json:"field"`
		Value  string   `json:"value"`
		From   *float64 `json:"gte,omitempty"`
		Below  *float64 `json:"lt,omitempty"`
		Weight float64  `json:"weight"`
	}
	affinities := make([]weighted, 0, len(terms))
	for _, t := range terms {
		w := weighted{Field: t.field, Value: t.value, Weight: float64(t.weight) / unit}
		if t.numbers != nil {
			for _, e := range t.numbers.ends() {
				if e.compare == ">=" {
					w.From = &e.number
				} else {
					w.Below = &e.number
				}
			}
		}
		affinities = append(affinities, w)
	}
	return map[string]any{"impact": float64(impact) / MaxImpact, "affinities": affinities}
}
