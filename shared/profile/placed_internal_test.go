package profile

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/store"
)

// To place a user allocates nothing, in an app with an experiment and in one without.
func TestPlacedCostsNothing(t *testing.T) {
	now := time.Now()
	e := experiment.Experiment{Name: "x", Seed: "x", Coverage: 1, StartAt: now,
		Arms: []experiment.Arm{{Name: "a", Strategy: 1, Weight: 0.5}, {Name: "b", Strategy: 2, Weight: 0.5}}}
	for name, app := range map[string]config.App{
		"no experiment": {ID: "shop"}, "an experiment": {ID: "shop", Experiment: e, ArmRankings: make([]config.ArmRanking, 2)},
	} {
		var placed Result
		result := Result{App: app}
		if n := testing.AllocsPerRun(100, func() { placed = result.placed("ann", store.User{}, now) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if in := placed.Assigned.Arm != ""; in != app.Experiment.On() {
			t.Errorf("%s: the user is in %+v", name, placed.Assigned)
		}
	}
}
