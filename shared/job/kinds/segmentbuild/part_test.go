package segmentbuild

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/rank/segment"
)

// No two parts that a process begins have one name, however many it begins in a millisecond:
// each would overwrite rows of the other.
func TestPartsOfAProcessDiffer(t *testing.T) {
	w := &Work{runner: &Runner{Runner: &job.Runner{Now: func() time.Time { return time.UnixMilli(1) }}}}
	seen := map[segment.PartID]bool{}
	for range 5_000 { // of random names, a dozen pairs would be equal
		id := w.newPart()
		if seen[id] {
			t.Fatalf("two parts are %s", id)
		}
		seen[id] = true
	}
}
