package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/fault"
)

// Residency says whether each user of an app has a region of their own. Otherwise all live in the region of the
// app.
type Residency struct {
	Mode ResidencyMode
	// Home is the region of the app. Its rows of locations decide.
	Home string
	// Regions are where users may live, that of the app among them.
	Regions []string
	// Since is when the mode last changed, by the clock of the engine that changed it, to the microsecond.
	Since time.Time
}

// ResidencyMode is how the users of an app are found.
type ResidencyMode string

// The modes. A process that takes the region of the app for that of all users draws tickets in rows that may not
// count. So each user gets a location first, which is that region, until no such process is left.
const (
	ResidencyOff     ResidencyMode = ""        // all users live in the region of the app
	ResidencyPrepare ResidencyMode = "prepare" // they do still, and each has a location
	ResidencyOn      ResidencyMode = "on"      // users begin where the rule says, and may move
)

// maxResidencyRegions bounds Regions.
const maxResidencyRegions = 8

// On reports whether each user has a location.
func (r Residency) On() bool { return r.Mode != ResidencyOff }

// Owned reports whether the row of each user says who owns the user: while the app moves, and if each user has a
// region of their own.
func (a App) Owned() bool { return a.Moving() || a.Residency.On() }

// Equal reports whether two settings are the same.
func (r Residency) Equal(other Residency) bool {
	return r.Mode == other.Mode && r.Home == other.Home && r.Since.Equal(other.Since) &&
		slices.Equal(r.Regions, other.Regions)
}

// WithResidency returns the app with a setting of residency, and reports whether that changes the app. A mode follows
// the one beside it alone. The error is a *SettlingError until settle has passed since the last change of the mode,
// and a fault.Invalid one for a setting that cannot be.
func (a App) WithResidency(to Residency, settle time.Duration) (App, bool, error) {
	was, now := a.Residency, Stamp(time.Time{})
	to.Since = was.Since
	if to.Home = was.Home; to.On() && to.Home == "" {
		to.Home = a.Region
	}
	// Jobs go over the regions in their order: a new one is the last.
	place := func(region string) int { return slices.Index(slices.Concat(was.Regions, []string{region}), region) }
	to.Regions = slices.SortedStableFunc(slices.Values(to.Regions), func(a, b string) int { return place(a) - place(b) })
	if to.Equal(was) {
		return a, false, nil
	}
	if err := to.check(); err != nil {
		return a, false, err
	}
	switch {
	case a.Moving():
		return a, false, fmt.Errorf("app %q, a change of residency: %w", a.ID, ErrMoving)
	case was.Mode == ResidencyOn:
		for _, region := range was.Regions {
			if to.Mode != ResidencyOn || !slices.Contains(to.Regions, region) {
				return a, false, fault.New(fault.Invalid, "residency: users may live in %q; it cannot be taken out", region)
			}
		}
	case to.Mode == was.Mode:
	case to.Mode == ResidencyOn && was.Mode != ResidencyPrepare:
		return a, false, fault.New(fault.Invalid, `residency: set the mode "prepare" first, and "on" when that is settled`)
	case was.Mode == ResidencyPrepare && now.Before(was.Since.Add(settle)):
		return a, false, &SettlingError{"residency", string(was.Mode), was.Since.Add(settle)}
	}
	if to.Mode != was.Mode {
		to.Since = now
	}
	a.Residency, a.ChangedAt = to, Stamp(time.Time{})
	return a, true, nil
}

// Everywhere returns the regions in which users of the app live, that of the app first. It is one alone, whose name may
// be empty, unless each user has a region of their own.
func (a App) Everywhere() []string {
	all := []string{a.Region}
	for _, region := range a.Residency.Regions {
		if region != a.Region {
			all = append(all, region)
		}
	}
	return all
}

// In returns the app as work over all users of one of its regions takes it.
func (a App) In(region string) App {
	a.Region = region
	return a
}

// check returns what is wrong with the setting.
func (r Residency) check() error {
	switch {
	case r.Mode != ResidencyOff && r.Mode != ResidencyPrepare && r.Mode != ResidencyOn:
		return fault.New(fault.Invalid, `residency mode %q: must be "off", "prepare" or "on"`, r.Mode)
	case !r.On() && len(r.Regions) > 0:
		return fault.New(fault.Invalid, "residency is off, and names the regions %s", strings.Join(r.Regions, ", "))
	case !r.On():
		return nil
	case r.Home == "":
		return fault.New(fault.Invalid, "residency: the app names no region; this deployment may have one alone")
	case len(r.Regions) < 2 || len(r.Regions) > maxResidencyRegions:
		return fault.New(fault.Invalid, "residency: must name 2 to %d regions, got %d", maxResidencyRegions, len(r.Regions))
	case !slices.Contains(r.Regions, r.Home):
		return fault.New(fault.Invalid, "residency: the region of the app, %q, must be among %s", r.Home,
			strings.Join(r.Regions, ", "))
	}
	for i, region := range r.Regions {
		if !ValidRegion(region) {
			return fault.New(fault.Invalid, "residency: region %q: want 1 to 40 of a-z, 0-9 and -", region)
		}
		if slices.Contains(r.Regions[:i], region) {
			return fault.New(fault.Invalid, "residency: region %q is named twice", region)
		}
	}
	return nil
}

// SetResidency changes whether each user of an app has a region of their own, and returns the app afterwards. It
// returns ErrNotFound if the app does not exist, or what App.WithResidency refuses.
func (s *Store) SetResidency(ctx context.Context, appID string, to Residency,
	settle time.Duration) (app App, err error) {
	err = s.changeApp(ctx, appID, func(old App) (App, []documents.Write, error) {
		app, _, err = old.WithResidency(to, settle)
		return app, nil, err
	})
	if err != nil {
		return App{}, fmt.Errorf("set residency of app %q: %w", appID, err)
	}
	return app, nil
}
