package profile

import "github.com/affinityengine/affinity/shared/score/affinity"

// What computations hold together in a process with a soft limit of memory in bytes: a
// sixth of it above the free part of each, at most 160 MB, and some 60 MB for each user
// who is computed alone.
const (
	heldShare  = 6
	heldMost   = 160_000_000
	valueBytes = 150 // of a value in a scorer, besides its name
	aloneBytes = 60 << 20
	maxSerial  = 1
)

var heldFree = affinity.Hold{Values: 256, Bytes: 16 << 10}

// Computing returns how many bytes the computations of profiles hold at most in a
// process with a soft limit of memory.
func Computing(limit int64) int64 { return min(limit/heldShare, heldMost) + maxSerial*aloneBytes }

// What refreshes keep of users in a process with a soft limit of memory in bytes: a
// fourteenth of it, at most 64 MB. A process that only reads keeps nothing.
const (
	recentShare = 14
	recentMost  = 64_000_000
)

// Recent returns how many bytes the refreshes of a process with a soft limit of memory
// keep of users.
func Recent(limit int64) int64 { return min(limit/recentShare, recentMost) }

// What a process with a soft limit of memory in bytes keeps of dictionaries: a
// fortieth of it, at most 32 MB. The largest one takes 4 MB.
const (
	dictionaryShare = 40
	dictionaryMost  = 32_000_000
)

// Dictionaries returns how many bytes of dictionaries a process with a soft limit of
// memory keeps.
func Dictionaries(limit int64) int64 { return min(limit/dictionaryShare, dictionaryMost) }

// heldWithin is half values and half names.
func heldWithin(limit int64) affinity.Hold {
	half := int(min(limit/heldShare, heldMost) / 2)
	return affinity.Hold{Values: half / valueBytes, Bytes: half}
}
