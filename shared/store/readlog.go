package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// Sink returns the scorer for a user's events.
type Sink func(user string) *affinity.Scorer

// Bigtable accepts filters of 20 KB. A branch holds its column twice, as the ends of
// a range, and some more bytes.
const (
	maxFilterBytes = 16 << 10
	branchBytes    = 16
)

// Read streams the events of ranges with all filters and objects and without their
// originals. If the ranges are in the order of the log, with users in UserOrder, so are the
// events. Read returns the first error from fn.
func (l Log) Read(ctx context.Context, ranges []UserRange, fn func(user string, row LogRow) error) error {
	return l.read(ctx, ranges, wholeEvents(l.layout.Read), withoutCells(fn))
}

func withoutCells(fn func(string, LogRow) error) func(string, LogRow, bigtable.Row) error {
	return func(user string, row LogRow, _ bigtable.Row) error { return fn(user, row) }
}

// ReadLog is Read of an app's log in a layout.
func (s Events) ReadLog(ctx context.Context, app string, l schema.Layout, ranges []UserRange,
	fn func(user string, row LogRow) error) error {
	return s.Events.Log(app, l).Read(ctx, ranges, fn)
}

// ReadFor is Read for scoring: it reads no objects, and from wide rows only the
// filters that the strategy scores.
func (l Log) ReadFor(ctx context.Context, ranges []UserRange, c *affinity.Compiled,
	fn func(user string, row LogRow) error) error {
	filter := interleave(filtersOf(l.layout.Read))
	if l.layout.Read == schema.Wide {
		filter = interleave([]bigtable.Filter{present}, l.s.strategyColumns(c))
	}
	return l.read(ctx, ranges, filter, withoutCells(fn))
}

// ReadWithObjects is ReadFor with the kinds of events and their objects, also of
// events whose filters the strategy does not score.
func (l Log) ReadWithObjects(ctx context.Context, ranges []UserRange, c *affinity.Compiled,
	fn func(user string, row LogRow) error) error {
	filter := wholeEvents(l.layout.Read)
	if l.layout.Read == schema.Wide {
		filter = interleave([]bigtable.Filter{present, named}, l.s.strategyColumns(c))
	}
	return l.read(ctx, ranges, filter, withoutCells(fn))
}

// ReadObjects streams the kinds of events and their objects without any filter.
func (l Log) ReadObjects(ctx context.Context, ranges []UserRange, fn func(user string, row LogRow) error) error {
	return l.read(ctx, ranges, interleave([]bigtable.Filter{present, named}), withoutCells(fn))
}

// ReadOriginals is Read with each event as the client sent it.
func (l Log) ReadOriginals(ctx context.Context, ranges []UserRange,
	fn func(user string, row LogRow, original []byte) error) error {
	return l.read(ctx, ranges, bigtable.LatestNFilter(1), func(user string, row LogRow, all bigtable.Row) error {
		return fn(user, row, original(all))
	})
}

// Score adds the events of ranges to their users' scorers. It returns the number of
// events, including events outside the window and events that score nothing.
func (l Log) Score(ctx context.Context, ranges []UserRange, c *affinity.Compiled, scorer Sink) (int, error) {
	n, user, ls := 0, "", NewLogScorer(c)
	var current *affinity.Scorer
	err := l.ReadFor(ctx, ranges, c, func(u string, row LogRow) error {
		if current == nil || u != user {
			user, current = u, scorer(u)
		}
		n++
		return ls.Score(row, current)
	})
	return n, err
}

func (l Log) read(ctx context.Context, ranges []UserRange, filter bigtable.Filter,
	fn func(string, LogRow, bigtable.Row) error) error {
	for len(ranges) > 0 {
		var rows bigtable.RowRangeList
		for size := 0; len(ranges) > 0 && size < maxReadBytes; ranges = ranges[1:] {
			// Bigtable refuses a request that holds an empty range.
			if from, to := ranges[0].keys(l.app); from < to {
				rows, size = append(rows, bigtable.NewRange(from, to)), size+len(from)+len(to)+16
			}
		}
		if len(rows) == 0 {
			return nil
		}
		if err := l.readRows(ctx, l.layout.Read, rows, filter, fn); err != nil {
			return fmt.Errorf("read log of %s, %s: %w", l.app, l.layout.Read, err)
		}
	}
	return nil
}

// readRows reads rows of one schema.
func (l Log) readRows(ctx context.Context, n schema.Name, rows bigtable.RowSet, filter bigtable.Filter,
	fn func(string, LogRow, bigtable.Row) error) error {
	user := ""
	var failed error
	err := l.table(n, allUsers).ReadRows(ctx, rows, func(r bigtable.Row) bool {
		_, u, ms, id, err := parseLogKey(r.Key())
		if err != nil {
			u = userOf(r.Key())
		}
		if u != user {
			user = strings.Clone(u)
		}
		row := logRow(r, schema.Pos{Time: ms, ID: id})
		row.fault = err // Score and Event return it
		failed = fn(user, row, r)
		return failed == nil
	}, bigtable.RowFilter(filter))
	return errors.Join(err, failed)
}

// present passes the original as an empty cell, so that every event is visible,
// whatever its filters. Like every filter here it is a column range, because a
// family filter is a regular expression. named passes the kind of the event and
// the objects that it names.
var (
	present = bigtable.ChainFilters(column(familyOriginal, columnOriginal), bigtable.StripValueFilter())
	named   = column(familyOriginal, columnObjects)
)

func family(name string) bigtable.Filter { return bigtable.ColumnRangeFilter(name, "", "") }

func column(family, qualifier string) bigtable.Filter {
	return bigtable.ColumnRangeFilter(family, qualifier, qualifier+"\x00")
}

// interleave passes the cells that any branch passes. The branches must be
// disjoint: a cell that two branches pass would count twice.
func interleave(lists ...[]bigtable.Filter) bigtable.Filter {
	branches := slices.Concat(lists...)
	if len(branches) == 1 {
		return branches[0]
	}
	return bigtable.InterleaveFilters(branches...)
}

// filtersOf passes all filters of a schema's rows, and something of every row: a
// narrow row always has a cell for its filters, but a wide row of an event without
// filters has only the original.
func filtersOf(n schema.Name) []bigtable.Filter {
	if n == schema.Wide {
		return []bigtable.Filter{present, family(schema.FamilyWide)}
	}
	var branches []bigtable.Filter
	for _, name := range schema.Narrow.Families() {
		branches = append(branches, family(name))
	}
	return branches
}

// wholeEvents passes all filters of a schema's rows and the objects.
func wholeEvents(n schema.Name) bigtable.Filter {
	return interleave(filtersOf(n), []bigtable.Filter{named})
}

// strategyColumns passes the columns (type, name, facet) of wide rows that the
// strategy scores, or all columns if these are too many for a filter.
func (s *Store) strategyColumns(c *affinity.Compiled) []bigtable.Filter {
	pairs, facets := c.Pairs(), c.Facets()
	var branches []bigtable.Filter
	size := 0
	for _, p := range pairs {
		for _, f := range facets {
			q := schema.Qualifier(p.Type, p.Name, f)
			branches = append(branches, column(schema.FamilyWide, q))
			size += branchBytes + 2*len(q)
		}
	}
	if len(branches) > s.filterColumns || size > maxFilterBytes {
		return []bigtable.Filter{family(schema.FamilyWide)}
	}
	return branches
}
