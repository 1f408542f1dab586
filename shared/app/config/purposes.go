package config

import (
	"context"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/score/consent"
)

// For returns the app as a surface takes it: reads under it answer what counts for the purposes of that surface.
// consent.Kept: all that is stored.
func (a App) For(on consent.Surface) App {
	a.Surface = on
	return a
}

// As returns the app as it was asked for: for the surface of an earlier reading of it, and with whom that took.
func (a App) As(asked App) App {
	a.Surface, a.HeldOutToo = asked.Surface, asked.HeldOutToo
	return a
}

// WithPurposes returns the app with other purposes, and reports whether that changes the app. Then the scoring version
// rises: no stored profile, and none that another process has packed, is valid any more. The error is of kind
// fault.Invalid, or ErrMoving.
func (a App) WithPurposes(purposes []consent.Purpose) (App, bool, error) {
	next, err := a.Purposes.With(purposes)
	if err != nil || next.Equal(a.Purposes) {
		return a, false, err
	}
	if a.Moving() {
		return a, false, fmt.Errorf("app %q, a change of purposes: %w", a.ID, ErrMoving)
	}
	if a.StrategyVersion > 0 {
		a.StrategyVersion++
		a.ScoringVersion = a.StrategyVersion
	}
	a.Purposes, a.ChangedAt = next, Stamp(time.Time{})
	return a, true, nil
}

// SetPurposes changes what an app uses events for, and returns the app afterwards. It returns ErrNotFound if the app
// does not exist, or what App.WithPurposes refuses.
func (s *Store) SetPurposes(ctx context.Context, appID string, purposes []consent.Purpose) (app App, err error) {
	err = s.changeApp(ctx, appID, func(old App) (App, []documents.Write, error) {
		app, _, err = old.WithPurposes(purposes)
		if err != nil || app.StrategyVersion == old.StrategyVersion {
			return app, nil, err
		}
		kept, err := newStrategyDocument(app, "purposes")
		return app, []documents.Write{documents.Create(strategyPath(appID, app.StrategyVersion), kept)}, err
	})
	if err != nil {
		return App{}, fmt.Errorf("set purposes of app %q: %w", appID, err)
	}
	return app, nil
}
