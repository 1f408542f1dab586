package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/history"
)

// Columns of a user row.
const (
	columnCounter   = "c"
	columnManifest  = "m"
	columnDeleted   = "d"
	columnVersion   = "v"
	columnProfile   = "p"
	columnSummary   = "s"
	microsPerTicket = 1000 // Bigtable keeps cell times to the millisecond
)

// User is a user row, all of one instant.
type User struct {
	Exists bool
	// Ticket is the row's counter. A profile computed from the log as it was read
	// after this row may be written at this ticket: it hides no newer one.
	Ticket int64
	// Manifest names the ranges of the log that blocks cover; empty: none.
	Manifest []byte
	// DeletedUntil is the tombstone in ms: events up to it do not exist. 0: none.
	DeletedUntil int64
	// Version is the strategy version of the profile written last.
	Version int64
	// Profile is the newest profile cell, empty where it says "never serve,
	// compute"; Summary is the same without affinities; HasProfile tells whether
	// there is a cell of what was read of the two. A ticket reads neither.
	Profile, Summary []byte
	HasProfile       bool
}

// TakeTicket draws the user's next ticket and reads manifest, tombstone and
// version at the same instant: appending nothing to a cell reads it within the
// row's transaction. Whoever writes a profile from what he read afterwards
// writes it at this ticket.
func (s *Store) TakeTicket(ctx context.Context, app, user string) (User, error) {
	var row bigtable.Row
	err := retryAtomic(ctx, func() (err error) {
		rmw := bigtable.NewReadModifyWrite()
		rmw.Increment(familyState, columnCounter, 1)
		rmw.AppendValue(familyState, columnManifest, nil)
		rmw.AppendValue(familyState, columnDeleted, nil)
		rmw.AppendValue(familyState, columnVersion, nil)
		row, err = s.tables.of(app, user).users.ApplyReadModifyWrite(ctx, userKey(app, user), rmw)
		return err
	})
	if err != nil {
		return User{}, fmt.Errorf("take ticket of %s,%s: %w", app, user, err)
	}
	return parseUser(row)
}

// UserParts says what of a user row is read.
type UserParts int

const (
	UserState   UserParts = iota // ticket, manifest, tombstone, version
	UserSummary                  // and the summary of the profile
	UserProfile                  // and the profile instead
)

// userFilters pass the parts, each column range in a branch of its own: a family
// filter is a regular expression.
var userFilters = func() (filters [3]bigtable.ReadOption) {
	state := bigtable.ColumnRangeFilter(familyState, "", "")
	column := func(c string) bigtable.Filter { return bigtable.ColumnRangeFilter(familyProfile, c, c+"\x00") }
	for parts, f := range map[UserParts]bigtable.Filter{
		UserState:   state,
		UserSummary: bigtable.InterleaveFilters(state, column(columnSummary)),
		UserProfile: bigtable.InterleaveFilters(state, column(columnProfile)),
	} {
		filters[parts] = bigtable.RowFilter(bigtable.ChainFilters(f, bigtable.LatestNFilter(1)))
	}
	return filters
}()

// ReadUser reads a user row, for answering and for computing.
func (s *Store) ReadUser(ctx context.Context, app, user string) (User, error) {
	return readUser(ctx, s.tables.of(app, user).users, app, user)
}

// ReadServing reads a user row for answering only: it may come from a replica,
// so nothing may be computed or written from it.
func (s *Store) ReadServing(ctx context.Context, app, user string) (User, error) {
	return readUser(ctx, s.tables.of(app, user).serving, app, user)
}

// ServingIsAuthoritative says that ReadServing reads the same as ReadUser.
func (s *Store) ServingIsAuthoritative() bool { return !s.separateServing }

func readUser(ctx context.Context, table *bigtable.Table, app, user string) (User, error) {
	row, err := table.ReadRow(ctx, userKey(app, user), userFilters[UserProfile])
	if err != nil {
		return User{}, fmt.Errorf("read user %s,%s: %w", app, user, err)
	}
	return parseUser(row)
}

