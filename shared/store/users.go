package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// Columns of a user row.
const (
	columnCounter   = "c"
	columnManifest  = "m"
	columnDeleted   = "d"
	columnExcluded  = "x"
	columnVersion   = "v"
	columnMarks     = "k"
	columnOwner     = "w"
	columnCopied    = "y"
	columnLinks     = "i"
	columnProfile   = "p"
	columnSummary   = "s"
	columnSession   = "n"
	columnInline    = "h"
	columnCounted   = "l"
	microsPerTicket = 1000 // Bigtable keeps cell times to the millisecond
)

// User is a user row at one instant.
type User struct {
	Exists bool
	// Ticket is the row's counter. A process that reads the log after this row may
	// write its profile at this ticket: the profile hides no newer one.
	Ticket int64
	// Manifest is the encoded manifest. Empty means that it names no blocks.
	Manifest []byte
	// DeletedUntil is the tombstone (ms): events up to it do not count. 0 means that
	// the user was never deleted.
	DeletedUntil int64
	// ReceivedUntil (ms): later events do not count either, if they were received by
	// then.
	ReceivedUntil int64
	// OptedOut holds the types of events that the user has opted out of. Events of these
	// types do not count, and are dropped.
	OptedOut event.Types
	// Consents are the user's, as package consent reads them.
	Consents []byte
	// Version is the strategy version of the profile that was written last.
	Version int64
	// Marks counts the marks of the user: tickets after which no profile was written.
	// A profile of fewer marks lacks events.
	Marks int64
	// Owner says who owns the user. It is zero in a ticket that TakeTicket or TakeMark drew.
	Owner Owner
	// Links say which tokens are the same person's. TakeTicket and TakeMark do not read them.
	Links []byte
	// Copied says how far the log of a user who is Leaving has been copied.
	Copied LogCopy
	// Profile is the newest profile cell; empty means a marker. Summary is the same
	// without affinities. HasProfile reports whether the row has a cell of the part
	// that the caller asked for. TakeTicket reads neither part.
	Profile, Summary []byte
	HasProfile       bool
	// Inline is the cell of the inline block, if the caller asked for it: history.ParseInline
	// reads it. HasInline reports that the caller did.
	Inline    []byte
	HasInline bool
	// Exposures are in no order. UserHistory, UserExposures and UserArrival read them.
	Exposures []Exposure
	// ProfileTicket is the ticket of the profile, if the caller asked for it.
	ProfileTicket int64
	// Session is the session that was written with the profile. It is empty if the
	// newest session cell is of another ticket than the profile: an old release
	// writes profiles alone. So is Counted, which lists what the profile counts.
	Session, Counted []byte
	// Settled means that the process that drew the ticket of the row settled its tombstone before. It
	// is not in the row.
	Settled bool
	// exclusion is the cell of ReceivedUntil, OptedOut and Consents.
	exclusion []byte
}

// nextTicket, nextMark and nextOwned are the read-modify-writes that draw a ticket, a ticket
// with a mark, and a ticket with the owner.
var nextTicket, nextMark, nextOwned = ticketOf(0), ticketOf(1), ticketOf(0, columnOwner)

func ticketOf(marks int64, more ...string) *bigtable.ReadModifyWrite {
	rmw := bigtable.NewReadModifyWrite()
	rmw.Increment(familyState, columnCounter, 1)
	rmw.Increment(familyState, columnMarks, marks)
	for _, column := range append([]string{columnManifest, columnDeleted, columnExcluded, columnVersion}, more...) {
		rmw.AppendValue(familyState, column, nil) // which makes the answer hold it
	}
	return rmw
}

// TakeTicket draws the user's next ticket and returns manifest, tombstone, opt-out and
// version of the same instant: an append of nothing to a cell reads the cell
// within the row's transaction. The caller then reads blocks and log, and writes
// the profile at this ticket.
func (s Users) TakeTicket(ctx context.Context, app, user string) (User, error) {
	return s.takeTicket(ctx, app, user, nextTicket)
}

