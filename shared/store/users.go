package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"cloud.google.com/go/bigtable"
)

// Columns of a user row.
const (
	columnCounter   = "c"
	columnManifest  = "m"
	columnDeleted   = "d"
	columnVersion   = "v"
	columnProfile   = "p"
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
	// compute"; HasProfile tells whether there is a cell. A ticket reads neither.
	Profile    []byte
	HasProfile bool

	// since is a cell time that every cell of the state has or exceeds: what is
	// older of the columns that only the server stamps is superseded.
	since bigtable.Timestamp
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
		row, err = s.users.ApplyReadModifyWrite(ctx, userKey(app, user), rmw)
		return err
	})
	if err != nil {
		return User{}, fmt.Errorf("take ticket of %s,%s: %w", app, user, err)
	}
	return parseUser(row)
}

var newestCells = bigtable.RowFilter(bigtable.LatestNFilter(1))

// ReadUser reads a user row, for answering and for computing.
func (s *Store) ReadUser(ctx context.Context, app, user string) (User, error) {
	return readUser(ctx, s.users, app, user)
}

// ReadServing reads a user row for answering only: it may come from a replica,
// so nothing may be computed or written from it.
func (s *Store) ReadServing(ctx context.Context, app, user string) (User, error) {
	return readUser(ctx, s.stored, app, user)
}

// ServingIsAuthoritative says that ReadServing reads the same as ReadUser.
func (s *Store) ServingIsAuthoritative() bool { return !s.separateServing }

func readUser(ctx context.Context, table *bigtable.Table, app, user string) (User, error) {
	row, err := table.ReadRow(ctx, userKey(app, user), newestCells)
	if err != nil {
		return User{}, fmt.Errorf("read user %s,%s: %w", app, user, err)
	}
	return parseUser(row)
}

// ReadUsers reads many user rows in one request. Users without a row are absent
// from the answer.
func (s *Store) ReadUsers(ctx context.Context, app string, users []string) (map[string]User, error) {
	found, byKey := make(map[string]User, len(users)), make(map[string]string, len(users))
	for _, keys := range keyChunks(users, func(u string) string { return userKey(app, u) }, byKey) {
		var failed error
		err := s.users.ReadRows(ctx, keys, func(r bigtable.Row) bool {
			found[byKey[r.Key()]], failed = parseUser(r)
			return failed == nil
		}, newestCells)
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
	for i, item := range row[familyState] {
		if i == 0 || item.Timestamp < u.since {
			u.since = item.Timestamp
		}
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
		u.Profile, u.HasProfile = item.Value, true
	}
	return u, nil
}

// ProfileWrite is one profile on its way to a user row.
type ProfileWrite struct {
	User string
	// Row is the user's row as it was read before the log was: the profile is
	// written at its ticket.
	Row User
	// Value is the encoded profile; empty means: never serve, compute.
	Value []byte
	// Version is the profile's strategy version.
	Version int64
}

// WriteProfiles writes profiles at their tickets by plain mutations: a cell of a
// lower ticket ends up below, however late it arrives.
func (s *Store) WriteProfiles(ctx context.Context, app string, writes []ProfileWrite) error {
	b := newBulk(ctx, s.users)
	for _, w := range writes {
		m, at := bigtable.NewMutation(), bigtable.Timestamp(w.Row.Ticket*microsPerTicket)
		if s.selfCollect && w.Row.since > 0 { // an end of 0 would mean none
			m.DeleteTimestampRange(familyProfile, columnProfile, 0, at)
			for _, column := range []string{columnCounter, columnManifest, columnDeleted, columnVersion} {
				m.DeleteTimestampRange(familyState, column, 0, w.Row.since)
			}
		}
		m.Set(familyProfile, columnProfile, at, w.Value)
		if w.Version != w.Row.Version {
			// The server's time, like that of tickets; the write is then not retried by
			// the client, but by whoever brought it here.
			m.Set(familyState, columnVersion, bigtable.ServerTime, bigEndian(w.Version))
		}
		if err := b.add(userKey(app, w.User), m, len(w.Value)); err != nil {
			return fmt.Errorf("write profiles of %s: %w", app, err)
		}
	}
	if err := b.flush(); err != nil {
		return fmt.Errorf("write profiles of %s: %w", app, err)
	}
	return nil
}

func bigEndian(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// RaiseTombstone marks a user's events up to a time as deleted, unless a later
// deletion already does. A conditional write, because the cell's own time cannot
// order deletions: every ticket rewrites the cell.
func (s *Store) RaiseTombstone(ctx context.Context, app, user string, until int64) error {
	covered := bigtable.ChainFilters(
		bigtable.ColumnRangeFilter(familyState, columnDeleted, columnDeleted+"\x00"),
		bigtable.LatestNFilter(1),
		bigtable.ValueRangeFilter(bigEndian(until), nil))
	raise := bigtable.NewMutation()
	raise.DeleteCellsInColumn(familyState, columnDeleted)
	// The server's time, like that of tickets: a cell must not be older than what
	// it replaces.
	raise.Set(familyState, columnDeleted, bigtable.ServerTime, bigEndian(until))
	err := retryAtomic(ctx, func() error {
		return s.users.Apply(ctx, userKey(app, user), bigtable.NewCondMutation(covered, nil, raise))
	})
	if err != nil {
		return fmt.Errorf("raise tombstone of %s,%s: %w", app, user, err)
	}
	return nil
}

// ForgetUser drops, at a ticket drawn after the tombstone was raised, what was
// derived from the deleted events: the manifest and every older profile. What it
// leaves is a cell that says "compute", never an empty profile, which would hide
// events newer than the tombstone.
func (s *Store) ForgetUser(ctx context.Context, app, user string, ticket int64) error {
	at := bigtable.Timestamp(ticket * microsPerTicket)
	m := bigtable.NewMutation()
	m.DeleteCellsInColumn(familyState, columnManifest)
	m.DeleteTimestampRange(familyProfile, columnProfile, 0, at)
	m.Set(familyProfile, columnProfile, at, nil)
	if err := s.users.Apply(ctx, userKey(app, user), m); err != nil {
		return fmt.Errorf("forget %s,%s at ticket %s: %w", app, user, strconv.FormatInt(ticket, 10), err)
	}
	return nil
}
