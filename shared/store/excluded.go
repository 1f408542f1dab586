package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Two cells of the user row say which events are excluded. u:d holds the time up to
// which events are deleted, 8 bytes. u:x holds the receipt, 8 bytes, then the types of
// events that the user has opted out of, a byte, then the user's consents: the last two are
// absent if there are none. One mutation sets both cells.

// maxExclusions bounds how often a change of the cells starts again, because another
// one came first.
const maxExclusions = 50

// Gone reports whether the user has opted out of all types of events. Such a user is
// unknown, and nothing is stored for them.
func (u User) Gone() bool { return u.OptedOut&event.AllTypes == event.AllTypes }

// Excludes reports whether an event of a type with a time and a receipt (ms) is deleted,
// or the user has opted out of it.
func (u User) Excludes(t event.Type, time, receipt int64) bool {
	return u.OptedOut.Has(t) || u.Deleted().Covers(time, receipt)
}

// Deleted returns what the user's deletions cover.
func (u User) Deleted() affinity.Tombstone {
	return affinity.Tombstone{DeletedUntil: u.DeletedUntil, ReceivedUntil: u.ReceivedUntil}
}

// Tombstone returns which events do not count whatever their types: those that the
// user's deletions cover or, if the user is gone, all.
func (u User) Tombstone() affinity.Tombstone {
	if u.Gone() {
		return affinity.Tombstone{DeletedUntil: maxTime, ReceivedUntil: maxTime}
	}
	return u.Deleted()
}

// Covers reports whether the user's deletions cover all that t does.
func (u User) Covers(t affinity.Tombstone) bool { return advanced(u.Deleted(), t) == u.Deleted() }

func (u *User) parseExcluded(value []byte) error {
	if len(value) == 0 {
		return nil
	}
	if len(value) < 8 {
		return fmt.Errorf("column %q: %d bytes, want 8 at least", columnExcluded, len(value))
	}
	u.exclusion, u.ReceivedUntil = value, int64(binary.BigEndian.Uint64(value))
	if len(value) > 8 {
		u.OptedOut, u.Consents = event.Types(value[8]), value[9:]
	}
	return nil
}