// TakeMark is TakeTicket with a mark in the same request. From then on no reader serves a
// profile of an earlier row, so the caller need not write one.
func (s Users) TakeMark(ctx context.Context, app, user string) (User, error) {
	return s.takeTicket(ctx, app, user, nextMark)
}

// TakeOwned is TakeTicket, and returns the owner of the same instant. The ticket counts only
// if the user is owned here.
func (s Users) TakeOwned(ctx context.Context, app, user string) (User, error) {
	return s.takeTicket(ctx, app, user, nextOwned)
}

func (s *Store) takeTicket(ctx context.Context, app, user string, next *bigtable.ReadModifyWrite) (User, error) {
	var row bigtable.Row
	err := retryAtomic(ctx, func() (err error) {
		row, err = s.tables.of(app, user).users.ApplyReadModifyWrite(ctx, userKey(app, user), next)
		return err
	})
	if err != nil {
		return User{}, fmt.Errorf("take ticket of %s,%s: %w", app, user, err)
	}
	return parseUser(row)
}

// UserParts are the parts of a user row to read.
type UserParts int

const (
	UserState     UserParts = iota // ticket, manifest, tombstone, opt-out, version
	UserSummary                    // the state, and the summary of the profile
	UserProfile                    // the state, and the profile
	UserSession                    // the state, the profile and the session
	UserHistory                    // the state, the inline block and the exposures
	UserBase                       // the profile, the session and what the profile counts, without the state
	UserTicket                     // the ticket
	UserExposures                  // the state and the exposures
	UserArrival                    // what travels with a user who moves: as UserSession, and the exposures
)

// userFilters pass the parts. Each column range has a branch of its own, because a
// family filter is a regular expression.
var userFilters = func() (filters [9]bigtable.ReadOption) {
	state := bigtable.ColumnRangeFilter(familyState, "", "")
	column := func(c string) bigtable.Filter { return bigtable.ColumnRangeFilter(familyProfile, c, c+"\x00") }
	exposed := bigtable.ColumnRangeFilter(familyExposed, "", "")
	for parts, f := range map[UserParts]bigtable.Filter{
		UserState:     state,
		UserSummary:   bigtable.InterleaveFilters(state, column(columnSummary)),
		UserProfile:   bigtable.InterleaveFilters(state, column(columnProfile)),
		UserSession:   bigtable.InterleaveFilters(state, column(columnProfile), column(columnSession)),
		UserHistory:   historyFilter,
		UserTicket:    bigtable.ColumnRangeFilter(familyState, columnCounter, columnCounter+"\x00"),
		UserBase:      bigtable.InterleaveFilters(column(columnProfile), column(columnSession), column(columnCounted)),
		UserExposures: bigtable.InterleaveFilters(state, exposed),
		UserArrival:   bigtable.InterleaveFilters(state, column(columnProfile), column(columnSession), exposed),
	} {
		filters[parts] = bigtable.RowFilter(bigtable.ChainFilters(f, bigtable.LatestNFilter(1)))
	}
	return filters
}()

// historyFilter passes the state, the inline block and the exposures by the times of their cells,
// which are of some clock: those of a profile are its ticket, some milliseconds after 1970. One
// filter for these families costs the server less than a branch for each.
var historyFilter = bigtable.TimestampRangeFilter(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{})

// ReadUser reads a user row, to answer a request or to compute a profile.
func (s Users) ReadUser(ctx context.Context, app, user string) (User, error) {
	return s.Users.ReadPrimary(ctx, app, user, UserProfile)
}

// ReadPrimary reads parts of a user row from the cluster that is written.
func (s Users) ReadPrimary(ctx context.Context, app, user string, parts UserParts) (User, error) {
	return s.readUser(ctx, s.tables.of(app, user).userRows[parts], app, user, parts)
}

