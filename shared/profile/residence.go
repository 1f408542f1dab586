package profile

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/store"
)

// In an app whose users have regions of their own each token has a location. This file finds it, gives one to a new
// token, and moves a token. REGIONS.md, "Where a person lives", has the rules.

// maxLocations bounds the locations that a process remembers.
const maxLocations = 1 << 16

// locations finds the regions of users. It belongs to all engines of a process.
type locations struct {
	secret []byte
	now    func() time.Time
	known  cache.Map[appUser, foundLocation]
}

type foundLocation struct {
	store.Location
	at time.Time
}

var errNoLocations = errors.New("this deployment has no secret of locations, or no regions, and the users of the " +
	"app have regions of their own")

// hash is the keyed hash of a user. It is that of one app: nobody can tell that two apps have the same user.
func (l *locations) hash(app, token string) []byte {
	mac := hmac.New(sha256.New, l.secret)
	fmt.Fprintf(mac, "%s,%s", app, token)
	return mac.Sum(nil)
}

// table returns the locations and the rows that decide: those of the app's region.
func (r *regions) table(app config.App) (*locations, *Engine, error) {
	if r == nil || r.locations == nil {
		return nil, nil, fmt.Errorf("app %s: %w", app.ID, errNoLocations)
	}
	at, err := r.engines[r.first].env.in(app.Residency.Home)
	return r.locations, at, err
}

// look reads the location of a token, past the cache.
func (r *regions) look(ctx context.Context, app config.App, token string) (store.Location, error) {
	l, at, err := r.table(app)
	if err != nil {
		return store.Location{}, err
	}
	found, err := at.env.store.Locations.Find(ctx, app.ID, l.hash(app.ID, token))
	key := appUser{app.ID, token}
	if err == nil && found != (store.Location{}) {
		l.known.Set(key, foundLocation{found, l.now()})
	} else {
		l.known.Delete(key) // nobody remembers that there is none
	}
	return found, err
}

// find is look. It takes what the process has read within the time for which it uses a configuration.
func (r *regions) find(ctx context.Context, app config.App, token string) (store.Location, error) {
	l, _, err := r.table(app)
	if err != nil {
		return store.Location{}, err
	}
	if known, ok := l.known.Get(appUser{app.ID, token}); ok && l.now().Sub(known.at) < config.TTL {
		return known.Location, nil
	}
	return r.look(ctx, app, token)
}

// home returns the engine of the region in which a token lives. A token without a location gets one: it lives in
// the region of the app if a row there says anything of it, and else begins in another one that the rule names. An
// app that is being prepared has all tokens in its region.
func (r *regions) home(ctx context.Context, app config.App, token, rule string) (*Engine, error) {
	return r.homeBy(ctx, app, token, rule, r.find)
}

// homeBy is home of a location that find finds.
func (r *regions) homeBy(ctx context.Context, app config.App, token, rule string,
	find func(context.Context, config.App, string) (store.Location, error)) (*Engine, error) {
	found, err := find(ctx, app, token)
	for err == nil && found == (store.Location{}) {
		_, err = r.begin(ctx, app, token, rule)
		if err == nil {
			found, err = r.look(ctx, app, token)
		}
	}
	if err != nil {
		return nil, err
	}
	return r.engines[r.first].env.in(found.Region)
}

// begin creates the location of a token, unless it has one.
func (r *regions) begin(ctx context.Context, app config.App, token, rule string) (bool, error) {
	l, at, err := r.table(app)
	if err != nil {
		return false, err
	}
	region := rule
	if app.Residency.Mode != config.ResidencyOn {
		region = app.Residency.Home
	}
	if region != app.Residency.Home {
		row, err := at.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		if err != nil {
			return false, err
		}
		if row.Exists {
			region = app.Residency.Home // a token from before locations
		}
	}
	return at.env.store.Locations.Change(ctx, app.ID, l.hash(app.ID, token), store.Location{},
		store.Location{Region: region, Since: l.now().UnixMicro()})
}

// touch changes the location of a token to one as of now, and reports whether it was still from.
func (r *regions) touch(ctx context.Context, app config.App, token string, from store.Location,
	region string) (bool, error) {
	l, at, err := r.table(app)
	if err != nil {
		return false, err
	}
	now := store.Location{Region: region, Since: max(l.now().UnixMicro(), from.Since+1)}
	return at.env.store.Locations.Change(ctx, app.ID, l.hash(app.ID, token), from, now)
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
	return e.env.regions.homeBy(ctx, app, token, rule, e.env.regions.look)
}

// locateResident finds the row of a token that counts, from the region on in which it lives. It brings nobody to
// life. A token that nobody knows there is looked for once more, past the cache: it may have moved.
func (e *Engine) locateResident(ctx context.Context, app config.App, token string,
	parts store.UserParts) (place, error) {
	find := e.env.regions.find
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
		find = e.env.regions.look
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
