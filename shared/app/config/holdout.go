package config

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/experiment"
)

// WithHoldout returns the app with another holdout, and reports whether that changes the app. Without a seed it keeps
// that which it had, so one that is turned off and on again has the same users. The error is of kind fault.Invalid.
func (a App) WithHoldout(to experiment.Holdout) (App, bool, error) {
	if to.Seed = cmp.Or(to.Seed, a.Holdout.Seed); to.On() {
		to.Seed = cmp.Or(to.Seed, "holdout")
	}
	if err := to.Check(); err != nil || to == a.Holdout {
		return a, false, err
	}
	if e := a.Experiment; to.On() && e.On() && to.Seed == e.Seed && !e.Ended(time.Now()) {
		return a, false, fault.New(fault.Invalid, "holdout: the experiment %q has the seed %q, and its first arm would lose "+
			"its users: choose another seed", e.Name, to.Seed)
	}
	a.Holdout, a.HoldoutSince, a.ChangedAt = to, time.Time{}, Stamp(time.Time{})
	if to.On() {
		a.HoldoutSince = a.ChangedAt
	}
	return a, true, nil
}

// SetHoldout changes who gets no personalization, and returns the app afterwards. It returns ErrNotFound if the app
// does not exist, or what App.WithHoldout refuses.
func (s *Store) SetHoldout(ctx context.Context, appID string, to experiment.Holdout) (app App, err error) {
	err = s.changeApp(ctx, appID, func(old App) (App, []documents.Write, error) {
		app, _, err = old.WithHoldout(to)
		return app, nil, err
	})
	if err != nil {
		return App{}, fmt.Errorf("set holdout of app %q: %w", appID, err)
	}
	return app, nil
}