// ReadServing reads parts of a user row only to answer a request. The row may come
// from a replica, so the caller must not compute or write a profile from it.
func (s Users) ReadServing(ctx context.Context, app, user string, parts UserParts) (User, error) {
	return s.readUser(ctx, s.tables.of(app, user).servingRows[parts], app, user, parts)
}

// ServingIsAuthoritative reports whether ReadServing reads the same cluster as
// ReadUser.
func (s *Store) ServingIsAuthoritative() bool { return !s.separateServing }

func (s *Store) readUser(ctx context.Context, rows *rowstream.Point, app, user string, parts UserParts) (User, error) {
	u := User{HasInline: parts == UserHistory}
	err := s.readRow(ctx, rows, userKey(app, user), func(row *rowstream.Row) (err error) {
		u, err = keepUser(row, parts)
		return err
	})
	if err != nil {
		return User{}, fmt.Errorf("read user %s,%s: %w", app, user, err)
	}
	return u, nil
}

// ReadUsers reads many user rows in one request. It returns no entry for a user
// without a row.
func (s Users) ReadUsers(ctx context.Context, app string, users []string) (map[string]User, error) {
	return s.readUsers(ctx, app, users, UserProfile)
}

// ReadUserHistories is ReadUsers without profiles and with inline blocks: what a
// computation needs.
func (s Users) ReadUserHistories(ctx context.Context, app string, users []string) (map[string]User, error) {
	return s.readUsers(ctx, app, users, UserHistory)
}

// ReadUserStates is ReadUsers of the states alone.
func (s Users) ReadUserStates(ctx context.Context, app string, users []string) (map[string]User, error) {
	return s.readUsers(ctx, app, users, UserState)
}

// ReadTickets reads the tickets of many users in one request. It returns no entry for a user
// who has none.
func (s Users) ReadTickets(ctx context.Context, app string, users []string) (map[string]int64, error) {
	found := make(map[string]int64, len(users))
	err := s.scanUsers(ctx, s.tables.of(app, allUsers).users, app, users, UserTicket, func(user string, row User) error {
		found[user] = row.Ticket
		return nil
	})
	return found, err
}

func (s *Store) readUsers(ctx context.Context, app string, users []string, parts UserParts) (map[string]User, error) {
	found := make(map[string]User, len(users))
	err := s.scanUsers(ctx, s.tables.of(app, allUsers).users, app, users, parts, func(user string, row User) error {
		found[user] = row
		return nil
	})
	return found, err
}

// ReadBases is ReadUsers of what a refresh can add events to. The rows lack the state.
// Once it holds so many bytes as most, it keeps no further row.
func (s Users) ReadBases(ctx context.Context, app string, users []string, most int) (map[string]User, error) {
	found, bytes := make(map[string]User, len(users)), 0
	err := s.scanUsers(ctx, s.tables.of(app, allUsers).users, app, users, UserBase, func(user string, row User) error {
		if bytes < most {
			found[user] = row
			bytes += len(row.Profile) + len(row.Session) + len(row.Counted)
		}
		return nil
	})
	return found, err
}

// ScanServing is ReadServing of the profiles of many users in one request. It calls
// fn for each user who has a row, one at a time, in no particular order. An error of
// fn ends the request.
func (s Users) ScanServing(ctx context.Context, app string, users []string,
	fn func(user string, row User) error) error {
	return s.scanUsers(ctx, s.tables.of(app, allUsers).serving, app, users, UserProfile, fn)
}

// ScanPrimary is ScanServing from the cluster that is written.
func (s Users) ScanPrimary(ctx context.Context, app string, users []string,
	fn func(user string, row User) error) error {
	return s.scanUsers(ctx, s.tables.of(app, allUsers).users, app, users, UserProfile, fn)
}

