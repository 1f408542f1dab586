package rows

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"rsc.io/binaryregexp"
)

// filter returns the cells of a row that a filter lets through, in their order.
type filter func(key []byte, cells []cell) []cell

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// compile returns a filter, or an error that says what is invalid in it.
func compile(f *btpb.RowFilter) (filter, error) {
	switch f := f.GetFilter().(type) {
	case nil:
		return passAll, nil
	case *btpb.RowFilter_PassAllFilter:
		if !f.PassAllFilter {
			return nil, invalid("pass_all_filter must be true if set")
		}
		return passAll, nil
	case *btpb.RowFilter_BlockAllFilter:
		if !f.BlockAllFilter {
			return nil, invalid("block_all_filter must be true if set")
		}
		return blockAll, nil
	case *btpb.RowFilter_Chain_:
		return chain(f.Chain.GetFilters())
	case *btpb.RowFilter_Interleave_:
		return interleave(f.Interleave.GetFilters())
	case *btpb.RowFilter_Condition_:
		return condition(f.Condition)
	case *btpb.RowFilter_CellsPerColumnLimitFilter:
		return perColumn(int(f.CellsPerColumnLimitFilter))
	case *btpb.RowFilter_CellsPerRowLimitFilter:
		n := int(f.CellsPerRowLimitFilter)
		if n <= 0 {
			return nil, invalid("Error in field 'cells_per_row_limit_filter' : argument must be > 0")
		}
		return func(_ []byte, cells []cell) []cell { return cells[:min(n, len(cells))] }, nil
	case *btpb.RowFilter_CellsPerRowOffsetFilter:
		n := max(0, int(f.CellsPerRowOffsetFilter))
		return func(_ []byte, cells []cell) []cell { return cells[min(n, len(cells)):] }, nil
	case *btpb.RowFilter_RowSampleFilter:
		if f.RowSampleFilter <= 0 || f.RowSampleFilter >= 1 {
			return nil, invalid("row_sample_filter argument must be between 0.0 and 1.0")
		}
		return sample(f.RowSampleFilter), nil
	}
	return compileCells(f)
}

// compileCells returns a filter that looks at each cell by itself, or at the key.
func compileCells(f *btpb.RowFilter) (filter, error) {
	switch f := f.GetFilter().(type) {
	case *btpb.RowFilter_RowKeyRegexFilter:
		match, err := matcher("row_key_regex_filter", f.RowKeyRegexFilter)
		return rowKey(match), err
	case *btpb.RowFilter_FamilyNameRegexFilter:
		match, err := matcher("family_name_regex_filter", []byte(f.FamilyNameRegexFilter))
		return each(func(c *cell) bool { return match([]byte(c.family.Name)) }), err
	case *btpb.RowFilter_ColumnQualifierRegexFilter:
		match, err := matcher("column_qualifier_regex_filter", f.ColumnQualifierRegexFilter)
		return each(func(c *cell) bool { return match([]byte(c.qualifier)) }), err
	case *btpb.RowFilter_ValueRegexFilter:
		match, err := matcher("value_regex_filter", f.ValueRegexFilter)
		return each(func(c *cell) bool { return match(c.value) }), err
	case *btpb.RowFilter_ColumnRangeFilter:
		in := columnRange(f.ColumnRangeFilter)
		name := f.ColumnRangeFilter.GetFamilyName()
		return each(func(c *cell) bool { return c.family.Name == name && in([]byte(c.qualifier)) }), nil
	case *btpb.RowFilter_ValueRangeFilter:
		in := valueRange(f.ValueRangeFilter)
		return each(func(c *cell) bool { return in(c.value) }), nil
	case *btpb.RowFilter_TimestampRangeFilter:
		from, to := f.TimestampRangeFilter.GetStartTimestampMicros(), f.TimestampRangeFilter.GetEndTimestampMicros()
		return each(func(c *cell) bool { return c.ts >= from && (to == 0 || c.ts < to) }), nil
	case *btpb.RowFilter_StripValueTransformer:
		return change(func(c *cell) { c.value = nil }), nil
	case *btpb.RowFilter_ApplyLabelTransformer:
		if !label.MatchString(f.ApplyLabelTransformer) {
			return nil, invalid(`apply_label_transformer must match RE2([a-z0-9\-]+), but found %v`, f.ApplyLabelTransformer)
		}
		return change(func(c *cell) { c.labels = []string{f.ApplyLabelTransformer} }), nil
	default:
		return nil, status.Errorf(codes.Unimplemented, "the local Bigtable has no filter of type %T", f)
	}
}

// sees returns the families of which a filter looks at cells, nil if it may be all. The others need not be read.
func sees(f *btpb.RowFilter) []string {
	switch f := f.GetFilter().(type) {
	case *btpb.RowFilter_ColumnRangeFilter:
		return []string{f.ColumnRangeFilter.GetFamilyName()}
	case *btpb.RowFilter_Chain_:
		return sees(f.Chain.GetFilters()[0]) // it decides what the others see
	case *btpb.RowFilter_Interleave_:
		var families []string
		for _, strand := range f.Interleave.GetFilters() {
			of := sees(strand)
			if of == nil {
				return nil
			}
			families = append(families, of...)
		}
		return families
	}
	return nil
}

var label = regexp.MustCompile(`^[a-z0-9\-]{1,15}$`)

func passAll(_ []byte, cells []cell) []cell { return cells }

func blockAll([]byte, []cell) []cell { return nil }

// all compiles the filters of a chain or an interleave.
func all(name string, filters []*btpb.RowFilter) ([]filter, error) {
	if len(filters) < 2 {
		return nil, invalid("%s must contain at least two RowFilters", name)
	}
	compiled := make([]filter, len(filters))
	for i, f := range filters {
		var err error
		if compiled[i], err = compile(f); err != nil {
			return nil, err
		}
	}
	return compiled, nil
}

