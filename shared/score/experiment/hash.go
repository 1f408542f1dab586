// Package experiment says which users of an app are held out, and which get another strategy, so that they can be
// compared. It is pure: both are functions of a setting and of one token, so nothing is stored of a user.
//
// The hash is version 2 of GrowthBook's: an app that gives GrowthBook the same seed and the same ids finds its users in
// the same places.
package experiment

import "strconv"

// steps is how many values the hash takes.
const steps = 10_000

// hash returns a number of a unit under a seed: 0 <= n < 1, in steps of 1/10,000.
func hash(seed, unit string) float64 {
	first := strconv.AppendUint(make([]byte, 0, 10), uint64(fnv(fnv(offset, seed), unit)), 10)
	n := offset
	for _, digit := range first {
		n = (n ^ uint32(digit)) * prime
	}
	return float64(n%steps) / steps
}

// The numbers of FNV-1a with 32 bits.
const (
	offset uint32 = 0x811c9dc5
	prime  uint32 = 0x01000193
)

// fnv goes on with the hash of a text: FNV-1a over its UTF-16 units, each taken whole, as GrowthBook has it.
func fnv(n uint32, text string) uint32 {
	for _, r := range text {
		if r >= 0x10000 {
			n = (n ^ (0xd800 + uint32(r-0x10000)>>10)) * prime
			r = 0xdc00 + (r-0x10000)&0x3ff
		}
		n = (n ^ uint32(r)) * prime
	}
	return n
}
