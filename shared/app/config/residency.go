package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/fault"
)

// Residency says whether each user of an app has a region of their own. Otherwise all live in the region of the
// app.
type Residency struct {
	Mode ResidencyMode
	// Home is the region of the app, whose rows of locations decide. A setting that changes has it only for an app that
	// names no region.
	Home string
	// Regions are where users may live, that of the app among them.
	Regions []string
	// Rule says in which region a user begins whom nobody knows.
	Rule ResidencyRule
	// Header names the header of requests that says the country of a client, and Map the region of each country, in
	// the form of the header. Both are those of the rule ByHeader.
	Header string
	Map    map[string]string
	// Leave names regions that users leave, and for each the region to which they move. Nobody begins there.
	Leave map[string]string
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

// ResidencyRule says who names the region in which a user begins.
type ResidencyRule string

// The rules. Where one names no region, the user begins in that of the app.
const (
	byApp    ResidencyRule = ""       // the app alone
	ByKey    ResidencyRule = "key"    // the key that sends the first event
	ByHeader ResidencyRule = "header" // a header that the edge sets
)

// DefaultResidencyHeader is the header that the load balancer of a deployment sets.
const DefaultResidencyHeader = "X-Client-Geo-Region"

// Bounds of a setting.
const (
	maxResidencyRegions   = 8
	maxResidencyCountries = 300
	maxCountry            = 40 // bytes
)

var headerForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,99}$`)

// On reports whether each user has a location.
func (r Residency) On() bool { return r.Mode != ResidencyOff }

// Owned reports whether the row of each user says who owns the user: while the app moves, and if each user has a
// region of their own.
func (a App) Owned() bool { return a.Moving() || a.Residency.On() }

// String describes the setting.
func (r Residency) String() string {
	if !r.On() {
		return "off"
	}
	text := fmt.Sprintf("%s, regions %s, rule %s", r.Mode, strings.Join(r.Regions, " "), cmp.Or(r.Rule, "app"))
	if r.Rule == ByHeader {
		text += fmt.Sprintf(" %s: %s", r.Header, pairs(r.Map))
	}
	if len(r.Leave) > 0 {
		text += ", users leave " + pairs(r.Leave)
	}
	return text
}

// pairs lists a map in the order of its keys.
func pairs(m map[string]string) string {
	all := slices.Sorted(maps.Keys(m))
	for i, key := range all {
		all[i] = key + "=" + m[key]
	}
	return strings.Join(all, " ")
}

// Equal reports whether two settings are the same.
func (r Residency) Equal(other Residency) bool {
	return r.Mode == other.Mode && r.Home == other.Home && r.Since.Equal(other.Since) &&
		slices.Equal(r.Regions, other.Regions) && r.Rule == other.Rule && r.Header == other.Header &&
		maps.Equal(r.Map, other.Map) && maps.Equal(r.Leave, other.Leave)
}

// Birth returns the region in which a user begins whom nobody knows: by the region of the key of the request, and its
// header of a name. What they say of other regions than those of the setting does not count.
func (r Residency) Birth(key string, header func(name string) string) string {
	region := ""
	switch r.Rule {
	case ByKey:
		region = key
	case ByHeader:
		region = r.Map[header(r.Header)]
	}
	if to := r.Leave[region]; to != "" {
		region = to
	}
	if !slices.Contains(r.Regions, region) {
		return r.Home
	}
	return region
}

// WithResidency returns the app with a setting of residency, and reports whether that changes the app. A mode follows
// the one beside it alone. The error is a *SettlingError until settle has passed since the last change of the mode,
// and a fault.Invalid one for a setting that cannot be.
func (a App) WithResidency(to Residency, settle time.Duration) (App, bool, error) {
	was, now := a.Residency, Stamp(time.Time{})
	to.Since = was.Since
	if to.On() {
		to.Home = cmp.Or(was.Home, a.Region, to.Home)
	}
	if to.Rule == ByHeader && to.Header == "" {
		to.Header = DefaultResidencyHeader
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
		if err := to.keeps(was); err != nil {
			return a, false, err
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
	if !a.Residency.On() {
		return []string{a.Region}
	}
	all := []string{a.Residency.Home}
	for _, region := range a.Residency.Regions {
		if region != a.Residency.Home {
			all = append(all, region)
		}
	}
	return all
}

// UserRegions returns the regions over which the rows that name users are spread, for store.Store.In. It is one
// without a name, for the store as it is, unless each user has a region of their own.
func (a App) UserRegions() []string {
	if !a.Residency.On() {
		return []string{""}
	}
	return a.Everywhere()
}

// In returns the app as work over all users of one of its regions takes it.
func (a App) In(region string) App {
	a.Region = region
	return a
}

// keeps returns an error if a setting takes out a region in which users may live.
func (r Residency) keeps(was Residency) error {
	if r.Mode != ResidencyOn {
		return fault.New(fault.Invalid, "residency: users may live in %s, so it stays on", strings.Join(was.Regions, ", "))
	}
	for _, region := range was.Regions {
		if !slices.Contains(r.Regions, region) {
			return fault.New(fault.Invalid, "residency: users may live in %q; let them leave it, and it is taken out", region)
		}
	}
	return nil
}

// check returns what is wrong with the setting.
func (r Residency) check() error {
	if err := r.checkRule(); err != nil {
		return err
	}
	switch {
	case r.Mode != ResidencyOff && r.Mode != ResidencyPrepare && r.Mode != ResidencyOn:
		return fault.New(fault.Invalid, `residency mode %q: must be "off", "prepare" or "on"`, r.Mode)
	case !r.On() && len(r.Regions) > 0:
		return fault.New(fault.Invalid, "residency is off, and names the regions %s", strings.Join(r.Regions, ", "))
	case !r.On():
		return nil
	case r.Home == "":
		return fault.New(fault.Invalid, "residency: the app names no region; this deployment may have one alone")
	case len(r.Regions) < 2 && r.Mode != ResidencyOn || len(r.Regions) > maxResidencyRegions:
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

// checkRule returns what is wrong with the rule, or with what users leave.
func (r Residency) checkRule() error {
	switch {
	case r.Rule != byApp && r.Rule != ByKey && r.Rule != ByHeader:
		return fault.New(fault.Invalid, `residency rule %q: must be "app", "key" or "header"`, r.Rule)
	case !r.On() && (r.Rule != byApp || len(r.Leave) > 0):
		return fault.New(fault.Invalid, "residency is off, and has a rule")
	case r.Rule == ByHeader && (len(r.Map) == 0 || !headerForm.MatchString(r.Header)):
		return fault.New(fault.Invalid, "residency: the rule names the header %q, and the regions of %d countries; want "+
			"the name of a header, and one country or more", r.Header, len(r.Map))
	case r.Rule != ByHeader && (r.Header != "" || len(r.Map) > 0):
		return fault.New(fault.Invalid, `residency: the regions of countries are for the rule "header"`)
	case len(r.Map) > maxResidencyCountries:
		return fault.New(fault.Invalid, "residency: %d countries, want at most %d", len(r.Map), maxResidencyCountries)
	}
	for country, region := range r.Map {
		if country == "" || len(country) > maxCountry || !slices.Contains(r.Regions, region) {
			return fault.New(fault.Invalid, "residency: %q is for users from %q, and users live in %s", region, country,
				strings.Join(r.Regions, ", "))
		}
	}
	for region, to := range r.Leave {
		if region == r.Home || r.Leave[to] != "" || !slices.Contains(r.Regions, region) || !slices.Contains(r.Regions, to) {
			return fault.New(fault.Invalid, "residency: users cannot leave %q for %q: they live in %s, the region of the app "+
				"is %q, and stays", region, to, strings.Join(r.Regions, ", "), r.Home)
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

// LeaveRegion takes a region out of the setting of an app that all users have left, and returns the app afterwards.
// Countries whose users would begin there have the region to which they moved.
func (s *Store) LeaveRegion(ctx context.Context, appID, region string) (app App, err error) {
	err = s.changeApp(ctx, appID, func(old App) (App, []documents.Write, error) {
		app = old.withoutRegion(region)
		return app, nil, nil
	})
	if err != nil {
		return App{}, fmt.Errorf("take region %s out of app %q: %w", region, appID, err)
	}
	return app, nil
}

func (a App) withoutRegion(region string) App {
	r := a.Residency
	to := r.Leave[region]
	if to == "" {
		return a
	}
	r.Regions = slices.DeleteFunc(slices.Clone(r.Regions), func(one string) bool { return one == region })
	r.Leave, r.Map = maps.Clone(r.Leave), maps.Clone(r.Map)
	delete(r.Leave, region)
	for country, one := range r.Map {
		if one == region {
			r.Map[country] = to
		}
	}
	a.Residency, a.ChangedAt = r, Stamp(time.Time{})
	return a
}

// Intake returns what an app may send, and whether its users may have regions of their own, which Resident then says
// for certain: one look for both, so that an app whose users have none pays nothing for the question. It may answer
// from five minutes ago, as Limits does; the modes of residency wait longer for every instance.
func (c *Cached) Intake(ctx context.Context, appID string) (numbers limit.Numbers, mayReside bool, err error) {
	app, err := c.apps.getStale(ctx, appID, func(ctx context.Context) (App, error) { return c.source.App(ctx, appID) })
	return app.Limits, app.Residency.On(), err
}

// Resident returns an app, and whether each of its users has a region of their own. For other apps it may answer from
// five minutes ago, as Limits does, and returns no app.
func (c *Cached) Resident(ctx context.Context, appID string) (App, bool, error) {
	app, err := c.apps.getStale(ctx, appID, func(ctx context.Context) (App, error) { return c.source.App(ctx, appID) })
	if err != nil || !app.Residency.On() {
		return App{}, false, err
	}
	app, err = c.App(ctx, appID)
	return app, app.Residency.On(), err
}
