package configtest

import (
	"errors"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

func residence(mode config.ResidencyMode, regions ...string) config.Residency {
	return config.Residency{Mode: mode, Regions: append([]string{"eu", "us"}, regions...)}
}

// countries are those of a rule, with a region.
func countries(region string) map[string]string { return map[string]string{"US": region} }

// ruled is a setting of preparation with a rule.
func ruled(r config.Residency) config.Residency {
	r.Mode, r.Regions = config.ResidencyPrepare, []string{"eu", "us"}
	return r
}

// A mode follows the one beside it, and only when that is settled. No region in which users may live is taken out,
// and the app does not move.
func testResidency(t *testing.T, s store) {
	ctx := t.Context()
	create(t, s, "shop")
	if _, err := s.SetResidency(ctx, "shop", residence(config.ResidencyPrepare), 0); err == nil {
		t.Error("an app without a region lets users live in several")
	}
	_, err := s.UpdateMove(ctx, "shop", func(a *config.App) error { a.Region = "eu"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]config.Residency{
		"on at once":                        residence(config.ResidencyOn),
		"an unknown mode":                   residence("here"),
		"one region":                        {Mode: config.ResidencyPrepare, Regions: []string{"eu"}},
		"not that of the app":               {Mode: config.ResidencyPrepare, Regions: []string{"us", "asia"}},
		"a region twice":                    residence(config.ResidencyPrepare, "us"),
		"no name of a region":               residence(config.ResidencyPrepare, "Asia"),
		"regions while it is off":           residence(config.ResidencyOff),
		"an unknown rule":                   ruled(config.Residency{Rule: "weather"}),
		"a rule that names no region":       ruled(config.Residency{Rule: config.ByHeader}),
		"an unknown region of a rule":       ruled(config.Residency{Rule: config.ByHeader, Map: countries("asia")}),
		"a table for another rule":          ruled(config.Residency{Rule: config.ByKey, Map: countries("us")}),
		"no name of a header":               ruled(config.Residency{Rule: config.ByHeader, Header: "a b", Map: countries("us")}),
		"users leave the region of the app": ruled(config.Residency{Leave: map[string]string{"eu": "us"}}),
		"users leave for nowhere":           ruled(config.Residency{Leave: map[string]string{"us": "asia"}}),
	} {
		if _, err := s.SetResidency(ctx, "shop", refused, 0); err == nil {
			t.Errorf("%s is accepted: %+v", name, refused)
		}
	}
	prepared, err := s.SetResidency(ctx, "shop", residence(config.ResidencyPrepare), time.Hour)
	if err != nil || prepared.Residency.Home != "eu" || !prepared.Owned() {
		t.Fatalf("after prepare: %+v, %v", prepared, err)
	}
	var settling *config.SettlingError
	_, err = s.SetResidency(ctx, "shop", residence(config.ResidencyOn), time.Hour)
	if !errors.As(err, &settling) || settling.Until.Before(prepared.Residency.Since) {
		t.Errorf("users move at once: %v", err)
	}
	on, err := s.SetResidency(ctx, "shop", residence(config.ResidencyOn), 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.App(ctx, "shop")
	on.ChangedAt = got.ChangedAt // by the clock of the store, not the caller's
	read(t, "app", got, err, on)
	again, err := s.SetResidency(ctx, "shop", residence(config.ResidencyOn), time.Hour)
	read(t, "app after the same setting", again, err, on)
	other := config.Residency{Mode: config.ResidencyOn, Regions: []string{"eu", "asia"}}
	for _, less := range []config.Residency{{}, residence(config.ResidencyPrepare), other} {
		if _, err := s.SetResidency(ctx, "shop", less, 0); err == nil {
			t.Errorf("users may live in us, and the setting changes to %+v", less)
		}
	}
	more, err := s.SetResidency(ctx, "shop", residence(config.ResidencyOn, "asia"), time.Hour)
	if err != nil || len(more.Residency.Regions) != 3 {
		t.Errorf("another region: %+v, %v", more.Residency, err)
	}
	left := more.Residency
	left.Rule, left.Map = config.ByHeader, map[string]string{"US": "us", "JP": "asia"}
	left.Leave = map[string]string{"asia": "us"}
	with, err := s.SetResidency(ctx, "shop", left, time.Hour)
	if err != nil || with.Residency.Header != config.DefaultResidencyHeader {
		t.Errorf("users leave asia: %+v, %v", with.Residency, err)
	}
	for country, want := range map[string]string{"US": "us", "JP": "us", "FR": "eu", "": "eu"} {
		header := func(name string) string { return map[string]string{config.DefaultResidencyHeader: country}[name] }
		if got := with.Residency.Birth("asia", header); got != want {
			t.Errorf("a user from %q begins in %q, want %q", country, got, want)
		}
	}
	_, err = s.UpdateMove(ctx, "shop", func(a *config.App) error { return a.StartMove("m", "us", time.Now()) })
	if !errors.Is(err, config.ErrResidency) {
		t.Errorf("the app moves, and its users live in several regions: %v", err)
	}
}
