package segment

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/wire"
)

// User is a user of a page.
type User struct {
	Order Order
	Token string
	// Part (an index among the manifest's parts) and Ordinal say whose Token it is until
	// it is known. Part is -1 for a user whose profile was read.
	Part    int
	Ordinal uint16
}

// Candidates returns the users who can be on a page of limit users: hits by part, and
// others whose profiles were read. Their tokens decide between equal Orders, so the
// caller looks up the Tokens and calls Page. Of one Order there are at most limit users
// of each delta, and limit of all base parts, whose users are in the order of tokens. Where parts are those of several
// regions, which each begin with a part that begins with the first of all tokens, it is limit of the base parts of
// each.
func Candidates(parts []Part, hits [][]Hit, read []User, limit int) []User {
	all := slices.Clone(read)
	for i, of := range hits {
		for _, h := range of {
			all = append(all, User{Order: h.Order, Part: i, Ordinal: h.Ordinal})
		}
	}
	if len(all) <= limit {
		return all
	}
	slices.SortFunc(all, func(a, b User) int {
		return cmp.Or(cmp.Compare(b.Order, a.Order), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	last, before := all[limit-1].Order, 0
	for all[before].Order > last {
		before++
	}
	kept, based, next := before, 0, 0
	for _, u := range all[before:] {
		if u.Order < last {
			break
		}
		for ; next <= u.Part; next++ {
			if !parts[next].Delta && parts[next].From == "" {
				based = 0
			}
		}
		if u.Part >= 0 && !parts[u.Part].Delta { // parts are in the order of tokens
			if based++; based > limit-before {
				continue
			}
		}
		all[kept] = u
		kept++
	}
	return all[:kept]
}

// Page sorts users with tokens by Order descending, then token, and returns the first
// limit of them.
func Page(users []User, limit int) []User {
	slices.SortFunc(users, func(a, b User) int {
		return cmp.Or(cmp.Compare(b.Order, a.Order), TokenOrder(a.Token, b.Token))
	})
	return users[:min(limit, len(users))]
}

// Cursor says where the next page of a query begins: behind a user.
type Cursor struct {
	Where uint32 // Query.Where
	At    int64  // ms: when the first page was read
	Order Order
	Token string
}

const (
	cursorLife = 24 * time.Hour
	cursorHead = 1 + 4 + 8 + 8
	// MaxCursor is the length of the longest cursor that is decoded.
	MaxCursor = 4 << 10
)

// String returns the cursor for a client. It is opaque: a format byte, Where, At and
// Order (4, 8 and 8 bytes, big-endian), the token, CRC-32C, in base64url.
func (c Cursor) String() string {
	b := binary.BigEndian.AppendUint32([]byte{format}, c.Where)
	b = binary.BigEndian.AppendUint64(b, uint64(c.At))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Order))
	return base64.RawURLEncoding.EncodeToString(wire.Seal(append(b, c.Token...), 0))
}

// ParseCursor decodes a cursor for a query, as of an instant (ms). A cursor that is
// damaged, of another condition or older than a day is refused with a *fault.Error.
func ParseCursor(text string, q *Query, now int64) (Cursor, error) {
	if len(text) > MaxCursor {
		return Cursor{}, errCursor("is damaged")
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Cursor{}, errCursor("is damaged")
	}
	r, err := unseal(b)
	if err != nil || len(r.B) < cursorHead {
		return Cursor{}, errCursor("is damaged")
	}
	c := Cursor{
		Where: binary.BigEndian.Uint32(r.B[1:]),
		At:    int64(binary.BigEndian.Uint64(r.B[5:])),
		Order: Order(binary.BigEndian.Uint64(r.B[13:])),
		Token: string(r.B[cursorHead:]),
	}
	switch age := now - c.At; {
	case c.Where != q.where:
		return Cursor{}, errCursor("is of another condition")
	case age > cursorLife.Milliseconds() || age < math.MinInt64/2:
		return Cursor{}, errCursor("has expired after a day")
	}
	return c, nil
}

func errCursor(fault string) error {
	return invalid("cursor %s: send it as the last page gave it with the same where, or none to begin again", fault)
}

// Passed reports whether a page before the cursor held a user, or would have. Nothing is
// passed without a cursor.
func (c *Cursor) Passed(o Order, token string) bool {
	return c != nil && (o > c.Order || o == c.Order && TokenOrder(token, c.Token) <= 0)
}
