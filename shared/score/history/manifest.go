package history

import (
	"slices"
	"sort"

	"github.com/affinityengine/affinity/shared/score/schema"
)

// BlockID names a block of a user.
type BlockID = schema.BlockID

// Block is a manifest's entry for one block, which holds every event of its
// range of the log.
type Block struct {
	Range
	ID     BlockID
	Newest int64 // time of its latest event, in ms
	Events int
	Bytes  int // as stored
	// Inline reports that the block is a cell of the user's row, and not a row of its
	// own. At most one block of a manifest is inline.
	Inline bool
}

// Announcement records that a fold is running: it names the range that the fold
// will cover. The fold commits only if the manifest still has the version that
// the announcement gave it.
type Announcement struct {
	Range
	Ticket int64 // of the fold
}

// Manifest lists the blocks of a user and the ranges of the log that they
// cover. Manifests are immutable, so copies may share their slices.
type Manifest struct {
	Version int64 // unique to each change of the manifest; the caller sets it
	// Complete is a ticket at which the blocks held every event of the log
	// from the start of the first block on. 0 means unknown.
	Complete  int64
	Announced *Announcement // nil without a running fold
	Blocks    []Block       // sorted, disjoint and not empty
}

// Covering returns the block whose range contains a position.
func (m Manifest) Covering(p Pos) (Block, bool) {
	i := m.after(p)
	if i < len(m.Blocks) && m.Blocks[i].From.Compare(p) <= 0 {
		return m.Blocks[i], true
	}
	return Block{}, false
}

// after returns the index of the first block that ends after p.
func (m Manifest) after(p Pos) int {
	return sort.Search(len(m.Blocks), func(i int) bool { return m.Blocks[i].To.Compare(p) > 0 })
}

// Inline returns the block that is a cell of the user's row.
func (m Manifest) Inline() (Block, bool) {
	for _, b := range m.Blocks {
		if b.Inline {
			return b, true
		}
	}
	return Block{}, false
}

// Gaps returns the ranges of the log from a position on that no block covers,
// in order. The last one ends at End.
func (m Manifest) Gaps(from Pos) []Range {
	var gaps []Range
	for _, b := range m.Blocks[m.after(from):] {
		if from.Compare(b.From) < 0 {
			gaps = append(gaps, Range{from, b.From})
		}
		from = b.To
	}
	if from.Compare(End) < 0 {
		gaps = append(gaps, Range{from, End})
	}
	return gaps
}

// Without returns the manifest without the blocks for which drop returns true.
// If it drops any, it also clears Complete and Announced.
func (m Manifest) Without(drop func(Block) bool) Manifest {
	left := make([]Block, 0, len(m.Blocks))
	for _, b := range m.Blocks {
		if !drop(b) {
			left = append(left, b)
		}
	}
	if len(left) < len(m.Blocks) {
		m.Complete, m.Announced = 0, nil
	}
	m.Blocks = left
	return m
}

// With returns the manifest with blocks added. Each replaces the blocks that it
// overlaps.
func (m Manifest) With(blocks ...Block) Manifest {
	m.Blocks = slices.Clone(m.Blocks)
	for _, b := range blocks {
		first := m.after(b.From)
		last := first
		for last < len(m.Blocks) && m.Blocks[last].overlaps(b.Range) {
			last++
		}
		m.Blocks = slices.Replace(m.Blocks, first, last, b)
	}
	return m
}
