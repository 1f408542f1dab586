package store

import (
	"context"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// readRows passes many rows to fn, in the order of their keys. A row is valid until fn
// returns. readRows returns the first error of fn, or that of the request.
func (s *Store) readRows(ctx context.Context, table *bigtable.Table, rows bigtable.RowSet,
	fn func(*rowstream.Row) error, opts ...bigtable.ReadOption) error {
	count, end := s.meter.received()
	defer end()
	return rowstream.Read(ctx, table, rows, rowstream.Receiver{Row: fn, Received: count}, opts...)
}

// readRow passes a row to fn, if it exists. The row is valid until fn returns.
func (s *Store) readRow(ctx context.Context, rows *rowstream.Point, key string, fn func(*rowstream.Row) error) error {
	count, end := s.meter.received()
	defer end()
	return rows.Read(ctx, key, rowstream.Receiver{Row: fn, Received: count})
}
