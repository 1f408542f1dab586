package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

const columnBlock = "b"

// BlockName names a block of a user.
type BlockName struct {
	User string
	ID   schema.BlockID
}

// BlockWrite is a block to write.
type BlockWrite struct {
	ID     schema.BlockID
	Newest int64 // time of its latest event in ms, which becomes the cell's time
	Value  []byte
}

func blockKey(app string, n BlockName) string {
	return fmt.Sprintf("%s%016x,%04x", userKey(app, n.User), n.ID.Ticket, n.ID.N)
}

// parseBlockKey returns the name in a block's key.
func parseBlockKey(key []byte) (BlockName, error) {
	_, rest, _ := strings.Cut(string(key), ",")
	user, rest, _ := strings.Cut(rest, ",")
	ticket, n, ok := strings.Cut(rest, ",")
	if !ok {
		return BlockName{}, fmt.Errorf("block key %q: want app,user,ticket,n", key)
	}
	t, err := strconv.ParseInt(ticket, 16, 64)
	if err != nil {
		return BlockName{}, fmt.Errorf("block key %q: %w", key, err)
	}
	i, err := strconv.ParseInt(n, 16, 0)
	if err != nil {
		return BlockName{}, fmt.Errorf("block key %q: %w", key, err)
	}
	return BlockName{user, schema.BlockID{Ticket: t, N: int(i)}}, nil
}

// WriteBlocks writes blocks of a user. No reader uses a block before a manifest
// names it, so after an error the caller may write the blocks again or leave them.
func (s Histories) WriteBlocks(ctx context.Context, app, user string, blocks []BlockWrite) error {
	b := newBulk(ctx)
	for _, w := range blocks {
		m := bigtable.NewMutation()
		m.Set(familyBlock, columnBlock, bigtable.Timestamp(max(w.Newest, 0)*1000), w.Value)
		if err := b.add(s.tables.of(app, user).blocks, blockKey(app, BlockName{user, w.ID}), m, len(w.Value)); err != nil {
			return fmt.Errorf("write blocks of %s,%s: %w", app, user, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("write blocks of %s,%s: %w", app, user, err)
	}
	return nil
}

// ReadBlocks streams blocks by name and skips names without a block. If the names
// are in the order of their keys, so are the blocks. The value is valid until fn returns.
// ReadBlocks returns the first error from fn.
func (s Histories) ReadBlocks(ctx context.Context, app string, names []BlockName,
	fn func(BlockName, []byte) error) error {
	byKey := make(map[string]BlockName, len(names))
	for _, keys := range keyChunks(names, func(n BlockName) string { return blockKey(app, n) }, byKey) {
		nameOf := func(key []byte) (BlockName, error) { return byKey[string(key)], nil }
		if err := s.readBlocks(ctx, s.tables.of(app, allUsers).blocks, keys, nameOf, fn); err != nil {
			return fmt.Errorf("read %d blocks of %s: %w", len(names), app, err)
		}
	}
	return nil
}

// ScanBlocks streams all blocks of the users from one user up to, but not
// including, another, in the order of their keys: by user, ticket and number. An
// empty end is open. It includes blocks that no manifest names. fn is as in
// ReadBlocks.
func (s Histories) ScanBlocks(ctx context.Context, app, from, to string, fn func(BlockName, []byte) error) error {
	table := s.tables.of(app, allUsers).blocks
	if err := s.readBlocks(ctx, table, usersBetween(app, from, to), parseBlockKey, fn); err != nil {
		return fmt.Errorf("read blocks of %s: %w", app, err)
	}
	return nil
}

func (s *Store) readBlocks(ctx context.Context, table *bigtable.Table, rows bigtable.RowSet,
	nameOf func(key []byte) (BlockName, error), fn func(BlockName, []byte) error, opts ...bigtable.ReadOption) error {
	return s.readRows(ctx, table, rows, func(r *rowstream.Row) error {
		name, err := nameOf(r.Key)
		if err != nil {
			return err
		}
		return fn(name, r.Cells[0].Value) // the newest version comes first
	}, opts...)
}

// ScanBlockKeys is ScanBlocks without the values.
func (s Histories) ScanBlockKeys(ctx context.Context, app, from, to string, fn func(BlockName) error) error {
	table := s.tables.of(app, allUsers).blocks
	nameOnly := func(name BlockName, _ []byte) error { return fn(name) }
	err := s.readBlocks(ctx, table, usersBetween(app, from, to), parseBlockKey, nameOnly, keysOnly)
	if err != nil {
		return fmt.Errorf("list blocks of %s: %w", app, err)
	}
	return nil
}

// ListBlocks returns the blocks of a user by ticket and number, including blocks
// that no manifest names.
func (s Histories) ListBlocks(ctx context.Context, app, user string) ([]schema.BlockID, error) {
	var ids []schema.BlockID
	prefix := userKey(app, user)
	rows := bigtable.NewRange(prefix, prefixEnd(prefix))
	addID := func(name BlockName, _ []byte) error {
		ids = append(ids, name.ID)
		return nil
	}
	err := s.readBlocks(ctx, s.tables.of(app, user).blocks, rows, parseBlockKey, addID, keysOnly)
	if err != nil {
		return nil, fmt.Errorf("list blocks of %s,%s: %w", app, user, err)
	}
	return ids, nil
}

// DeleteBlocks deletes blocks of a user. An id that does not exist is not an error.
func (s Histories) DeleteBlocks(ctx context.Context, app, user string, ids []schema.BlockID) error {
	b := newBulk(ctx)
	for _, id := range ids {
		m := bigtable.NewMutation()
		m.DeleteRow()
		if err := b.add(s.tables.of(app, user).blocks, blockKey(app, BlockName{user, id}), m, 0); err != nil {
			return fmt.Errorf("delete blocks of %s,%s: %w", app, user, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("delete blocks of %s,%s: %w", app, user, err)
	}
	return nil
}

// keysOnly sends one empty cell of each row.
var keysOnly = bigtable.RowFilter(
	bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter()))
