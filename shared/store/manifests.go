package store

import (
	"bytes"
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// inlineFilter passes the inline block.
var inlineFilter = bigtable.ColumnRangeFilter(familyInline, columnInline, columnInline+"\x00")

// RowChange is what changes in a user's row in the mutation that changes the manifest.
// Without one the inline block stays as it is.
type RowChange func(*bigtable.Mutation)

// SetInline sets the cell of the inline block: see history.AppendInline. Every older
// version of it is deleted.
func SetInline(cell []byte) RowChange {
	return func(m *bigtable.Mutation) {
		m.DeleteCellsInColumn(familyInline, columnInline)
		m.Set(familyInline, columnInline, bigtable.ServerTime, cell)
	}
}

// DropInline deletes the cell of the inline block.
func DropInline() RowChange {
	return func(m *bigtable.Mutation) { m.DeleteCellsInColumn(familyInline, columnInline) }
}

// ReadInline reads the cells of the inline blocks of users, and calls fn for each user
// who has one, in no particular order. fn may keep the cell. ReadInline returns the first
// error from fn.
func (s Users) ReadInline(ctx context.Context, app string, users []string,
	fn func(user string, cell []byte) error) error {
	byKey := make(map[string]string, len(users))
	newest := bigtable.RowFilter(bigtable.ChainFilters(inlineFilter, bigtable.LatestNFilter(1)))
	for _, keys := range keyChunks(users, func(u string) string { return userKey(app, u) }, byKey) {
		err := s.readRows(ctx, s.tables.of(app, allUsers).users, keys, func(r *rowstream.Row) error {
			return fn(byKey[string(r.Key)], bytes.Clone(r.Cells[0].Value))
		}, newest)
		if err != nil {
			return fmt.Errorf("read inline blocks of %d users of %s: %w", len(users), app, err)
		}
	}
	return nil
}

// replace returns a mutation that sets a state column and deletes every other
// version of it. The new cell has the server's time, like the cells that a ticket
// writes. A server whose clock is behind must not leave the new cell below an
// older one, so the older ones are deleted.
func replace(column string, value []byte) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.DeleteCellsInColumn(familyState, column)
	m.Set(familyState, column, bigtable.ServerTime, value)
	return m
}

// latest passes the newest cell of a state column if its value is in [from, to).
func latest(column string, from, to []byte) bigtable.Filter {
	return bigtable.ChainFilters(
		bigtable.ColumnRangeFilter(familyState, column, column+"\x00"),
		bigtable.LatestNFilter(1),
		bigtable.ValueRangeFilter(from, to))
}

// SwapManifest replaces a user's manifest, with more changes of the row, if the stored one lies from
// the first value of was on and before the second: see history.OfVersion. Values of nil mean that
// the user has no manifest. It returns false if the stored one lies elsewhere, or if the first answer was
// lost. In the second case the manifest may have been replaced.
func (s Users) SwapManifest(ctx context.Context, app, user string, was [2][]byte, manifest []byte,
	changes ...RowChange) (bool, error) {
	m := changed(manifest, changes)
	if was[0] == nil { // the cell is absent or empty if it has no first byte
		return s.swap(ctx, app, user, bigtable.NewCondMutation(latest(columnManifest, []byte{0}, nil), nil, m), true)
	}
	return s.swap(ctx, app, user, bigtable.NewCondMutation(latest(columnManifest, was[0], was[1]), m, nil), false)
}

// CommitFold sets a user's manifest, with more changes of the row, if ticket is the
// newest one. It returns false in the cases of SwapManifest.
func (s Users) CommitFold(ctx context.Context, app, user string, ticket int64, manifest []byte,
	changes ...RowChange) (bool, error) {
	newest := latest(columnCounter, bigEndian(ticket), bigEndian(ticket+1))
	return s.swap(ctx, app, user, bigtable.NewCondMutation(newest, changed(manifest, changes), nil), false)
}

func changed(manifest []byte, changes []RowChange) *bigtable.Mutation {
	m := replace(columnManifest, manifest)
	for _, change := range changes {
		change(m)
	}
	return m
}

// swap runs a conditional mutation. It reports whether the predicate matched or,
// with inverse, whether it did not match.
func (s *Store) swap(ctx context.Context, app, user string, cond *bigtable.Mutation, inverse bool) (bool, error) {
	var matched bool
	err := retryAtomic(ctx, func() error {
		return s.tables.of(app, user).users.Apply(ctx, userKey(app, user), cond, bigtable.GetCondMutationResult(&matched))
	})
	if err != nil {
		return false, fmt.Errorf("change the row of %s,%s: %w", app, user, err)
	}
	return matched != inverse, nil
}
