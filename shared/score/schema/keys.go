package schema

import (
	"cmp"
	"math"
	"strings"
)

// Pos is a position in a user's log, which is ordered by time, then event id. Keys of rows end in
// positions.
type Pos struct {
	Time int64  // ms since the epoch
	ID   string // event id; "" precedes all events of that ms
}

// End is the position after every event.
var End = Pos{Time: math.MaxInt64}

// Compare returns -1 if p precedes q, 0 if they are equal, and 1 if p follows
// q.
func (p Pos) Compare(q Pos) int {
	if c := cmp.Compare(p.Time, q.Time); c != 0 {
		return c
	}
	return strings.Compare(p.ID, q.ID)
}

// Next returns the first position after p.
func (p Pos) Next() Pos { return Pos{Time: p.Time, ID: p.ID + "\x00"} }

// BlockID names a packed range of a user's log, in the key of its row: see package history.
type BlockID struct {
	Ticket int64 // of the fold that wrote it
	N      int   // number of the block within the fold
}
