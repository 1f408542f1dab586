package profile

import (
	"context"
	"errors"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Delete deletes a user. From its return on, no read counts an event received
// before the call, by clocks that differ by less than the slack. It returns the time of
// receipt up to which events are deleted, which is the slack after now; events received
// later start a new profile. Purge removes the deleted ones.
func (e *Engine) Delete(ctx context.Context, appID, user string) (time.Time, error) {
	app, at, err := e.exclusions(ctx, appID)
	if err != nil {
		return time.Time{}, err
	}
	return at.delete(ctx, app, user)
}

// OptOut sets the types of events that a user has opted out of; without types, all. It
// deletes the user in the same instant, as Delete does, and returns the same time. From
// its return on, events of these types are dropped and counted as refused. A user who has
// opted out of all types is unknown to every read, and nothing is stored for them. If some
// types are set already, OptOut deletes nothing. Call Purge afterwards, as after Delete.
// ErrTypes means that the engine keeps no events of a type.
func (e *Engine) OptOut(ctx context.Context, appID, user string, types ...event.Type) (time.Time, error) {
	set := event.AllTypes
	if len(types) > 0 {
		var ok bool
		if set, ok = event.TypesOf(types...); !ok {
			return time.Time{}, ErrTypes
		}
	}
	app, at, err := e.exclusions(ctx, appID)
	if err != nil {
		return time.Time{}, err
	}
	return at.optOut(ctx, app, user, set)
}

// OptIn ends a user's opt-out. Nothing that was received until the time that it returns
// counts: also what is still on its way stays out. Call Purge afterwards. For a user who
// has never opted out and was never deleted, it does nothing and returns the zero time.
func (e *Engine) OptIn(ctx context.Context, appID, user string) (time.Time, error) {
	app, at, err := e.exclusions(ctx, appID)
	if err != nil {
		return time.Time{}, err
	}
	return at.optIn(ctx, app, user)
}

// RestoreDeletion makes an earlier deletion of a user, and their opt-out of types, hold
// here too: it excludes the events that t covers and those of the types, in addition to
// what is excluded already. Call Purge afterwards, as after Delete.
func (e *Engine) RestoreDeletion(ctx context.Context, appID, user string, t affinity.Tombstone,
	types event.Types) error {
	app, at, err := e.exclusions(ctx, appID)
	if err != nil {
		return err
	}
	return at.restore(ctx, app, user, types, t)
}

// OptedOut returns the types of events that a user has opted out of, and the time of
// receipt up to which events are deleted, the zero time if none are.
func (e *Engine) OptedOut(ctx context.Context, appID, user string) (event.Types, time.Time, error) {
	app, at, err := e.exclusions(ctx, appID)
	if err != nil {
		return 0, time.Time{}, err
	}
	return at.optedOut(ctx, app, user)
}

// ErrTypes reports a type of which the engine keeps no events.
var ErrTypes = errors.New("a user can opt out of events of the types view, click and conversion")

// Purge removes a user's orphan blocks and old sessions, their token from segments, and the
// events that a deletion covers, whose time of receipt Delete returned, from the log. It removes no event that
// the user's tombstone does not cover. It returns the number of events.
func (e *Engine) Purge(ctx context.Context, appID, user string, until time.Time) (int, error) {
	app, at, err := e.exclusions(ctx, appID)
	if err != nil {
		return 0, err
	}
	return at.purge(ctx, app, user, until)
}
