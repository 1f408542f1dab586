package store

import (
	"encoding/binary"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// parseUser parses a row that the client library has decoded.
func parseUser(row bigtable.Row) (User, error) {
	p := userParser{User: User{Exists: len(row) > 0}}
	for family, items := range row {
		for _, item := range items {
			if err := p.cell(family, item.Column[len(family)+1:], int64(item.Timestamp), item.Value); err != nil {
				return User{}, fmt.Errorf("user row %q: %w", row.Key(), err)
			}
		}
	}
	return p.user(), nil
}

// keepUser parses a row of which these parts were read, and copies it, because the row
// is valid only now.
func keepUser(row *rowstream.Row, parts UserParts) (User, error) {
	p, size := userParser{User: User{Exists: true, HasInline: parts == UserHistory}}, 0
	for i := range row.Cells {
		size += len(row.Cells[i].Value)
	}
	values := make([]byte, 0, size)
	for i := range row.Cells {
		c, from := &row.Cells[i], len(values)
		values = append(values, c.Value...)
		if err := p.cell(string(c.Family), string(c.Qualifier), c.Time, values[from:len(values):len(values)]); err != nil {
			return User{}, fmt.Errorf("user row %q: %w", row.Key, err)
		}
	}
	return p.user(), nil
}

// userParser makes a user of the newest cells of their row, in any order.
type userParser struct {
	User
	session, counted                []byte
	profileAt, sessionAt, countedAt int64 // times of the cells
}

func (p *userParser) cell(family, column string, at int64, value []byte) (err error) {
	switch family {
	case familyState:
		err = p.state(column, value)
	case familyProfile:
		switch column {
		case columnProfile:
			p.HasProfile, p.Profile, p.profileAt = true, value, at
		case columnSummary:
			p.HasProfile, p.Summary = true, value
		case columnSession:
			p.session, p.sessionAt = value, at
		case columnCounted:
			p.counted, p.countedAt = value, at
		}
	case familyInline:
		p.Inline = value
	case familyExposed:
		var e Exposure
		e, err = exposedTo(column, at)
		p.Exposures = append(p.Exposures, e)
	}
	return err
}

func (p *userParser) state(column string, value []byte) (err error) {
	switch column {
	case columnCounter:
		p.Ticket, err = stateNumber(column, value)
	case columnManifest:
		p.Manifest = value
	case columnDeleted:
		p.DeletedUntil, err = stateNumber(column, value)
	case columnExcluded:
		err = p.parseExcluded(value)
	case columnVersion:
		p.Version, err = stateNumber(column, value)
	case columnMarks:
		p.Marks, err = stateNumber(column, value)
	case columnOwner:
		p.Owner, err = parseOwner(value)
	case columnLinks:
		p.Links = value
	case columnCopied:
		p.Copied, err = parseLogCopy(value)
	}
	return err
}

// stateNumber returns the number in a column of the state.
func stateNumber(column string, value []byte) (int64, error) {
	switch len(value) {
	case 0:
		return 0, nil
	case 8:
		return int64(binary.BigEndian.Uint64(value)), nil
	}
	return 0, fmt.Errorf("column %q: %d bytes, want 8", familyState+":"+column, len(value))
}

// user returns the user after all cells.
func (p *userParser) user() User {
	if p.HasProfile && p.sessionAt == p.profileAt {
		p.Session = p.session
	}
	if p.HasProfile && p.countedAt == p.profileAt {
		p.Counted = p.counted
	}
	p.ProfileTicket = p.profileAt / microsPerTicket
	return p.User
}
