package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"cloud.google.com/go/bigtable"
)

// A user has one owner: the region, which is a Bigtable instance, whose row of the user
// counts. The cell u:w of each row says who that is, as 8 bytes of the epoch, a byte of the
// state and the other region. Rows of an app that never moved have no such cell.

// Owner is what a user row says of who owns the user.
type Owner struct {
	// Epoch rises with every change of the owner's state, in the rows of all regions.
	Epoch int64
	State OwnerState
	// Region is the other region, which gets the user or has them. Rows that are Nobodys or
	// Own name none.
	Region string
}

// OwnerState is what a row is to its user.
type OwnerState byte

// A row is Nobodys until a writer gives the user an owner. While it is Leaving it still is
// the one that counts, and who logs an event logs it in the other region, too. The row
// of the other region counts once a row is Moved and the other one is Own, of the same epoch or
// a later one.
const (
	Nobodys OwnerState = iota
	Own
	Leaving
	Moved
)

var ownerStates = [...]string{"nobody's", "own", "leaving", "moved"}

// String returns the name of the state.
func (s OwnerState) String() string {
	if int(s) < len(ownerStates) {
		return ownerStates[s]
	}
	return fmt.Sprintf("state %d", byte(s))
}

// Here reports whether the row is the one that counts.
func (o Owner) Here() bool { return o.State == Own || o.State == Leaving }

// String says it for log lines and errors.
func (o Owner) String() string {
	text := fmt.Sprintf("%s since epoch %d", o.State, o.Epoch)
	if o.Region != "" {
		text += ", to " + o.Region
	}
	return text
}

const ownerHead = 9 // bytes before the region

func (o Owner) appendBinary(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(o.Epoch))
	return append(append(dst, byte(o.State)), o.Region...)
}

func parseOwner(value []byte) (Owner, error) {
	if len(value) == 0 {
		return Owner{}, nil
	}
	o := Owner{}
	if len(value) >= ownerHead {
		o = Owner{int64(binary.BigEndian.Uint64(value)), OwnerState(value[ownerHead-1]), string(value[ownerHead:])}
	}
	if o.Epoch <= 0 || o.State < Own || o.State > Moved || (o.State == Own) != (o.Region == "") {
		return Owner{}, fmt.Errorf("column %q: %x is no owner", familyState+":"+columnOwner, value)
	}
	return o, nil
}

// unchanged returns filters that pass a cell unless the row still has the owner with which the caller has read it as
// one that counts. A row that was read without an owner gives none.
func (o Owner) unchanged() []bigtable.Filter {
	if o == (Owner{}) {
		return nil
	}
	return differs(columnOwner, o.appendBinary(nil))
}

// SetOwner changes who owns a user if the row of this region says so far that it is from.
// It returns false if the row says something else, or if the first answer was lost; then the
// owner may have been changed. How far the log has been copied is forgotten, because a copy
// counts only under the epoch in which it began.
func (s Users) SetOwner(ctx context.Context, app, user string, from, to Owner) (bool, error) {
	change := replace(columnOwner, to.appendBinary(nil))
	change.DeleteCellsInColumn(familyState, columnCopied)
	if from == (Owner{}) {
		return s.swap(ctx, app, user, bigtable.NewCondMutation(latest(columnOwner, []byte{0}, nil), nil, change), true)
	}
	now := from.appendBinary(nil)
	return s.swap(ctx, app, user, bigtable.NewCondMutation(latest(columnOwner, now, append(bytes.Clone(now), 0)),
		change, nil), false)
}

// Arrival is a user row as it begins in the region that the user has moved to.
type Arrival struct {
	Epoch int64 // of the owner's state, which becomes Own
	// Row has the ticket, the deletions, the opt-out, the marks, the links and the exposures with which the
	// row begins, and the profile and session that are valid at that ticket. Without a profile the row has
	// a marker.
	Row User
	// Manifest names no block. Its version is one that no manifest of the user has had.
	Manifest []byte
}

// Arrive makes the row of this region the one that counts, unless the row has the epoch of
// the arrival or a later one. Whatever the row held is replaced. It returns false if it
// changed nothing or if the first answer was lost.
func (s Users) Arrive(ctx context.Context, app, user string, a Arrival) (bool, error) {
	m := bigtable.NewMutation()
	for column, value := range map[string][]byte{
		columnOwner: Owner{Epoch: a.Epoch, State: Own}.appendBinary(nil), columnManifest: a.Manifest,
		columnCounter: bigEndian(a.Row.Ticket), columnMarks: bigEndian(a.Row.Marks), columnVersion: bigEndian(a.Row.Version),
		columnDeleted: bigEndian(a.Row.DeletedUntil), columnExcluded: a.Row.exclusion,
	} {
		m.DeleteCellsInColumn(familyState, column)
		m.Set(familyState, column, bigtable.ServerTime, value)
	}
	m.DeleteCellsInColumn(familyState, columnLinks)
	if len(a.Row.Links) > 0 {
		m.Set(familyState, columnLinks, bigtable.ServerTime, a.Row.Links)
	}
	DropInline()(m)
	m.DeleteCellsInFamily(familyExposed)
	for _, e := range a.Row.Exposures {
		m.Set(familyExposed, e.column(), bigtable.Timestamp(e.At*1000), metValue)
	}
	at := bigtable.Timestamp(a.Row.Ticket * microsPerTicket)
	for column, value := range map[string][]byte{
		columnProfile: a.Row.Profile, columnSummary: a.Row.Summary, columnSession: a.Row.Session, columnCounted: nil,
	} {
		m.DeleteCellsInColumn(familyProfile, column)
		m.Set(familyProfile, column, at, value)
	}
	reached := latest(columnOwner, bigEndian(a.Epoch), nil)
	return s.swap(ctx, app, user, bigtable.NewCondMutation(reached, nil, m), true)
}

// Bare reports whether a row says nothing but a ticket.
func (u *User) Bare() bool {
	return u.Owner.State == Nobodys && u.DeletedUntil == 0 && len(u.exclusion) == 0 && len(u.Manifest) == 0 &&
		len(u.Links) == 0 && u.Version == 0 && u.Marks == 0
}

// Strip takes everything but the ticket out of the row of a user, and out of a bare one the ticket, too. It changes
// nothing and returns false if the ticket, the owner, the links or what the row excludes is not what the caller has read, or if
// the first answer was lost.
func (s Users) Strip(ctx context.Context, app, user string, row User) (bool, error) {
	m, owner := bigtable.NewMutation(), []byte(nil)
	m.DeleteRow()
	if !row.Bare() {
		m.Set(familyState, columnCounter, bigtable.ServerTime, bigEndian(row.Ticket))
	}
	if row.Owner != (Owner{}) {
		owner = row.Owner.appendBinary(nil)
	}
	changed := interleave(newest(row.Ticket), differs(columnOwner, owner), differs(columnLinks, row.Links),
		differs(columnExcluded, row.exclusion))
	return s.swap(ctx, app, user, bigtable.NewCondMutation(changed, nil, m), true)
}

// EraseMoved deletes the row of a user who has moved away, if it still says of the owner what the caller has read.
func (s Users) EraseMoved(ctx context.Context, app, user string, owner Owner) error {
	m, now := bigtable.NewMutation(), owner.appendBinary(nil)
	m.DeleteRow()
	_, err := s.swap(ctx, app, user, bigtable.NewCondMutation(latest(columnOwner, now,
		append(bytes.Clone(now), 0)), m, nil), false)
	return err
}
