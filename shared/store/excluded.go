package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/affinity"
)

// Two cells of the user row say which events are excluded: u:d holds the time up to
// which events are deleted, 8 bytes, as every version has it, and u:x the receipt,
// 8 bytes. One mutation sets both. An older version ignores u:x, and advances u:d
// alone: then the receipt is the time.

// maxExclusions bounds how often a change of the cells starts again, because another
// one came first.
const maxExclusions = 50

func parseExcluded(value []byte) (receivedUntil int64, err error) {
	if len(value) == 0 {
		return 0, nil
	}
	if len(value) < 8 {
		return 0, fmt.Errorf("column %q: %d bytes, want 8 at least", columnExcluded, len(value))
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// AdvanceTombstone marks events of a user as deleted: those of times up to t.DeletedUntil,
// and those received until t.ReceivedUntil. Neither number of the tombstone falls.
func (s *Store) AdvanceTombstone(ctx context.Context, app, user string, t affinity.Tombstone) error {
	for range maxExclusions {
		old, err := s.readExclusion(ctx, app, user)
		if err != nil {
			return fmt.Errorf("advance tombstone of %s,%s: %w", app, user, err)
		}
		next, err := old.advanced(t)
		if err != nil {
			return fmt.Errorf("advance tombstone of %s,%s: %w", app, user, err)
		}
		if next.equal(old) {
			return nil
		}
		done, err := s.swapExclusion(ctx, app, user, old, next)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("advance tombstone of %s,%s: it changed %d times", app, user, maxExclusions)
}

// exclusion holds the values of the two cells.
type exclusion struct{ deleted, excluded []byte }

func (e exclusion) equal(o exclusion) bool {
	return bytes.Equal(e.deleted, o.deleted) && bytes.Equal(e.excluded, o.excluded)
}

// advanced returns the cells with a tombstone that is at least t.
func (e exclusion) advanced(t affinity.Tombstone) (exclusion, error) {
	received, err := parseExcluded(e.excluded)
	if err != nil {
		return e, err
	}
	var until int64
	if len(e.deleted) == 8 {
		until = int64(binary.BigEndian.Uint64(e.deleted))
	}
	until, received = max(until, t.DeletedUntil), max(received, until, t.ReceivedUntil, t.DeletedUntil)
	received = min(received, until+maxAhead) // the span of receipts that rows tell apart
	next := exclusion{deleted: bigEndian(until), excluded: bigEndian(received)}
	if len(e.excluded) > 8 {
		next.excluded = append(next.excluded, e.excluded[8:]...)
	}
	return next, nil
}

func (s *Store) readExclusion(ctx context.Context, app, user string) (exclusion, error) {
	row, err := s.tables.of(app, user).users.ReadRow(ctx, userKey(app, user), userFilters[UserState])
	if err != nil {
		return exclusion{}, err
	}
	var e exclusion
	for _, item := range row[familyState] {
		switch _, column := cutColumn(item); column {
		case columnDeleted:
			e.deleted = item.Value
		case columnExcluded:
			e.excluded = item.Value
		}
	}
	return e, nil
}

// swapExclusion sets the cells if they still have their old values. False means that
// they do not, or that the first answer was lost.
func (s *Store) swapExclusion(ctx context.Context, app, user string, old, next exclusion) (bool, error) {
	// Drawing a ticket rewrites the cells (an empty append), which refreshes their
	// timestamps. So the condition compares values.
	changed := append(differs(columnDeleted, old.deleted), differs(columnExcluded, old.excluded)...)
	m := replace(columnDeleted, next.deleted)
	m.DeleteCellsInColumn(familyState, columnExcluded)
	m.Set(familyState, columnExcluded, bigtable.ServerTime, next.excluded)
	return s.swap(ctx, app, user, bigtable.NewCondMutation(interleave(changed), nil, m), true)
}

// differs returns filters that pass the newest cell of a state column if it has
// another value. An empty value equals a missing cell.
func differs(column string, value []byte) []bigtable.Filter {
	if len(value) == 0 {
		return []bigtable.Filter{latest(column, []byte{0}, nil)}
	}
	after := append(bytes.Clone(value), 0)
	return []bigtable.Filter{latest(column, nil, value), latest(column, after, nil)}
}
