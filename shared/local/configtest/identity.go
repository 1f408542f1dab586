package configtest

import (
	"errors"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

// A mode follows the one beside it, and only when that is settled. Where links begin or cease to count, the
// scoring version rises and the strategy stays.
func testIdentity(t *testing.T, s store) {
	create(t, s, "shop")
	setStrategy(t, s, "shop", scores(1), 1, true)
	before, err := s.App(t.Context(), "shop")
	if err != nil || before.Identity.On() {
		t.Fatalf("identity of a new app is %v, error %v", before.Identity, err)
	}
	set := func(mode config.IdentityMode, settle time.Duration) (config.App, error) {
		return s.SetIdentity(t.Context(), "shop", config.Identity{Mode: mode, Lookback: time.Hour}, settle)
	}
	if _, err := set(config.IdentityLink, 0); err == nil {
		t.Error("links counted before they were collected")
	}
	if _, err := set("merge", 0); err == nil {
		t.Error("an unknown mode was accepted")
	}
	collecting, err := set(config.IdentityCollect, time.Hour)
	if err != nil || collecting.ScoringVersion != before.ScoringVersion || collecting.Identity.Lookback != time.Hour {
		t.Errorf("after collect: %+v, %v", collecting, err)
	}
	var settling *config.SettlingError
	if _, err := set(config.IdentityLink, time.Hour); !errors.As(err, &settling) || settling.Until.Before(collecting.Identity.Since) {
		t.Errorf("links count at once: %v", err)
	}
	linking, err := set(config.IdentityLink, 0)
	if err != nil || linking.ScoringVersion <= before.ScoringVersion || !linking.Strategy.Equal(before.Strategy) {
		t.Errorf("after link: %+v, %v", linking, err)
	}
	got, err := s.App(t.Context(), "shop")
	linking.ChangedAt = got.ChangedAt // by the clock of the store, not the caller's
	read(t, "app", got, err, linking)
	kept, err := s.StrategyVersion(t.Context(), "shop", linking.StrategyVersion)
	read(t, "kept strategy", kept, err, before.Strategy)
	again, err := set(config.IdentityLink, time.Hour)
	read(t, "app after the same setting", again, err, linking)
	if _, err := set(config.IdentityOff, 0); err == nil {
		t.Error("links that count were switched off at once")
	}
}
