package crowd_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/rank/crowd"
)

// A generation of a clock that was ahead does not stop later builds.
func TestGenerationOfClockAheadIsReplaced(t *testing.T) {
	now := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	name := crowd.GenerationName(now, "job")
	for _, c := range []struct {
		built time.Time
		want  bool
	}{{now.Add(-time.Hour), false}, {now.Add(time.Minute), true}, {now.AddDate(1, 0, 0), false}} {
		g := crowd.Generation{Name: crowd.GenerationName(c.built, "other"), BuiltAt: c.built.UnixMilli()}
		if got := g.Supersedes(name, now); got != c.want {
			t.Errorf("a generation of %s supersedes one of %s: %v, want %v", c.built, now, got, c.want)
		}
	}
}
