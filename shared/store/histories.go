package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/history"
)

const columnBlock = "b"

// BlockName names one block of one user.
type BlockName struct {
	User string
	ID   history.BlockID
}

// BlockWrite is a block on its way to the table.
type BlockWrite struct {
	ID     history.BlockID
	Newest int64 // ms: its latest event, which becomes the cell's time
	Value  []byte
}

func blockKey(app string, n BlockName) string {
	return fmt.Sprintf("%s%016x,%04x", userKey(app, n.User), n.ID.Ticket, n.ID.N)
}

func parseBlockKey(key string) (BlockName, error) {
	parts := strings.Split(key, ",")
	if len(parts) != 4 {
		return BlockName{}, fmt.Errorf("block key %q: want app,user,ticket,n", key)
	}
	ticket, err := strconv.ParseInt(parts[2], 16, 64)
	n, nErr := strconv.ParseInt(parts[3], 16, 0)
	if err := errors.Join(err, nErr); err != nil {
		return BlockName{}, fmt.Errorf("block key %q: %w", key, err)
	}
	return BlockName{parts[1], history.BlockID{Ticket: ticket, N: int(n)}}, nil
}

// WriteBlocks writes blocks of a user. Nothing reads them until a manifest names
// them.
func (s *Store) WriteBlocks(ctx context.Context, app, user string, blocks []BlockWrite) error {
	b := newBulk(ctx, s.histories)
	for _, w := range blocks {
		m := bigtable.NewMutation()
		m.Set(familyBlock, columnBlock, bigtable.Timestamp(max(w.Newest, 0)*1000), w.Value)
		if err := b.add(blockKey(app, BlockName{user, w.ID}), m, len(w.Value)); err != nil {
			return fmt.Errorf("write blocks of %s,%s: %w", app, user, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("write blocks of %s,%s: %w", app, user, err)
	}
	return nil
}

// ReadBlocks reads blocks by name, those that are there, in the order of their
// keys. fn must not keep the value.
func (s *Store) ReadBlocks(ctx context.Context, app string, names []BlockName, fn func(BlockName, []byte) error) error {
	byKey := make(map[string]BlockName, len(names))
	for _, keys := range keyChunks(names, func(n BlockName) string { return blockKey(app, n) }, byKey) {
		if err := s.readBlocks(ctx, keys, fn); err != nil {
			return fmt.Errorf("read %d blocks of %s: %w", len(names), app, err)
		}
	}
	return nil
}

// ScanBlocks reads all blocks of the users from one up to but not another, as one
// stream in the order of their keys. Empty means open. fn must not keep the value.
func (s *Store) ScanBlocks(ctx context.Context, app, from, to string, fn func(BlockName, []byte) error) error {
	if err := s.readBlocks(ctx, userRange(app, from, to), fn); err != nil {
		return fmt.Errorf("read blocks of %s: %w", app, err)
	}
	return nil
}

func (s *Store) readBlocks(ctx context.Context, rows bigtable.RowSet, fn func(BlockName, []byte) error, opts ...bigtable.ReadOption) error {
	var failed error
	err := s.histories.ReadRows(ctx, rows, func(r bigtable.Row) bool {
		var name BlockName
		if name, failed = parseBlockKey(r.Key()); failed != nil {
			return false
		}
		for _, item := range r[familyBlock] {
			failed = fn(name, item.Value)
			return failed == nil // the newest version comes first
		}
		return true
	}, opts...)
	return errors.Join(err, failed)
}

// ScanBlockKeys does what ScanBlocks does without reading the blocks.
func (s *Store) ScanBlockKeys(ctx context.Context, app, from, to string, fn func(BlockName) error) error {
	err := s.readBlocks(ctx, userRange(app, from, to), func(name BlockName, _ []byte) error { return fn(name) }, keysOnly)
	if err != nil {
		return fmt.Errorf("list blocks of %s: %w", app, err)
	}
	return nil
}

// ListBlocks returns the blocks that a user has, named by his manifest or not.
func (s *Store) ListBlocks(ctx context.Context, app, user string) ([]history.BlockID, error) {
	var ids []history.BlockID
	prefix := userKey(app, user)
	err := s.readBlocks(ctx, bigtable.NewRange(prefix, prefixEnd(prefix)), func(name BlockName, _ []byte) error {
		ids = append(ids, name.ID)
		return nil
	}, keysOnly)
	if err != nil {
		return nil, fmt.Errorf("list blocks of %s,%s: %w", app, user, err)
	}
	return ids, nil
}

// DeleteBlocks removes blocks of a user.
func (s *Store) DeleteBlocks(ctx context.Context, app, user string, ids []history.BlockID) error {
	b := newBulk(ctx, s.histories)
	for _, id := range ids {
		m := bigtable.NewMutation()
		m.DeleteRow()
		if err := b.add(blockKey(app, BlockName{user, id}), m, 0); err != nil {
			return fmt.Errorf("delete blocks of %s,%s: %w", app, user, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("delete blocks of %s,%s: %w", app, user, err)
	}
	return nil
}

var keysOnly = bigtable.RowFilter(bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter()))