func (s *Store) scanUsers(ctx context.Context, table *bigtable.Table, app string, users []string, parts UserParts,
	fn func(user string, row User) error) error {
	byKey := make(map[string]string, len(users))
	for _, keys := range keyChunks(users, func(u string) string { return userKey(app, u) }, byKey) {
		err := s.readRows(ctx, table, keys, func(r *rowstream.Row) error {
			row, err := keepUser(r, parts)
			if err != nil {
				return err
			}
			return fn(byKey[string(r.Key)], row)
		}, userFilters[parts])
		if err != nil {
			return fmt.Errorf("read %d users of %s: %w", len(users), app, err)
		}
	}
	return nil
}

// ProfileWrite is a profile to write to a user row.
type ProfileWrite struct {
	User string
	// Row is the user's row as read before the log. WriteProfiles writes the profile
	// at its ticket.
	Row User
	// Value is the encoded profile, Summary the same without affinities. Empty values
	// write a marker.
	Value, Summary []byte
	// Session is the encoded session of the same reading. Empty means that the next
	// read that needs the session computes it. Counted lists what the profile counts.
	// Empty means that the next refresh computes the profile.
	Session, Counted []byte
	// Version is the profile's strategy version.
	Version int64
}

// WriteProfiles writes profiles at their tickets by plain mutations. The cell of the
// higher ticket is the newest one, whatever the order of the writes. A profile, its
// session and what it counts are one mutation. A profile without a session writes an
// empty cell, because otherwise the older session would stay in the row. An error of type RefusedRows
// names the users whose rows Bigtable will not take; all others are written.
func (s Users) WriteProfiles(ctx context.Context, app string, writes []ProfileWrite) error {
	b, refused := newBulk(ctx), RefusedRows{}
	b.retry = true
	b.refused = func(key string, err error) { refused[userOf(key)] = err }
	for _, w := range writes {
		m, at := bigtable.NewMutation(), bigtable.Timestamp(w.Row.Ticket*microsPerTicket)
		m.Set(familyProfile, columnProfile, at, w.Value)
		m.Set(familyProfile, columnSummary, at, w.Summary)
		m.Set(familyProfile, columnSession, at, w.Session)
		if len(w.Counted) > 0 { // an older one is of another ticket, or of another profile
			m.Set(familyProfile, columnCounted, at, w.Counted)
		}
		if w.Version != w.Row.Version {
			// The server's time, like the cells of tickets. The client does not retry such
			// a write; bulk does.
			m.Set(familyState, columnVersion, bigtable.ServerTime, bigEndian(w.Version))
		}
		size := len(w.Value) + len(w.Summary) + len(w.Session) + len(w.Counted)
		if err := b.add(s.tables.of(app, w.User).users, userKey(app, w.User), m, size); err != nil {
			return fmt.Errorf("write profiles of %s: %w", app, err)
		}
	}
	err := b.flush()
	if err == nil && len(refused) > 0 {
		err = refused
	}
	if err != nil {
		return fmt.Errorf("write profiles of %s: %w", app, err)
	}
	return nil
}

func bigEndian(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// ForgetUser drops the data derived from deleted events, at a ticket drawn after the
// tombstone. It replaces the manifest, deletes the inline block and every older profile
// and session, and leaves a marker. An empty profile would hide events newer than the tombstone.
func (s Users) ForgetUser(ctx context.Context, app, user string, ticket int64, manifest []byte) error {
	m, at := replace(columnManifest, manifest), bigtable.Timestamp(ticket*microsPerTicket)
	DropInline()(m)
	for _, column := range []string{columnProfile, columnSummary, columnSession, columnCounted} {
		m.Set(familyProfile, column, at, nil)
		if at > 0 { // a range that ends at 0 has no end
			m.DeleteTimestampRange(familyProfile, column, 0, at)
		}
	}
	// The client does not retry a write at the server's time. Writing twice is
	// harmless: readers read a range that no block covers from the log.
	err := retryAtomic(ctx, func() error { return s.tables.of(app, user).users.Apply(ctx, userKey(app, user), m) })
	if err != nil {
		return fmt.Errorf("forget %s,%s at ticket %d: %w", app, user, ticket, err)
	}
	return nil
}
