package profile

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// In an app whose users have regions of their own each token has a location. This file finds it, gives one to a new
// token, and moves a token. functions/docs/design/regions.md, "Where a person lives", has the rules.

// home returns the engine of the region in which a token lives. A token without a location gets one, by a rule.
func (r *regions) home(ctx context.Context, app config.App, token, rule string) (*Engine, error) {
	region, err := r.finder.Region(ctx, app, token, rule)
	if err != nil {
		return nil, err
	}
	return r.engines[r.first].env.in(region)
}

// adopt gives a token whose row in the region of e is nobody's an owner, if the token lives here. The location is
// looked at once more: the token may have moved since it was remembered.
func (e *Engine) adopt(ctx context.Context, app config.App, token string) (bool, error) {
	at, err := e.livesIn(ctx, app, token, app.Residency.Home)
	if err != nil {
		return false, err
	}
	if at != e {
		return false, elsewhere{at.env.region, 0}
	}
	return e.env.store.Users.SetOwner(ctx, app.ID, token, store.Owner{}, store.Owner{Epoch: birthEpoch, State: store.Own})
}

// livesIn is home of what the row of the location says now.
func (e *Engine) livesIn(ctx context.Context, app config.App, token, rule string) (*Engine, error) {
	region, err := e.env.regions.finder.RegionNow(ctx, app, token, rule)
	if err != nil {
		return nil, err
	}
	return e.env.in(region)
}

// locateResident finds the row of a token that counts, from the region on in which it lives. It brings nobody to
// life. A token that nobody knows there is looked for once more, past the cache: it may have moved.
func (e *Engine) locateResident(ctx context.Context, app config.App, token string,
	parts store.UserParts) (place, error) {
	find := e.env.regions.finder.Find
	for range 2 {
		found, err := find(ctx, app, token)
		if err != nil {
			return place{}, err
		}
		if found.Region == "" {
			found.Region = app.Residency.Home // of tokens from before locations
		}
		at, err := e.env.in(found.Region)
		if err != nil {
			return place{}, err
		}
		row, err := at.env.store.Users.ReadPrimary(ctx, app.ID, token, parts)
		if err != nil {
			return place{}, err
		}
		if row.Owner.State != store.Nobodys {
			return follow(ctx, app, token, place{at: at, row: row}, parts)
		}
		if found.Region == app.Residency.Home && row.Exists { // from before locations
			return place{at: at, row: row}, nil
		}
		find = e.env.regions.finder.Look
	}
	return place{}, nil
}

// firstVisits are the regions in which a message begins, with the events of the users of each.
func (e enRoute) firstVisits(ctx context.Context, app config.App, events []store.LogEvent,
	log bool) (map[*Engine]visit, error) {
	if !app.Residency.On() {
		return map[*Engine]visit{e.Engine: {events: events, log: log}}, nil
	}
	visits, homes := map[*Engine]visit{}, map[string]*Engine{}
	for _, ev := range events {
		if err := e.env.gather(ctx, app, ev.User, ev.Known); err != nil {
			return nil, err
		}
	}
	for _, ev := range events {
		at := homes[ev.User]
		if at == nil {
			var err error
			if at, err = e.env.regions.home(ctx, app, ev.User, app.Residency.Home); err != nil {
				return nil, err
			}
			homes[ev.User] = at
		}
		v := visits[at]
		v.log, v.events = log, append(v.events, ev)
		visits[at] = v
	}
	return visits, nil
}