// ReadUsers reads many user rows in one request. Users without a row are absent
// from the answer.
func (s *Store) ReadUsers(ctx context.Context, app string, users []string) (map[string]User, error) {
	return readUsers(ctx, s.tables.of(app, allUsers).users, app, users)
}

// ReadManyServing is ReadUsers for answering only, as ReadServing is ReadUser.
func (s *Store) ReadManyServing(ctx context.Context, app string, users []string) (map[string]User, error) {
	return readUsers(ctx, s.tables.of(app, allUsers).serving, app, users)
}

func readUsers(ctx context.Context, table *bigtable.Table, app string, users []string) (map[string]User, error) {
	found, byKey := make(map[string]User, len(users)), make(map[string]string, len(users))
	for _, keys := range keyChunks(users, func(u string) string { return userKey(app, u) }, byKey) {
		var failed error
		err := table.ReadRows(ctx, keys, func(r bigtable.Row) bool {
			found[byKey[r.Key()]], failed = parseUser(r)
			return failed == nil
		}, userFilters[UserProfile])
		if err := errors.Join(err, failed); err != nil {
			return nil, fmt.Errorf("read %d users of %s: %w", len(users), app, err)
		}
	}
	return found, nil
}

func parseUser(row bigtable.Row) (User, error) {
	u := User{Exists: len(row) > 0}
	number := func(item bigtable.ReadItem) (int64, error) {
		switch len(item.Value) {
		case 0:
			return 0, nil
		case 8:
			return int64(binary.BigEndian.Uint64(item.Value)), nil
		}
		return 0, fmt.Errorf("user row %q column %q: %d bytes, want 8", row.Key(), item.Column, len(item.Value))
	}
	var err error
	for _, item := range row[familyState] {
		switch item.Column[len(familyState)+1:] {
		case columnCounter:
			u.Ticket, err = number(item)
		case columnManifest:
			u.Manifest = item.Value
		case columnDeleted:
			u.DeletedUntil, err = number(item)
		case columnVersion:
			u.Version, err = number(item)
		}
		if err != nil {
			return User{}, err
		}
	}
	for _, item := range row[familyProfile] {
		u.HasProfile = true
		if item.Column[len(familyProfile)+1:] == columnSummary {
			u.Summary = item.Value
		} else {
			u.Profile = item.Value
		}
	}
	return u, nil
}

// ProfileWrite is one profile on its way to a user row.
type ProfileWrite struct {
	User string
	// Row is the user's row as it was read before the log was: the profile is
	// written at its ticket.
	Row User
	// Value is the encoded profile and Summary the same without affinities; empty
	// means: never serve, compute.
	Value, Summary []byte
	// Version is the profile's strategy version.
	Version int64
}

