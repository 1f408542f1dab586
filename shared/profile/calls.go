package profile

import (
	"context"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/store"
)

// Remember gives the events of calls the times of the first deliveries of these calls, and
// sets their Call. An event that has no messageId stays as it is. It must be called before
// the events are written to the log. After an error it may be called again.
func (e *Engine) Remember(ctx context.Context, app config.App, events []event.Event) error {
	type key struct{ user, id string }
	var calls []store.Call
	at := map[key]int{}
	for i := range events {
		ev := &events[i]
		if ev.Call = ev.CallID(); ev.Call == "" {
			continue
		}
		if of := (key{ev.UserToken, ev.Call}); at[of] == 0 {
			calls = append(calls, store.Call{User: ev.UserToken, ID: ev.Call, Time: ev.Time})
			at[of] = len(calls)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	err := e.remember(ctx, app, calls)
	if err != nil {
		return err
	}
	for i := range events {
		if ev := &events[i]; ev.Call != "" {
			call := ev.Call
			if *ev, err = ev.At(calls[at[key{ev.UserToken, call}]-1].Time); err != nil {
				return err
			}
		}
	}
	return nil
}

// remember sets the times of calls to those that are remembered.
func (e *Engine) remember(ctx context.Context, app config.App, calls []store.Call) error {
	if app.Residency.On() {
		return e.rememberResidents(ctx, app, calls)
	}
	memories, err := e.memories(app)
	if err != nil {
		return err
	}
	for _, at := range memories {
		if err := at.env.store.Calls.Remember(ctx, app.ID, calls); err != nil {
			return err
		}
	}
	return nil
}

// memories returns the engines whose memories of calls a message of an app asks, in order. Each
// gets the answer of its predecessor as the proposal, and the last answer holds. The region
// from which the app moves comes first, until no process asks that one alone.
func (e *Engine) memories(app config.App) ([]*Engine, error) {
	place := app.Place()
	if !app.Moving() || len(place.Write) == 1 {
		at, err := e.at(app)
		return []*Engine{at}, err
	}
	if app.Move.Phase == config.MoveDropping {
		at, err := e.env.in(place.Read)
		return []*Engine{at}, err
	}
	var all []*Engine
	for _, region := range place.Write {
		at, err := e.env.in(region)
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}

// forgetElsewhere forgets the calls of excluded events in the other region of an app that
// moves. rows are those of the users.
func (e *Engine) forgetElsewhere(ctx context.Context, app config.App, events []store.LogEvent,
	rows map[string]store.User) error {
	if !slices.ContainsFunc(events, func(ev store.LogEvent) bool { return ev.Call != "" }) {
		return nil
	}
	others, err := e.env.others(app)
	for _, other := range others {
		if err == nil {
			err = other.env.store.Calls.ForgetExcluded(ctx, app.ID, events, func(user string) store.User { return rows[user] })
		}
	}
	return err
}
