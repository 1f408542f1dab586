package profile

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// Fold packs the unfolded events of a user into blocks, however many they are and
// however often new ones arrive. It reports whether it committed a fold. False
// without an error means that no event was old enough to fold, or that another
// change of the manifest came first.
func (e *Engine) Fold(ctx context.Context, app config.App, user string) (bool, error) {
	at, err := e.resting(app)
	if err == nil && app.Residency.On() {
		var found place
		found, err = e.locate(ctx, app, user, store.UserState)
		at = found.at
	}
	if err != nil || at == nil {
		return false, err
	}
	return at.folder.fold(ctx, app, user)
}

// Recompute computes the profiles of a range of an app's users. It stores each at
// the ticket of the row from which it was computed, so that it hides no refresh
// that began later. Its memory holds some hundred profiles. It calls progress
// after each group of users, in order, and an error from progress ends the
// recompute. It completes at least one group, even if o.Until has passed.
func (e *Engine) Recompute(ctx context.Context, app config.App, r store.Range, o RecomputeOptions,
	progress func(Progress) error) (Progress, error) {
	at, err := e.resting(app)
	if err != nil {
		return Progress{}, err
	}
	return at.bulk.recompute(ctx, app, r, o, progress)
}

// RenewDictionary makes the next dictionary of an app, from a sample of the users who
// follow each of some user tokens, if the newest one is a day old and another one pays.
// It deletes dictionaries that no block can name any more. No profile depends on it, so
// it only logs its errors.
func (e *Engine) RenewDictionary(ctx context.Context, app config.App, starts []string) {
	if at, err := e.resting(app); err == nil {
		at.sampler.renew(ctx, app, starts)
	}
}

// SweepObjects reads the objects of the events of a range of an app's users, from
// blocks where they have them, otherwise from the log. It calls fn for each event
// in the window, users in the order of their rows, events in the order of the log,
// by time and then event ID. An event has its time, kind and objects and no counts
// unless o.Counts is set; fn may keep it. The memory holds a few blocks and some hundred rows, however many
// events a user has.
//
// It calls progress after each group of users. Only then the group is complete, as
// of the time of its reading: after an error the caller must drop what fn received
// since the last call of progress, and may sweep again from that Next. An error from
// fn or progress ends the sweep. It completes at least one group, even if o.Until
// has passed.
func (e *Engine) SweepObjects(ctx context.Context, app config.App, r store.Range, o SweepOptions,
	fn func(user string, ev affinity.Event) error, progress func(SweepProgress) error) (SweepProgress, error) {
	at, err := e.resting(app)
	if err != nil {
		return SweepProgress{}, err
	}
	return at.sweeper.sweep(ctx, app, r, o, fn, progress)
}

// ObjectsOf is SweepObjects of one user as of event.MaxAhead after now, so that events of
// clocks that are ahead are among them. c limits the events to kinds that
// it scores above 0; nil: all kinds. After an error the caller must drop what fn
// received.
func (e *Engine) ObjectsOf(ctx context.Context, app config.App, user string, c *affinity.Compiled,
	fn func(ev affinity.Event) error) error {
	at, err := e.at(app)
	if err == nil {
		at, err = at.holding(ctx, app, user)
	}
	if err != nil {
		return err
	}
	return at.sweeper.objectsOf(ctx, app, user, c, fn)
}

// Verify counts the users in a range whose stored profile has another scoring
// version or retention than the app. A user without a stored profile, or with a
// marker, does not count. If the engine's clock reaches until, Verify returns the user
// with whom it must continue; otherwise next is "". A zero until has no effect.
func (e *Engine) Verify(ctx context.Context, app config.App, r store.Range,
	until time.Time) (stale int64, next string, err error) {
	at, err := e.resting(app)
	if err != nil {
		return 0, "", err
	}
	return at.bulk.verify(ctx, app, r, until)
}
