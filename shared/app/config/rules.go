package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// A Store checks the rules below before it writes.

// Prepare checks a new app and returns it as a Store writes it.
func (a App) Prepare() (App, error) {
	if !ValidAppID(a.ID) {
		return App{}, fmt.Errorf("app id %q: want 1 to 64 letters, digits, _ or -", a.ID)
	}
	if err := CheckRetention(a.RetentionDays); err != nil {
		return App{}, err
	}
	if a.Log.Equal(schema.Layout{}) {
		a.Log = schema.Default()
	}
	if err := checkLog(a.Log); err != nil {
		return App{}, fmt.Errorf("app %q: %w", a.ID, err)
	}
	if err := a.Limits.Check(); err != nil {
		return App{}, fmt.Errorf("app %q: %w", a.ID, err)
	}
	if err := a.Identity.Check(); err != nil {
		return App{}, fmt.Errorf("app %q: %w", a.ID, err)
	}
	if a.Region != "" && !ValidRegion(a.Region) {
		return App{}, fmt.Errorf("app %q: region %q: want 1 to 40 of a-z, 0-9 and -", a.ID, a.Region)
	}
	return App{ID: a.ID, RetentionDays: a.RetentionDays, Region: a.Region, Limits: a.Limits, Identity: a.Identity,
		Log: cloneLayout(a.Log), CreatedAt: Stamp(a.CreatedAt), ChangedAt: Stamp(time.Time{})}, nil
}

// ParseConsistency returns the consistency of that name.
func ParseConsistency(name string) (Consistency, error) {
	switch c := Consistency(name); c {
	case Eventual, Strong:
		return c, nil
	}
	return "", fmt.Errorf("consistency must be %s or %s, got %.100q", Eventual, Strong, name)
}

// WithStrategy returns the app with s as its active strategy, and reports
// whether that changes the app.
func (a App) WithStrategy(s strategy.Strategy) (App, bool) {
	if a.StrategyVersion > 0 && a.Strategy.Equal(s) {
		return a, false
	}
	rescored := a.StrategyVersion == 0 || !a.Strategy.SameScoring(s)
	a.Strategy = s
	a.StrategyVersion++
	if rescored {
		a.ScoringVersion = a.StrategyVersion
	}
	a.ChangedAt = Stamp(time.Time{})
	return a, true
}

// Publication is what belongs to a change of the strategy beside the strategy.
type Publication struct {
	Note string // why it is set; it is kept with the version
	// IfVersion, if not nil, is the version that must be active, 0 if none may have been
	// set. A strategy that is active already needs no change, whatever its version is: so
	// a request whose answer was lost can be sent again.
	IfVersion *int64
}

// OtherVersionError reports that the strategy of another version is active than a
// change expects.
type OtherVersionError struct{ Active, Expected int64 }

// Error names both versions.
func (e *OtherVersionError) Error() string {
	return fmt.Sprintf("version %d of the strategy is active, not %d", e.Active, e.Expected)
}

// Publish is WithStrategy under the condition of a publication. It refuses another scoring, with an error of kind
// fault.Invalid, while an experiment has not ended.
func (a App) Publish(s strategy.Strategy, p Publication) (to App, changed bool, err error) {
	to, changed = a.WithStrategy(s)
	if changed && p.IfVersion != nil && *p.IfVersion != a.StrategyVersion {
		return a, false, &OtherVersionError{a.StrategyVersion, *p.IfVersion}
	}
	if e := a.Experiment; to.ScoringVersion != a.ScoringVersion && e.On() && !e.Ended(time.Now()) {
		return a, false, e.Refuse("it has not ended, and its arms share the scoring of the active strategy: stop it before " +
			"you change events, facets, half-lives, aliases, ignored or allowed values")
	}
	return to, changed, nil
}

// ScoresAs reports whether the active strategy scores as the strategy of that
// version did. It holds for every version since the scoring last changed. Profiles
// are stored with the scoring version: with a newer
// one in rows, each change of the ranking would make every process whose cached
// configuration is older read the configuration for each request.
func (a App) ScoresAs(version int64) bool {
	return a.ScoringVersion <= version && version <= a.StrategyVersion
}

// Expired reports whether a Store may delete a version of the app at that time. It keeps those of an experiment.
func (a App) Expired(v Version, now time.Time) bool {
	return v.Version <= a.StrategyVersion-KeptVersions && now.Sub(v.SetAt) > KeptVersionTime && !a.compares(v.Version, now)
}

// WithLog returns the app that a change of its log leads to, and reports whether
// it differs from a. Only Log and Migration are taken from what change does.
func (a App) WithLog(change func(*App) error) (App, bool, error) {
	draft := a
	draft.Log = cloneLayout(a.Log) // change may edit it in place and then fail
	if err := change(&draft); err != nil {
		return App{}, false, err
	}
	if err := checkLog(draft.Log); err != nil {
		return App{}, false, err
	}
	if a.Moving() && len(draft.Log.Write) > len(a.Log.Write) {
		return App{}, false, fmt.Errorf("app %q, a migration of the log: %w", a.ID, ErrMoving)
	}
	to := a
	to.Log, to.Migration = cloneLayout(draft.Log), draft.Migration.prepare()
	to.Log.Generation = a.Log.Generation
	if !sameSchemas(a.Log, to.Log) {
		to.Log.Generation++
		to.ChangedAt = Stamp(time.Time{})
	}
	return to, !to.Log.Equal(a.Log) || to.Migration != a.Migration, nil
}

// sameSchemas reports whether two layouts differ in their encoding at most.
// Readers recognize the encoding value by value, so a new encoding needs no time
// to propagate.
func sameSchemas(a, b schema.Layout) bool {
	b.Encoding = a.Encoding
	return a.Equal(b)
}

// prepare returns a migration as a Store writes it.
func (m Migration) prepare() Migration {
	if m != (Migration{}) {
		m.StartedAt = Stamp(m.StartedAt)
	}
	return m
}

// CheckRetention refuses a negative number of days.
func CheckRetention(days int) error {
	if days < 0 {
		return fmt.Errorf("retention of %d days: want 0 (no limit) or more", days)
	}
	return nil
}

// checkLog refuses a layout under which events could not be written or found.
func checkLog(l schema.Layout) error {
	if err := l.Validate(); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// Stamp returns t, or the current time if t is zero, in UTC and to the
// microsecond, which all documents can hold.
func Stamp(t time.Time) time.Time {
	if t.IsZero() {
		t = time.Now()
	}
	return t.UTC().Truncate(time.Microsecond)
}

// cloneLayout returns a layout that shares no memory with l.
func cloneLayout(l schema.Layout) schema.Layout {
	l.Write = slices.Clone(l.Write)
	return l
}
