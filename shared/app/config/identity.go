package config

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/fault"
)

// Identity says whether the tokens of one person are linked: the events of an anonymous token
// count for the user who has signed in under it.
type Identity struct {
	Mode IdentityMode
	// Lookback is how long before the login the events of the anonymous token count, too.
	Lookback time.Duration
	// TrustPages takes evidence of keys that stand in web pages, too: weak evidence.
	TrustPages bool
	// ServePersons gives a page that knows an anonymous token what it is given for the known user who has signed
	// in under it, by strong evidence: orders, boosts and feeds.
	ServePersons bool
	// Since is when the mode last changed, by the clock of the engine that changed it, to the microsecond.
	Since time.Time
}

// IdentityMode is what an app does with links.
type IdentityMode string

// The modes. A process that knows no links may acknowledge an event which a link concerns. So
// links are collected before they count, until no process is left that knows the app without them.
const (
	IdentityOff     IdentityMode = ""        // no link is made or read
	IdentityCollect IdentityMode = "collect" // links are made, and nothing counts by them
	IdentityLink    IdentityMode = "link"
)

// DefaultLookback is the Lookback of an app that does not say.
const DefaultLookback = 30 * 24 * time.Hour

// MaxLookback bounds Lookback.
const MaxLookback = 365 * 24 * time.Hour

// On reports whether links are made.
func (i Identity) On() bool { return i.Mode != IdentityOff }

// IdentitySettle is how long after a change of the mode no process can still be at work that knows
// the mode of before: two TTLs, the longest refresh, and clocks that differ.
const IdentitySettle = 2*TTL + 10*time.Minute + 10*time.Second

// SettlingError reports that a change of the mode must wait, because processes may still know the
// one before.
type SettlingError struct {
	Setting string // "identity" or "residency"
	Mode    string
	Until   time.Time
}

// Error says until when.
func (e *SettlingError) Error() string {
	return fmt.Sprintf("%s: processes may not know the mode %q yet, try again at %s", e.Setting, e.Mode,
		e.Until.UTC().Format(time.RFC3339))
}

// WithIdentity returns the app with a setting of identity, and reports whether that changes the app. A
// mode follows the one beside it alone: off, collect, link. The error is a *SettlingError until settle
// has passed since the last change of the mode, and a fault.Invalid one for a step of two. Where links begin or
// cease to count, the scoring version rises: no stored profile is valid any more.
func (a App) WithIdentity(to Identity, settle time.Duration) (App, bool, error) {
	if err := to.Check(); err != nil {
		return a, false, err
	}
	was, now := a.Identity, Stamp(time.Time{})
	to.Since = was.Since
	switch {
	case to == was:
		return a, false, nil
	case to.Mode == was.Mode:
	case a.Moving():
		return a, false, fmt.Errorf("app %q, a change of identity: %w", a.ID, ErrMoving)
	case to.Mode != IdentityCollect && was.Mode != IdentityCollect:
		return a, false, fault.New(fault.Invalid, `identity: set the mode "collect" first, and "%s" when that is settled`,
			cmp.Or(to.Mode, "off"))
	case was.Mode == IdentityCollect && now.Before(was.Since.Add(settle)):
		return a, false, &SettlingError{"identity", string(was.Mode), was.Since.Add(settle)}
	default:
		to.Since = now
	}
	if to.Counts() != was.Counts() && a.StrategyVersion > 0 {
		a.StrategyVersion++
		a.ScoringVersion = a.StrategyVersion
	}
	a.Identity, a.ChangedAt = to, Stamp(time.Time{})
	return a, true, nil
}

// Counts reports whether events count by links.
func (i Identity) Counts() bool { return i.Mode == IdentityLink }

// Serves reports whether an anonymous token is served as the known user who has signed in under it.
func (i Identity) Serves() bool { return i.ServePersons && i.Counts() }

// Check returns what is wrong with the setting.
func (i Identity) Check() error {
	switch {
	case i.Mode != IdentityOff && i.Mode != IdentityCollect && i.Mode != IdentityLink:
		return fault.New(fault.Invalid, `identity mode %q: must be "off", "collect" or "link"`, i.Mode)
	case i.Lookback < 0 || i.Lookback > MaxLookback:
		return fault.New(fault.Invalid, "identity lookback %s: must be from 0 to %d days", i.Lookback,
			int(MaxLookback.Hours()/24))
	}
	return nil
}

// String says it for log lines and the audit log.
func (i Identity) String() string {
	mode := i.Mode
	if mode == IdentityOff {
		mode = "off"
	}
	return fmt.Sprintf("mode %s, lookback %s, trust pages %t, serve persons %t", mode, i.Lookback, i.TrustPages,
		i.ServePersons)
}

// SetIdentity changes whether the tokens of one person are linked, and returns the app afterwards.
// It returns ErrNotFound if the app does not exist, or what App.WithIdentity refuses.
func (s *Store) SetIdentity(ctx context.Context, appID string, to Identity,
	settle time.Duration) (app App, err error) {
	err = s.changeApp(ctx, appID, func(old App) (App, []documents.Write, error) {
		app, _, err = old.WithIdentity(to, settle)
		if err != nil || app.StrategyVersion == old.StrategyVersion {
			return app, nil, err
		}
		kept, err := newStrategyDocument(app, "links of tokens: "+string(to.Mode))
		return app, []documents.Write{documents.Create(strategyPath(appID, app.StrategyVersion), kept)}, err
	})
	if err != nil {
		return App{}, fmt.Errorf("set identity of app %q: %w", appID, err)
	}
	return app, nil
}
