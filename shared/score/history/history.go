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

import "github.com/affinityengine/affinity/shared/score/schema"

// Pos is a position in a user's log.
type Pos = schema.Pos

// End is the position after every event.
var End = schema.End

// Range is the half-open range [From, To) of a log.
type Range struct{ From, To Pos }

// overlaps reports whether the two ranges share a position.
func (r Range) overlaps(o Range) bool {
	return r.From.Compare(o.To) < 0 && o.From.Compare(r.To) < 0
}
