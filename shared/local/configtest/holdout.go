package configtest

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/score/experiment"
)

// A holdout keeps its seed, also while it is off, and leaves the scoring as it is.
func testHoldout(t *testing.T, s store) {
	create(t, s, "shop")
	setStrategy(t, s, "shop", scores(1), 1, true)
	before, err := s.App(t.Context(), "shop")
	if err != nil || before.Holdout.On() {
		t.Fatalf("holdout of a new app is %v, error %v", before.Holdout, err)
	}
	if _, err := s.SetHoldout(t.Context(), "shop", experiment.Holdout{Share: 1, Seed: "q4"}); err == nil {
		t.Error("all users are held out")
	}
	for _, c := range []struct{ to, want experiment.Holdout }{
		{experiment.Holdout{Share: 0.05, Seed: "q4"}, experiment.Holdout{Share: 0.05, Seed: "q4"}},
		{experiment.Holdout{Share: 0.1}, experiment.Holdout{Share: 0.1, Seed: "q4"}},
		{experiment.Holdout{}, experiment.Holdout{Seed: "q4"}},
		{experiment.Holdout{Share: 0.1}, experiment.Holdout{Share: 0.1, Seed: "q4"}},
	} {
		set, err := s.SetHoldout(t.Context(), "shop", c.to)
		if err != nil || set.Holdout != c.want || set.StrategyVersion != before.StrategyVersion {
			t.Errorf("after %v: %+v, %v", c.to, set, err)
		}
		got, err := s.App(t.Context(), "shop")
		since := time.Time{}
		if c.want.On() {
			since = got.ChangedAt
		}
		set.ChangedAt, set.HoldoutSince = got.ChangedAt, since // by the clock of the store, not the caller's
		read(t, "app", got, err, set)
		if !got.ChangedAt.After(before.ChangedAt) {
			t.Errorf("after %v the app has changed at %v, want later than %v", c.to, got.ChangedAt, before.ChangedAt)
		}
	}
}
