package configtest

import (
	"testing"

	"github.com/affinityengine/affinity/shared/score/consent"
)

// Purposes keep their numbers, and one that goes takes its number along. Each change raises the scoring version,
// also that of a surface: other processes have packed profiles for it.
func testPurposes(t *testing.T, s store) {
	create(t, s, "shop")
	setStrategy(t, s, "shop", scores(1), 1, true)
	before, err := s.App(t.Context(), "shop")
	if err != nil || before.Purposes.On() {
		t.Fatalf("purposes of a new app are %v, error %v", before.Purposes, err)
	}
	ads := consent.Purpose{Name: "ads", Surfaces: []consent.Surface{consent.Export}}
	personal := consent.Purpose{Name: "personal", Default: true}
	set, err := s.SetPurposes(t.Context(), "shop", []consent.Purpose{ads, personal})
	if err != nil || set.ScoringVersion <= before.ScoringVersion || set.Purposes.Purposes[1].Number != 2 {
		t.Errorf("after two purposes: %+v, %v", set, err)
	}
	got, err := s.App(t.Context(), "shop")
	set.ChangedAt = got.ChangedAt // by the clock of the store, not the caller's
	read(t, "app", got, err, set)
	ads.Surfaces = nil
	other, err := s.SetPurposes(t.Context(), "shop", []consent.Purpose{ads, personal})
	if err != nil || other.ScoringVersion <= set.ScoringVersion || other.Purposes.Equal(set.Purposes) {
		t.Errorf("after another surface: %+v, %v", other, err)
	}
	again, err := s.SetPurposes(t.Context(), "shop", []consent.Purpose{ads, personal})
	if err != nil || again.ChangedAt != other.ChangedAt && again.StrategyVersion != other.StrategyVersion {
		t.Errorf("after the same setting: %+v, %v", again, err)
	}
	none, err := s.SetPurposes(t.Context(), "shop", nil)
	if err != nil || none.Purposes.On() || none.Purposes.Last != 2 || none.ScoringVersion <= other.ScoringVersion {
		t.Errorf("after no purposes: %+v, %v", none, err)
	}
	got, err = s.App(t.Context(), "shop")
	if err != nil || got.Purposes.Last != 2 {
		t.Errorf("the numbers are forgotten: %+v, %v", got, err)
	}
	if _, err := s.SetPurposes(t.Context(), "shop", []consent.Purpose{ads, ads}); err == nil {
		t.Error("a purpose is set twice")
	}
}
