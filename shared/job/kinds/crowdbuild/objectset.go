package crowdbuild

import (
	"hash/maphash"
	"slices"
)

// objectSet tells which objects a catalog holds, by 64-bit hashes: 8 bytes an
// object, where its id in a map takes some 150. That one of a billion unknown ids
// passes for an object of a catalog of 8 million has a probability below 0.1 %.
type objectSet struct {
	seed   maphash.Seed
	hashes []uint64 // sorted once sealed
}

func newObjectSet() *objectSet { return &objectSet{seed: maphash.MakeSeed()} }

func (s *objectSet) add(id string) { s.hashes = append(s.hashes, maphash.String(s.seed, id)) }

// seal ends the additions.
func (s *objectSet) seal() { slices.Sort(s.hashes) }

func (s *objectSet) has(id string) bool {
	_, found := slices.BinarySearch(s.hashes, maphash.String(s.seed, id))
	return found
}
