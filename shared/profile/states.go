package profile

import (
	"context"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// States returns the states of users, which say which of their events are excluded. It
// reads the cluster that is written, so it knows every deletion and opt-out that was
// answered before. Users without a row are missing.
func (e *Engine) States(ctx context.Context, app config.App, users []string) (map[string]store.User, error) {
	at, err := e.at(app)
	if err != nil {
		return nil, err
	}
	users = distinct(users)
	if !app.Owned() {
		slices.SortFunc(users, store.UserOrder)
		return at.env.store.Users.ReadUserStates(ctx, app.ID, users)
	}
	states := make(map[string]store.User, len(users))
	find := func(ctx context.Context, token string) (place, error) {
		return at.locate(ctx, app, token, store.UserState)
	}
	err = each(ctx, users, find, func(token string, found place) error {
		if found.at != nil {
			states[token] = found.row
		}
		return nil
	})
	return states, err
}

// StatesOf is States for callers who know the id of the app alone. Its configuration may be
// some seconds old.
func (e *Engine) StatesOf(ctx context.Context, appID string, users []string) (map[string]store.User, error) {
	app, err := e.appOf(ctx, appID)
	if err != nil {
		return nil, err
	}
	return e.States(ctx, app, users)
}