// WriteProfiles writes profiles at their tickets by plain mutations: a cell of a
// lower ticket ends up below, however late it arrives.
func (s *Store) WriteProfiles(ctx context.Context, app string, writes []ProfileWrite) error {
	b := newBulk(ctx)
	b.again = true
	for _, w := range writes {
		m, at := bigtable.NewMutation(), bigtable.Timestamp(w.Row.Ticket*microsPerTicket)
		m.Set(familyProfile, columnProfile, at, w.Value)
		m.Set(familyProfile, columnSummary, at, w.Summary)
		if w.Version != w.Row.Version {
			// The server's time, like that of tickets; the write is then not retried by
			// the client, but by whoever brought it here.
			m.Set(familyState, columnVersion, bigtable.ServerTime, bigEndian(w.Version))
		}
		if err := b.add(s.tables.of(app, w.User).users, userKey(app, w.User), m, len(w.Value)+len(w.Summary)); err != nil {
			return fmt.Errorf("write profiles of %s: %w", app, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("write profiles of %s: %w", app, err)
	}
	return nil
}

func bigEndian(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// AdvanceTombstone marks a user's events up to a time as deleted, unless a later
// deletion already does. A conditional write, because the cell's own time cannot
// order deletions: every ticket rewrites the cell.
func (s *Store) AdvanceTombstone(ctx context.Context, app, user string, until int64) error {
	covered := latest(columnDeleted, bigEndian(until), nil)
	advance := replace(columnDeleted, bigEndian(until))
	err := retryAtomic(ctx, func() error {
		return s.tables.of(app, user).users.Apply(ctx, userKey(app, user), bigtable.NewCondMutation(covered, nil, advance))
	})
	if err != nil {
		return fmt.Errorf("raise tombstone of %s,%s: %w", app, user, err)
	}
	return nil
}

// ForgetUser drops, at a ticket drawn after the tombstone was raised, what was
// derived from the deleted events: the manifest, in whose place comes one that
// names nothing, and every older profile. What it leaves is a cell that says
// "compute", never an empty profile, which would hide events newer than the
// tombstone.
func (s *Store) ForgetUser(ctx context.Context, app, user string, ticket int64, manifest []byte) error {
	m, at := replace(columnManifest, manifest), bigtable.Timestamp(ticket*microsPerTicket)
	for _, column := range []string{columnProfile, columnSummary} {
		m.Set(familyProfile, column, at, nil)
		if at > 0 { // a range that ends at 0 has no end
			m.DeleteTimestampRange(familyProfile, column, 0, at)
		}
	}
	// The client tries nothing again that is stamped by the server. Doing it twice
	// is harmless: a manifest that names less is true.
	err := retryAtomic(ctx, func() error { return s.tables.of(app, user).users.Apply(ctx, userKey(app, user), m) })
	if err != nil {
		return fmt.Errorf("forget %s,%s at ticket %d: %w", app, user, ticket, err)
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

// latest passes the newest cell of a column of the state, if its value is within
// [from, to).
func latest(column string, from, to []byte) bigtable.Filter {
	return bigtable.ChainFilters(
		bigtable.ColumnRangeFilter(familyState, column, column+"\x00"),
		bigtable.LatestNFilter(1),
		bigtable.ValueRangeFilter(from, to))
}

// SwapManifest changes a user's manifest if it is still of version was; 0: if
// there is none. False means that it was not, or that the answer was lost:
// whoever called cannot know whether it is changed.
func (s *Store) SwapManifest(ctx context.Context, app, user string, was int64, now []byte) (bool, error) {
	var cond *bigtable.Mutation
	if was == 0 {
		// Absent or empty: no cell has a first byte.
		cond = bigtable.NewCondMutation(latest(columnManifest, []byte{0}, nil), nil, replace(columnManifest, now))
	} else {
		prefix := history.Manifest{Version: was}.AppendBinary(nil)[:history.PrefixSize]
		next := history.Manifest{Version: was + 1}.AppendBinary(nil)[:history.PrefixSize]
		cond = bigtable.NewCondMutation(latest(columnManifest, prefix, next), replace(columnManifest, now), nil)
	}
	return s.swap(ctx, app, user, cond, was == 0)
}

// CommitFold sets a user's manifest if ticket is the newest that was drawn.
// False is as with SwapManifest.
func (s *Store) CommitFold(ctx context.Context, app, user string, ticket int64, now []byte) (bool, error) {
	newest := latest(columnCounter, bigEndian(ticket), bigEndian(ticket+1))
	return s.swap(ctx, app, user, bigtable.NewCondMutation(newest, replace(columnManifest, now), nil), false)
}

// swap runs a conditional mutation and tells whether it was applied: when the
// predicate matched, or with inverse when it did not.
func (s *Store) swap(ctx context.Context, app, user string, cond *bigtable.Mutation, inverse bool) (bool, error) {
	var matched bool
	err := retryAtomic(ctx, func() error {
		return s.tables.of(app, user).users.Apply(ctx, userKey(app, user), cond, bigtable.GetCondMutationResult(&matched))
	})
	if err != nil {
		return false, fmt.Errorf("change manifest of %s,%s: %w", app, user, err)
	}
	return matched != inverse, nil
}
