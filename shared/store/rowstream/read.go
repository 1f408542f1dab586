package rowstream

import (
	"context"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"
)

// Row is a row that Bigtable has sent completely. The row and all its bytes are valid
// until the function that received it returns.
type Row struct {
	Key   []byte
	Cells []Cell // in the order of Bigtable: by family, column, and newest first
}

// Cell is one version of a column.
type Cell struct {
	Family, Qualifier []byte
	Time              int64 // microseconds
	Value             []byte
}

// Receiver takes what a read receives.
type Receiver struct {
	// Row takes each row, in the order of the keys. An error of it ends the read.
	Row func(*Row) error
	// Received takes the number of bytes of each row's keys, columns and values as they
	// were sent. It is not called for rows that the client library has decoded, and may
	// be nil.
	Received func(key []byte, bytes int)
}

// Read reads rows of a table, as Table.ReadRows does. It returns the first error of
// to.Row, or the error of the read.
func Read(ctx context.Context, table *bigtable.Table, rows bigtable.RowSet, to Receiver,
	opts ...bigtable.ReadOption) error {
	return read(ctx, table, rows, &decoder{to: to}, opts...)
}

func read(ctx context.Context, table *bigtable.Table, rows bigtable.RowSet, d *decoder,
	opts ...bigtable.ReadOption) error {
	var row Row
	err := table.ReadRows(context.WithValue(ctx, decoderKey{}, d), rows, func(r bigtable.Row) bool {
		row.set(r)
		d.stopped = d.to.Row(&row)
		return d.stopped == nil
	}, opts...)
	if d.stopped != nil {
		return d.stopped
	}
	return err
}

// set makes r the row that the client library has decoded.
func (r *Row) set(from bigtable.Row) {
	r.Key, r.Cells = []byte(from.Key()), r.Cells[:0]
	families := make([]string, 0, 8)
	for family := range from {
		families = append(families, family)
	}
	slices.Sort(families)
	for _, family := range families {
		for _, item := range from[family] {
			_, qualifier, _ := strings.Cut(item.Column, ":")
			r.Cells = append(r.Cells, Cell{[]byte(family), []byte(qualifier), int64(item.Timestamp), item.Value})
		}
	}
}
