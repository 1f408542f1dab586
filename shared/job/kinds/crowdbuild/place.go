package crowdbuild

import (
	"fmt"
	"hash/fnv"

	"github.com/affinityengine/affinity/shared/job"
)

// The parts of a job that follow its users.
const (
	merging  = "merge"       // merge the runs of buckets of an index
	counting = "frequencies" // count document frequencies of an index
	swapping = "swap"        // swap the manifests
)

// place is where a shard of merging or counting begins, ends or continues. An index is its
// number in the job's parameters.
type place struct{ index, bucket int }

func (p place) String() string { return fmt.Sprintf("%06d,%03d", p.index, p.bucket) }

// parsePlace decodes a place of a job with a number of indexes.
func parsePlace(text string, indexes int) (place, error) {
	var p place
	_, err := fmt.Sscanf(text, "%d,%d", &p.index, &p.bucket)
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
	// ownBucket holds what all objects of a run count of sets. Each merge reads it whole: the
	// weight of two objects goes by both, and the second may lie in any bucket.
	ownBucket = buckets
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
