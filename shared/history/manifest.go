package history

import (
	"slices"
	"sort"
)

// BlockID names a block of a user.
type BlockID struct {
	Ticket int64 // of the fold that wrote it
	N      int   // its number within the fold
}

// Block is what a manifest says of a block: it holds every event of a range of the log.
type Block struct {
	Range
	ID     BlockID
	Newest int64 // ms: its latest event
	Events int
	Bytes  int // as stored
}

// Announcement is a fold under way: it has said what it is going to cover, and commits only if the manifest's version
// is still the one it left.
type Announcement struct {
	Range
	Ticket int64 // of the fold
}

// Manifest says which ranges of a user's log are in which blocks. Manifests are values: nothing changes one in place,
// so copies may share their lists.
type Manifest struct {
	Version int64 // another with each change of the manifest; whoever changes it sets it
	// Complete is a ticket at which nothing of the log was outside the blocks, from the first of them on; 0: unknown.
	Complete  int64
	Announced *Announcement // nil: none
	Blocks    []Block       // in order, disjoint, none of them empty
}

// Covering returns the block whose range holds a place.
func (m Manifest) Covering(p Pos) (Block, bool) {
	i := m.after(p)
	if i < len(m.Blocks) && m.Blocks[i].From.Compare(p) <= 0 {
		return m.Blocks[i], true
	}
	return Block{}, false
}

// after returns the number of the first block that ends after p.
func (m Manifest) after(p Pos) int {
	return sort.Search(len(m.Blocks), func(i int) bool { return m.Blocks[i].To.Compare(p) > 0 })
}

// Gaps returns what no block covers of the log from a place on, in order. The last of them ends at End.
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

// Without returns the manifest without some blocks. If any goes, the copy is complete at no ticket, and what was
// announced is not any more.
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

// With returns the manifest with blocks added, each in the place of those that it overlaps.
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
