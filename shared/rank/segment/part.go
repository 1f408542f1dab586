package segment

import (
	"fmt"
	"strconv"
	"time"
)

// PartID names a part among all parts of an app, for ever. IDs grow with the time at
// which packing began, in ms.
type PartID uint64

const randomBits = 20

// NewPartID returns the ID of a part that is begun at an instant. random tells parts
// of one instant apart; its low 20 bits count.
func NewPartID(at time.Time, random uint32) PartID {
	return PartID(uint64(max(at.UnixMilli(), 0))<<randomBits | uint64(random&(1<<randomBits-1)))
}

// Begun returns the instant that NewPartID was given.
func (id PartID) Begun() time.Time { return time.UnixMilli(int64(id >> randomBits)) }

// String returns 16 hexadecimal digits.
func (id PartID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// ParsePartID parses what String returns.
func ParsePartID(s string) (PartID, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 {
		return 0, fmt.Errorf("part %q is not of 16 hexadecimal digits", s)
	}
	return PartID(n), nil
}

// MarshalText and UnmarshalText are String and ParsePartID.
func (id PartID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText parses what MarshalText returns.
func (id *PartID) UnmarshalText(b []byte) (err error) {
	*id, err = ParsePartID(string(b))
	return err
}

// Part describes a part.
type Part struct {
	ID PartID `json:"id"`
	// Generation is the build that a base part belongs to.
	Generation string `json:"generation,omitempty"`
	// From and To bound the users of a base part: From is included, To is not. An
	// empty end is open.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Delta: the part holds scattered users. Its set-outs (Kind SetOuts) say which
	// users of older parts no longer count.
	Delta bool `json:"delta,omitempty"`

	Users      int `json:"users"`
	Affinities int `json:"affinities"`
	// Instant (ms) is when packing began. Orders are stored relative to it.
	Instant int64 `json:"instant"`
	// Cut is the slot of the list of changes from which changes are not in the part.
	// The builder sets it.
	Cut int64 `json:"cut"`
	// Buckets is the number of rows that hold the lists of a delta. It is 0 for a
	// part whose lists have rows of their own.
	Buckets int `json:"buckets,omitempty"`
	// Ahead are the users whose profiles were of a later instant than the clock when
	// packing ended. Until that instant their scores do not decay, so their profiles
	// must be read.
	Ahead []Ahead `json:"ahead,omitempty"`
}

// Ahead is a user whose profile is of an instant (ms) to come.
type Ahead struct {
	Ordinal uint16 `json:"ordinal"`
	Until   int64  `json:"until"`
}

// TokensPerRow is the number of user tokens in a row of tokens.
const TokensPerRow = 256

// Covers reports whether a user lies between From and To.
func (p Part) Covers(user string) bool {
	return TokenOrder(user, p.From) >= 0 && (p.To == "" || TokenOrder(user, p.To) < 0)
}

// TokenRows returns the number of the part's rows of tokens.
func (p Part) TokenRows() int { return (p.Users + TokensPerRow - 1) / TokensPerRow }
