// Package history holds a user's log in packed form: blocks, each with all that scoring needs to know of the events
// in one range of the log, and the manifest that says which ranges they cover. What is in a block need not be read
// event by event: a block is some hundred events in a few KB, scored straight from its bytes.
//
// A history is a cache of the log and can be rebuilt from it at any time. Block and log never overlap in what a reader
// takes from them, so no event is counted twice. The package is separate from those who decide what to pack and when,
// and from the tables: it knows bytes only. Blocks live in the table histories, the manifest in the user's row, both
// written and read by package store.
package history

import (
	"cmp"
	"errors"
	"hash/crc32"
	"math"
	"strings"
)

// Pos is a place in a user's log, which is ordered by time, then id.
type Pos struct {
	Time int64  // ms since the epoch
	ID   string // of the event; "" is before all events of that ms
}

// End is after every event.
var End = Pos{Time: math.MaxInt64}

// Compare returns -1, 0 or 1 as p is before q, at it, or after it.
func (p Pos) Compare(q Pos) int {
	if c := cmp.Compare(p.Time, q.Time); c != 0 {
		return c
	}
	return strings.Compare(p.ID, q.ID)
}

// Next returns the first place after p.
func (p Pos) Next() Pos { return Pos{Time: p.Time, ID: p.ID + "\x00"} }

// Range is the part of a log from From up to, but not including, To.
type Range struct{ From, To Pos }

// overlaps reports whether some place is in both.
func (r Range) overlaps(o Range) bool {
	return r.From.Compare(o.To) < 0 && o.From.Compare(r.To) < 0
}

// ErrNewer means that what is stored is of a format that this version of the engine does not know: a newer one wrote
// it. It is not damage.
var ErrNewer = errors.New("stored in a format this version does not know")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