// AdvanceTombstone marks events of a user as deleted: those of times up to t.DeletedUntil,
// and those received until t.ReceivedUntil. Neither number of the tombstone falls.
func (s Users) AdvanceTombstone(ctx context.Context, app, user string, t affinity.Tombstone) error {
	for range maxExclusions {
		row, old, err := s.readExclusion(ctx, app, user)
		if err != nil {
			return fmt.Errorf("advance tombstone of %s,%s: %w", app, user, err)
		}
		next := old.with(advanced(row.Deleted(), t), row.OptedOut)
		if next.equal(old) {
			return nil
		}
		done, err := s.swapExclusion(ctx, app, user, old, next, bigtable.NewMutation())
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("advance tombstone of %s,%s: it changed %d times", app, user, maxExclusions)
}

// SetOptOut sets the types of events that a user has opted out of, and advances the
// tombstone in the same instant. The new tombstone differs from the one before. SetOptOut
// returns the new tombstone.
//
// It changes nothing unless the ticket of row, which the caller has drawn, is the newest one, and the owner is the one
// of that ticket. A process that dropped an event
// because of the former types drew its ticket earlier. So a caller that draws the ticket
// before it reads its clock covers that event. SetOptOut returns false in the cases of
// SwapManifest.
func (s Users) SetOptOut(ctx context.Context, app, user string, row User, types event.Types,
	t affinity.Tombstone) (affinity.Tombstone, bool, error) {
	return s.setOptOut(ctx, app, user, row, types, t, bigtable.NewMutation())
}

// setOptOut adds the cells to m, and applies it unless a cell passes one of the filters.
func (s *Store) setOptOut(ctx context.Context, app, user string, at User, types event.Types, t affinity.Tombstone,
	m *bigtable.Mutation, unless ...bigtable.Filter) (affinity.Tombstone, bool, error) {
	row, old, err := s.readExclusion(ctx, app, user)
	if err != nil {
		return affinity.Tombstone{}, false, fmt.Errorf("set opt-out of %s,%s: %w", app, user, err)
	}
	if row.Ticket != at.Ticket {
		return affinity.Tombstone{}, false, nil
	}
	next := advanced(row.Deleted(), t)
	if next == row.Deleted() { // by a clock that is behind, or in the same millisecond
		next = advanced(next, affinity.Tombstone{DeletedUntil: next.ReceivedUntil + 1 - maxAhead,
			ReceivedUntil: next.ReceivedUntil + 1})
	}
	unless = append(append(unless, newest(at.Ticket)...), at.Owner.unchanged()...)
	done, err := s.swapExclusion(ctx, app, user, old, old.with(next, types), m, unless...)
	return next, done, err
}

// SetOptOutLinked is SetOptOut, and replaces the links of the token in the same instant. It changes nothing unless
// they are still those of row.
func (s Users) SetOptOutLinked(ctx context.Context, app, user string, row User, types event.Types,
	t affinity.Tombstone, links []byte) (affinity.Tombstone, bool, error) {
	return s.setOptOut(ctx, app, user, row, types, t, replace(columnLinks, links), differs(columnLinks, row.Links)...)
}

// SetConsents replaces the consents of a user in the conditions of SetOptOut, and leaves the rest of what is excluded
// as it is. With a manifest, which is that of the ticket, it also sets that, drops the inline block and adds a mark: so
// nobody uses a block or a profile of before.
func (s Users) SetConsents(ctx context.Context, app, user string, at User, consents, manifest []byte) (bool, error) {
	row, old, err := s.readExclusion(ctx, app, user)
	if err != nil {
		return false, fmt.Errorf("set consents of %s,%s: %w", app, user, err)
	}
	if row.Ticket != at.Ticket {
		return false, nil
	}
	m := bigtable.NewMutation()
	if manifest != nil {
		m = replace(columnManifest, manifest)
		DropInline()(m)
		m.DeleteCellsInColumn(familyState, columnMarks)
		m.Set(familyState, columnMarks, bigtable.ServerTime, bigEndian(row.Marks+1))
	}
	next := exclusion{deleted: old.deleted, excluded: bigEndian(row.ReceivedUntil)}
	if row.OptedOut != 0 || len(consents) > 0 {
		next.excluded = append(append(next.excluded, byte(row.OptedOut)), consents...)
	}
	return s.swapExclusion(ctx, app, user, old, next, m, append(newest(at.Ticket), at.Owner.unchanged()...)...)
}

// exclusion holds the values of the two cells.
type exclusion struct{ deleted, excluded []byte }

func (e exclusion) equal(o exclusion) bool {
	return bytes.Equal(e.deleted, o.deleted) && bytes.Equal(e.excluded, o.excluded)
}

// receipt returns up to which receipt (ms) events are deleted, 0 if none are.
func (e exclusion) receipt() uint64 {
	if len(e.excluded) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(e.excluded)
}

// with returns the cells with another tombstone and other types.
func (e exclusion) with(t affinity.Tombstone, types event.Types) exclusion {
	next := exclusion{deleted: bigEndian(t.DeletedUntil), excluded: bigEndian(t.ReceivedUntil)}
	if types != 0 || len(e.excluded) > 9 {
		next.excluded = append(next.excluded, byte(types))
	}
	if len(e.excluded) > 9 {
		next.excluded = append(next.excluded, e.excluded[9:]...)
	}
	return next
}

// SettleTombstone replaces a tombstone that is ahead of every clock, from, by one that an
// earlier clock has set. If the tombstone is no longer from, it changes nothing. Its caller
// draws a ticket afterwards, and sees which tombstone is there.
func (s Users) SettleTombstone(ctx context.Context, app, user string, from, to affinity.Tombstone) error {
	row, old, err := s.readExclusion(ctx, app, user)
	if err == nil && row.Deleted() == from {
		_, err = s.swapExclusion(ctx, app, user, old, old.with(to, row.OptedOut), bigtable.NewMutation())
	}
	if err != nil {
		return fmt.Errorf("settle tombstone of %s,%s: %w", app, user, err)
	}
	return nil
}

// advanced returns a tombstone that covers at least what both cover.
func advanced(t, by affinity.Tombstone) affinity.Tombstone {
	t.ReceivedUntil = max(t.ReceivedUntil, t.DeletedUntil, by.ReceivedUntil, by.DeletedUntil)
	t.DeletedUntil = max(t.DeletedUntil, by.DeletedUntil)
	t.ReceivedUntil = min(t.ReceivedUntil, t.DeletedUntil+maxAhead) // the span of receipts that rows tell apart
	return t
}

func (s *Store) readExclusion(ctx context.Context, app, user string) (User, exclusion, error) {
	row, err := s.tables.of(app, user).users.ReadRow(ctx, userKey(app, user), userFilters[UserState])
	if err != nil {
		return User{}, exclusion{}, err
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
	u, err := parseUser(row)
	return u, e, err
}

// swapExclusion sets the cells, with m, if they still have their old values, and no cell passes
// one of the filters unless. False means that it did not, or that the first answer was
// lost.
func (s *Store) swapExclusion(ctx context.Context, app, user string, old, next exclusion, m *bigtable.Mutation,
	unless ...bigtable.Filter) (bool, error) {
	// Drawing a ticket rewrites the cells (an empty append), which refreshes their
	// timestamps. So the condition compares values.
	changed := interleave(differs(columnDeleted, old.deleted), differs(columnExcluded, old.excluded), unless)
	if old.receipt() != next.receipt() { // it is a deletion, so exposures of before it are not written any more
		m.DeleteCellsInFamily(familyExposed)
	}
	m.DeleteCellsInColumn(familyState, columnDeleted)
	m.Set(familyState, columnDeleted, bigtable.ServerTime, next.deleted)
	m.DeleteCellsInColumn(familyState, columnExcluded)
	m.Set(familyState, columnExcluded, bigtable.ServerTime, next.excluded)
	return s.swap(ctx, app, user, bigtable.NewCondMutation(changed, nil, m), true)
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
