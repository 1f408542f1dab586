package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/history"
)

// Span is a range of one user's log, from From up to, but not including, To;
// history.End is after every event. One that ends where it begins, or before, is
// empty. A user may have several.
type Span struct {
	User     string
	From, To history.Pos
}

// Sink gives the scorer that a user's events go to.
type Sink func(user string) *affinity.Scorer

// Bigtable takes filters of 20 KB. A branch is its column twice, as the two ends
// of a range, and what is around them.
const (
	maxFilterBytes = 16 << 10
	branchBytes    = 16
)

// LogRow is an event as it was read from the log, with as many of its filters as
// were asked for. It may be kept.
type LogRow struct {
	history.Pos
	key     string
	filters []bigtable.ReadItem
}

// Event decodes the row. Type and name are empty if no filters of it were read:
// they are part of the columns. Its texts may be parts of the row. An error names
// the damaged cell.
func (r LogRow) Event() (affinity.Event, error) {
	ev := affinity.Event{Time: r.Time, Counts: slices.Grow[[]affinity.Count](nil, len(r.filters))}
	for _, item := range r.filters {
		typ, name, facet, err := parseQualifier(item.Column[len(familyFilters)+1:])
		if err != nil {
			return ev, fmt.Errorf("row %q: %w", r.key, err)
		}
		ev.Type, ev.Name = event.Type(typ), name
		err = eachCount(item.Value, func(value []byte, n int) {
			ev.Counts = append(ev.Counts, affinity.Count{Facet: facet, Value: string(value), N: n})
		})
		if err != nil {
			return ev, fmt.Errorf("row %q column %q: %w", r.key, item.Column, err)
		}
	}
	return ev, nil
}

// Size is about how many bytes of memory the row takes.
func (r LogRow) Size() int {
	size := len(r.key) + 64
	for _, item := range r.filters {
		size += len(item.Value) + len(item.Column) + 96
	}
	return size
}

// LogScorer adds rows of the log to scorers of one strategy.
type LogScorer struct {
	c        *affinity.Compiled
	sections map[string]affinity.Section // by column
}

// NewLogScorer makes one for a strategy, to be used by one goroutine.
func NewLogScorer(c *affinity.Compiled) *LogScorer {
	return &LogScorer{c, map[string]affinity.Section{}}
}

// Score adds a row to a scorer of the same strategy. After an error part of the
// row may have been added.
func (ls *LogScorer) Score(r LogRow, sc *affinity.Scorer) error {
	if !sc.Begin(r.Time) {
		return nil
	}
	for _, item := range r.filters {
		section, known := ls.sections[item.Column]
		if !known {
			typ, name, facet, err := parseQualifier(item.Column[len(familyFilters)+1:])
			if err != nil {
				return fmt.Errorf("row %q: %w", r.key, err)
			}
			section = sc.Section(typ, name, facet)
			ls.sections[item.Column] = section
		}
		if !section.OK() {
			continue
		}
		if err := eachCount(item.Value, func(value []byte, n int) { sc.Add(section, value, n) }); err != nil {
			return fmt.Errorf("row %q column %q: %w", r.key, item.Column, err)
		}
	}
	return nil
}

// ReadLog reads the events of the spans whole, without their originals. Spans
// that are in the order of the log, users in UserOrder, are read in that order.
// An error of fn ends the reading and is returned.
func (s *Store) ReadLog(ctx context.Context, app string, spans []Span, fn func(user string, row LogRow) error) error {
	return s.readLog(ctx, app, spans, wholeEvents, func(user string, row LogRow, _ bigtable.Row) error { return fn(user, row) })
}

// ReadLogFor reads the events of the spans with those filters that a strategy
// scores: what else they have does not travel.
func (s *Store) ReadLogFor(ctx context.Context, app string, spans []Span, c *affinity.Compiled, fn func(user string, row LogRow) error) error {
	return s.readLog(ctx, app, spans, s.strategyFilter(c), func(user string, row LogRow, _ bigtable.Row) error { return fn(user, row) })
}

// ReadOriginals reads the events of the spans whole, each with the event as it
// was sent.
func (s *Store) ReadOriginals(ctx context.Context, app string, spans []Span, fn func(user string, row LogRow, original []byte) error) error {
	return s.readLog(ctx, app, spans, bigtable.LatestNFilter(1), func(user string, row LogRow, all bigtable.Row) error {
		var original []byte
		for _, item := range all[familyOriginal] {
			original = item.Value
		}
		return fn(user, row, original)
	})
}

// ScoreLog reads the events of the spans, as far as the strategy scores them,
// and adds them to their users' scorers. It returns how many there were, those
// included that lie outside a scorer's window or score nothing.
func (s *Store) ScoreLog(ctx context.Context, app string, spans []Span, c *affinity.Compiled, scorer Sink) (int, error) {
	n, user, ls := 0, "", NewLogScorer(c)
	var current *affinity.Scorer
	err := s.ReadLogFor(ctx, app, spans, c, func(u string, row LogRow) error {
		if current == nil || u != user {
			user, current = u, scorer(u)
		}
		n++
		return ls.Score(row, current)
	})
	return n, err
}

func (s *Store) readLog(ctx context.Context, app string, spans []Span, filter bigtable.Filter, fn func(string, LogRow, bigtable.Row) error) error {
	user := ""
	for len(spans) > 0 {
		var ranges bigtable.RowRangeList
		for size := 0; len(spans) > 0 && size < maxReadBytes; spans = spans[1:] {
			// Bigtable refuses a request for one empty range in it.
			if from, to := spanKeys(app, spans[0]); from < to {
				ranges, size = append(ranges, bigtable.NewRange(from, to)), size+len(from)+len(to)+16
			}
		}
		if len(ranges) == 0 {
			return nil
		}
		var failed error
		err := s.events.ReadRows(ctx, ranges, func(r bigtable.Row) bool {
			_, u, ms, id, err := parseLogKey(r.Key())
			if err != nil {
				failed = err
				return false
			}
			if u != user {
				user = strings.Clone(u)
			}
			failed = fn(user, LogRow{Pos: history.Pos{Time: ms, ID: id}, key: r.Key(), filters: r[familyFilters]}, r)
			return failed == nil
		}, bigtable.RowFilter(filter))
		if err := errors.Join(err, failed); err != nil {
			return fmt.Errorf("read log of %s: %w", app, err)
		}
	}
	return nil
}

// spanKeys are the keys that a span begins with and ends before.
func spanKeys(app string, sp Span) (from, to string) {
	key := func(p history.Pos) string {
		switch { // no event is outside of what a key can say
		case p.Time < 0:
			return userKey(app, sp.User)
		case p.Time > maxTime:
			return prefixEnd(userKey(app, sp.User))
		}
		return logKey(app, sp.User, p.Time, p.ID)
	}
	return key(sp.From), key(sp.To)
}

var (
	// present makes every event visible, whatever its filters: its original as an
	// empty cell. Column ranges everywhere: a family filter is a regular expression.
	present     = bigtable.ChainFilters(bigtable.ColumnRangeFilter(familyOriginal, "", ""), bigtable.StripValueFilter())
	wholeEvents = bigtable.InterleaveFilters(present, bigtable.ColumnRangeFilter(familyFilters, "", ""))
)

// strategyFilter passes the columns (type, name, facet) that the strategy
// scores, and strips the original event to an empty cell, which makes every
// event visible, scored or not. Branches are disjoint: a cell that two branches
// pass would be counted twice.
func (s *Store) strategyFilter(c *affinity.Compiled) bigtable.Filter {
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
		return wholeEvents
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
