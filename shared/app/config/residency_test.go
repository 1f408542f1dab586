package config_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
)

// A region that all users have left is taken out of the setting, and its countries have the one to which users moved. No
// other is.
func TestRegionIsLeft(t *testing.T) {
	s := config.NewMemory()
	must.Succeed(t, s.CreateApp(t.Context(), config.App{ID: "shop", Region: "eu"}))
	r := config.Residency{Mode: config.ResidencyPrepare, Regions: []string{"eu", "us", "asia"}}
	for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
		r.Mode = mode
		_, err := s.SetResidency(t.Context(), "shop", r, 0)
		must.Succeed(t, err)
	}
	r.Rule, r.Map = config.ByHeader, map[string]string{"US": "us", "JP": "asia"}
	r.Leave = map[string]string{"asia": "us"}
	_, err := s.SetResidency(t.Context(), "shop", r, 0)
	must.Succeed(t, err)
	for _, region := range []string{"us", "asia"} {
		app, err := s.LeaveRegion(t.Context(), "shop", region)
		must.Succeed(t, err)
		r = app.Residency
	}
	if len(r.Regions) != 2 || len(r.Leave) > 0 || r.Map["JP"] != "us" || r.Map["US"] != "us" {
		t.Errorf("the setting is %s", r)
	}
}

// In an app whose users all live in its region, the question whether they do costs nothing: its limits answer it.
func TestOtherAppsPayNothing(t *testing.T) {
	s := config.NewMemory()
	must.Succeed(t, s.CreateApp(t.Context(), config.App{ID: "shop", Region: "eu"}))
	cached := config.NewCached(s, time.Minute)
	limits := func() { _, err := cached.Limits(t.Context(), "shop"); must.Succeed(t, err) }
	ask := func() {
		if _, resident, err := cached.Intake(t.Context(), "shop"); err != nil || resident {
			t.Error(resident, err)
		}
	}
	limits()
	if asked, look := testing.AllocsPerRun(100, ask), testing.AllocsPerRun(100, limits); asked > look {
		t.Errorf("%v allocations, and %v of the limits", asked, look)
	}
}
