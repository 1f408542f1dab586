package crowdbuild

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/affinityengine/affinity/shared/job"
)

// phase is the phase of a job that a shard belongs to.
type phase int

const (
	phaseSweep phase = iota
	phaseMerge
	phaseFrequencies
	phaseSwap
)

// The places of later phases begin with a comma, which no user token contains:
//
//	,merge,<index>,<bucket>    merge the runs of a bucket of an index
//	,frequencies,<index>       count document frequencies of an index
//	,swap                      swap the manifests
//
// An index is its number in the job's parameters. Places sort in the order of the
// work within a phase.
const (
	mergePrefix       = ",merge,"
	frequenciesPrefix = ",frequencies,"
	swapPlace         = ",swap"
	swapEnd           = ",swapped"
)

// place is where a shard of a job begins or continues.
type place struct {
	phase  phase
	index  int
	bucket int
}

func mergePlace(index, bucket int) string {
	return fmt.Sprintf("%s%06d,%03d", mergePrefix, index, bucket)
}

func frequenciesPlace(index int) string { return fmt.Sprintf("%s%06d", frequenciesPrefix, index) }

// parsePlace decodes a place of a job with a number of indexes.
func parsePlace(text string, indexes int) (place, error) {
	var p place
	var err error
	switch {
	case !strings.HasPrefix(text, ","):
		return place{}, nil
	case text == swapPlace:
		return place{phase: phaseSwap}, nil
	case strings.HasPrefix(text, mergePrefix):
		p.phase = phaseMerge
		_, err = fmt.Sscanf(text[len(mergePrefix):], "%d,%d", &p.index, &p.bucket)
	case strings.HasPrefix(text, frequenciesPrefix):
		p.phase = phaseFrequencies
		_, err = fmt.Sscanf(text[len(frequenciesPrefix):], "%d", &p.index)
	default:
		err = fmt.Errorf("unknown phase")
	}
	if err == nil && (p.index < 0 || p.index >= indexes || p.bucket < 0 || p.bucket > buckets) {
		err = fmt.Errorf("the job has %d indexes", indexes)
	}
	if err != nil {
		return place{}, fmt.Errorf("place %q: %w: %w", text, err, job.ErrFailed)
	}
	return p, nil
}

// Objects are merged in buckets, so that a task holds a part of them at a time.
const (
	buckets         = 256
	bucketsPerShard = 64
)

// bucketOf returns the bucket of an object.
func bucketOf(objectID string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(objectID)) // never fails
	n := h.Sum32()
	return int((n ^ n>>16) % buckets)
}

// selects reports whether a sample of a share of the users contains a user. It
// depends on nothing else, so that each build samples the same users, and a
// larger share contains a smaller one.
func selects(user string, share float64) bool {
	if share >= 1 {
		return true
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(user)) // never fails
	n := h.Sum64()
	// FNV mixes the upper bits of short texts badly; these are the last steps of
	// MurmurHash3.
	n = (n ^ n>>33) * 0xff51afd7ed558ccd
	n = (n ^ n>>33) * 0xc4ceb9fe1a85ec53
	n ^= n >> 33
	return float64(n>>11) < share*(1<<53)
}