func chain(filters []*btpb.RowFilter) (filter, error) {
	links, err := all("Chain", filters)
	return func(key []byte, cells []cell) []cell {
		for _, f := range links {
			if len(cells) == 0 {
				return nil
			}
			cells = f(key, cells)
		}
		return cells
	}, err
}

// interleave lets through what any of its filters does, a cell as often as they do.
func interleave(filters []*btpb.RowFilter) (filter, error) {
	strands, err := all("Interleave", filters)
	return func(key []byte, cells []cell) []cell {
		left := make([]cell, 0, len(cells))
		for _, f := range strands {
			left = append(left, f(key, cells)...)
		}
		slices.SortStableFunc(left, compare)
		return left
	}, err
}

func condition(c *btpb.RowFilter_Condition) (filter, error) {
	predicate, err := compile(c.GetPredicateFilter())
	if err != nil {
		return nil, err
	}
	branch := func(f *btpb.RowFilter) (filter, error) {
		if f == nil {
			return blockAll, nil
		}
		return compile(f)
	}
	yes, err := branch(c.GetTrueFilter())
	if err != nil {
		return nil, err
	}
	no, err := branch(c.GetFalseFilter())
	return func(key []byte, cells []cell) []cell {
		if len(predicate(key, cells)) > 0 {
			return yes(key, cells)
		}
		return no(key, cells)
	}, err
}

func perColumn(n int) (filter, error) {
	if n <= 0 {
		return nil, invalid("Error in field 'cells_per_column_limit_filter' : argument must be > 0")
	}
	return func(_ []byte, cells []cell) []cell {
		return columns(cells, func(column []cell) []cell { return column[:min(n, len(column))] })
	}, nil
}

func sample(p float64) filter {
	return func(_ []byte, cells []cell) []cell {
		if rand.Float64() < p {
			return cells
		}
		return nil
	}
}

func rowKey(match func([]byte) bool) filter {
	return func(key []byte, cells []cell) []cell {
		if match(key) {
			return cells
		}
		return nil
	}
}

func each(keep func(*cell) bool) filter {
	return func(_ []byte, cells []cell) []cell {
		dropped := 0
		for dropped < len(cells) && keep(&cells[dropped]) {
			dropped++
		}
		if dropped == len(cells) {
			return cells
		}
		var left []cell
		for i := range cells {
			if i < dropped || i > dropped && keep(&cells[i]) {
				left = append(left, cells[i])
			}
		}
		return left
	}
}

func change(do func(*cell)) filter {
	return func(_ []byte, cells []cell) []cell {
		changed := slices.Clone(cells)
		for i := range changed {
			do(&changed[i])
		}
		return changed
	}
}

// matcher compiles a regular expression of bytes that has to match a whole text.
func matcher(field string, pattern []byte) (func([]byte) bool, error) {
	if len(pattern) == 0 && field == "row_key_regex_filter" {
		return nil, invalid("Error in field '%s' : argument must not be empty", field)
	}
	// The library takes the pattern as UTF-8 but matches bytes.
	var escaped []byte
	for _, c := range pattern {
		if c < 0x80 {
			escaped = append(escaped, c)
			continue
		}
		const hex = "0123456789ABCDEF"
		escaped = append(escaped, '\\', 'x', hex[c>>4], hex[c&0xf])
	}
	if bytes.Equal(escaped, []byte(regexp.QuoteMeta(string(pattern)))) { // a plain text
		return func(b []byte) bool { return bytes.Equal(b, pattern) }, nil
	}
	compiled, err := binaryregexp.Compile("^(?:" + string(escaped) + ")$")
	if err != nil {
		return nil, invalid("Error in field '%s' : %v", field, err)
	}
	return compiled.Match, nil
}

func columnRange(r *btpb.ColumnRange) func([]byte) bool {
	var low, high bound
	switch q := r.GetStartQualifier().(type) {
	case *btpb.ColumnRange_StartQualifierOpen:
		low = bound{q.StartQualifierOpen, true, true}
	case *btpb.ColumnRange_StartQualifierClosed:
		low = bound{q.StartQualifierClosed, true, false}
	}
	switch q := r.GetEndQualifier().(type) {
	case *btpb.ColumnRange_EndQualifierOpen:
		high = bound{q.EndQualifierOpen, true, true}
	case *btpb.ColumnRange_EndQualifierClosed:
		high = bound{q.EndQualifierClosed, true, false}
	}
	return between(low, high)
}

func valueRange(r *btpb.ValueRange) func([]byte) bool {
	var low, high bound
	switch v := r.GetStartValue().(type) {
	case *btpb.ValueRange_StartValueOpen:
		low = bound{v.StartValueOpen, true, true}
	case *btpb.ValueRange_StartValueClosed:
		low = bound{v.StartValueClosed, true, false}
	}
	switch v := r.GetEndValue().(type) {
	case *btpb.ValueRange_EndValueOpen:
		high = bound{v.EndValueOpen, true, true}
	case *btpb.ValueRange_EndValueClosed:
		high = bound{v.EndValueClosed, true, false}
	}
	return between(low, high)
}

// bound is one end of a range, if it is set. An open one is not part of the range.
type bound struct {
	at        []byte
	set, open bool
}

func between(low, high bound) func([]byte) bool {
	return func(b []byte) bool {
		above, below := 1, -1
		if low.set {
			above = bytes.Compare(b, low.at)
		}
		if high.set {
			below = bytes.Compare(b, high.at)
		}
		return (above > 0 || above == 0 && !low.open) && (below < 0 || below == 0 && !high.open)
	}
}
