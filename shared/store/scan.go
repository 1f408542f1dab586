package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/affinity"
)

// Span is a part of one user's log: events from a time on.
type Span struct {
	User string
	From int64 // ms
}

// Sink gives the scorer that a user's events go to.
type Sink func(user string) *affinity.Scorer

// Bigtable takes filters of 20 KB. A branch is its column twice, as the two ends
// of a range, and what is around them.
const (
	maxFilterBytes = 16 << 10
	branchBytes    = 16
)

// ScoreLog reads the events of the spans and adds them to their users' scorers.
// Only the cells that the strategy names travel, and one empty cell a row that
// says the event is there.
func (s *Store) ScoreLog(ctx context.Context, app string, spans []Span, c *affinity.Compiled, scorer Sink) error {
	ranges := make(bigtable.RowRangeList, len(spans))
	for i, sp := range spans {
		prefix := userKey(app, sp.User)
		ranges[i] = bigtable.NewRange(string(appendLogTime([]byte(prefix), sp.From)), prefixEnd(prefix))
	}
	sc := scan{app: app, scorer: scorer, sections: map[string]affinity.Section{}}
	err := s.events.ReadRows(ctx, ranges, sc.row, bigtable.RowFilter(s.strategyFilter(c)))
	if err := errors.Join(err, sc.err); err != nil {
		return fmt.Errorf("read log of %s: %w", app, err)
	}
	return nil
}

// scan is the state of one ScoreLog. Rows come in key order, so that users do
// not interleave.
type scan struct {
	app      string
	scorer   Sink
	user     string
	current  *affinity.Scorer
	sections map[string]affinity.Section // by column
	err      error
}

func (sc *scan) row(r bigtable.Row) bool {
	_, user, ms, _, err := parseLogKey(r.Key())
	if err != nil {
		sc.err = err
		return false
	}
	if sc.current == nil || user != sc.user {
		sc.user = strings.Clone(user)
		sc.current = sc.scorer(sc.user)
	}
	if !sc.current.Begin(ms) {
		return true
	}
	for _, item := range r[familyFilters] {
		if sc.err = sc.cell(item); sc.err != nil {
			sc.err = fmt.Errorf("row %q column %q: %w", r.Key(), item.Column, sc.err)
			return false
		}
	}
	return true
}

func (sc *scan) cell(item bigtable.ReadItem) error {
	section, known := sc.sections[item.Column]
	if !known {
		typ, name, facet, err := parseQualifier(item.Column[len(familyFilters)+1:])
		if err != nil {
			return err
		}
		section = sc.current.Section(typ, name, facet)
		sc.sections[item.Column] = section
	}
	if !section.OK() {
		return nil
	}
	return eachCount(item.Value, func(value []byte, n int) { sc.current.Add(section, value, n) })
}

// strategyFilter passes the columns (type, name, facet) that the strategy
// scores, and strips the original event to an empty cell, which makes every
// event visible, scored or not. Branches are disjoint: a cell that two branches
// pass would be counted twice.
func (s *Store) strategyFilter(c *affinity.Compiled) bigtable.Filter {
	// Column ranges everywhere: a family filter is a regular expression.
	present := bigtable.ChainFilters(bigtable.ColumnRangeFilter(familyOriginal, "", ""), bigtable.StripValueFilter())
	pairs, facets := c.Pairs(), c.Facets()
	branches, size := []bigtable.Filter{present}, 0
	for _, p := range pairs {
		for _, f := range facets {
			q := qualifier(p.Type, p.Name, f)
			branches = append(branches, bigtable.ColumnRangeFilter(familyFilters, q, q+"\x00"))
			size += branchBytes + 2*len(q)
		}
	}
	switch {
	case len(branches) == 1:
		return present
	case len(branches) > s.filterColumns+1 || size > maxFilterBytes:
		return bigtable.InterleaveFilters(present, bigtable.ColumnRangeFilter(familyFilters, "", ""))
	}
	return bigtable.InterleaveFilters(branches...)
}

// parseQualifier undoes qualifier.
func parseQualifier(q string) (typ, name, facet string, err error) {
	var fields [3]string
	rest, more := q, true
	for i := range fields {
		if !more {
			return "", "", "", fmt.Errorf("column %q: want three CSV fields", q)
		}
		if fields[i], rest, more, err = cutCSV(rest); err != nil {
			return "", "", "", fmt.Errorf("column %q: %w", q, err)
		}
	}
	if more {
		return "", "", "", fmt.Errorf("column %q: more than three CSV fields", q)
	}
	return fields[0], fields[1], fields[2], nil
}

func cutCSV(s string) (field, rest string, more bool, err error) {
	if !strings.HasPrefix(s, `"`) {
		field, rest, more = strings.Cut(s, ",")
		return field, rest, more, nil
	}
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			i++
			continue
		}
		field = strings.ReplaceAll(s[1:i], `""`, `"`)
		if i+1 == len(s) {
			return field, "", false, nil
		}
		if s[i+1] == ',' {
			return field, s[i+2:], true, nil
		}
		break
	}
	return "", "", false, errors.New("quotes are not closed")
}

// prefixEnd is the first key after all keys that begin with prefix; prefix ends
// in a comma here.
func prefixEnd(prefix string) string {
	return prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
}
