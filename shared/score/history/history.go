// Package history encodes a user's log in packed form. A block holds the data
// that scoring needs of all events in one range of the log: some hundred events
// take a few KB and are scored directly from those bytes. The manifest lists
// the blocks of a user and the ranges that they cover.
//
// A block also says which objects its events name, in a section that scoring
// skips.
//
// Blocks hold short ids in place of the texts that many users share. The ids are
// those of a Dictionary, which the block names. Vocabulary makes dictionaries.
//
// A history is a cache: it can be rebuilt from the log at any time. A reader
// takes each range of the log either from a block or from the log, so no event
// counts twice.
//
// The package only encodes and decodes. Package profile decides what to pack
// and when. Package store keeps the blocks, and the manifest in the user row.
package history

import (
	"cmp"
	"math"
	"strings"
)

// Pos is a position in a user's log, which is ordered by time, then event id.
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

// Range is the half-open range [From, To) of a log.
type Range struct{ From, To Pos }

// overlaps reports whether the two ranges share a position.
func (r Range) overlaps(o Range) bool {
	return r.From.Compare(o.To) < 0 && o.From.Compare(r.To) < 0
}
