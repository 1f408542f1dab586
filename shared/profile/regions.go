package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/location"
	"github.com/affinityengine/affinity/shared/store"
)

// errMoving reports that an app moves to another region. Work over all of its users waits
// until it has arrived.
var errMoving error = moving{}

type moving struct{}

func (moving) Error() string {
	return "the app is moving to another region; work over all of its users waits until it has arrived"
}

// Transient says that the work may succeed later.
func (moving) Transient() bool { return true }

// regions are the engines of a process, one for each region whose Bigtable it reaches.
type regions struct {
	first   string // of apps that name none
	engines map[string]*Engine
	finder  *location.Finder // of users in regions of their own
}

// Join makes the engines of a process know each other, by the names of their regions.
// From then on each serves all apps: it hands the work to the engine of the region where
// the app lives or, while the app moves, where the user is owned. Apps that name no region
// live in the first one. Call it before the engines are used.
func Join(first string, engines map[string]*Engine) error {
	if engines[first] == nil {
		return fmt.Errorf("no engine for the region %q, in which apps live that name none", first)
	}
	for name := range engines {
		if !config.ValidRegion(name) {
			return fmt.Errorf("region %q: want 1 to 40 of a-z, 0-9 and -", name)
		}
	}
	in := func(region string) *store.Store { return engines[region].env.store }
	join(first, engines, location.New(in, first, engines[first].env.now))
	return nil
}

func join(first string, engines map[string]*Engine, finder *location.Finder) {
	r := &regions{first: first, engines: engines, finder: finder}
	exposures := newExposures(engines[first])
	for name, e := range engines {
		e.env.regions, e.env.region, e.env.exposures = r, name, exposures
	}
}

// all returns the engines of all regions.
func (e *Engine) all() []*Engine {
	if e.env.regions == nil {
		return []*Engine{e}
	}
	return slices.Collect(maps.Values(e.env.regions.engines))
}

// StoreOf returns the Bigtable that holds a user: that of the app's region or, while the app
// moves, of the region that owns the user. They may move at any time; what was read in the
// region that they have left is what was true before.
func (e *Engine) StoreOf(ctx context.Context, app config.App, user string) (*store.Store, error) {
	at, err := e.at(app)
	if err == nil {
		at, err = at.holding(ctx, app, user)
	}
	if err != nil {
		return nil, err
	}
	return at.env.store, nil
}

// holding returns the engine of the region that holds a user, e's if none does. e is that of
// the app's region.
func (e *Engine) holding(ctx context.Context, app config.App, user string) (*Engine, error) {
	if !app.Owned() {
		return e, nil
	}
	found, err := e.locate(ctx, app, user, store.UserState)
	if err != nil || found.at == nil {
		return e, err
	}
	return found.at, nil
}

// in returns the engine of a region.
func (v *env) in(region string) (*Engine, error) {
	if v.regions == nil {
		return nil, fmt.Errorf("this deployment has no regions, and the app names %q", region)
	}
	if region == "" {
		region = v.regions.first
	}
	e := v.regions.engines[region]
	if e == nil {
		return nil, fmt.Errorf("this deployment has no region %q", region)
	}
	return e, nil
}

// at returns the engine of the region of an app, which is the entry while the app moves.
func (e *Engine) at(app config.App) (*Engine, error) {
	if e.env.regions == nil && app.Region == "" {
		return e, nil
	}
	return e.env.in(app.Region)
}

// resting is at, for work over all users of an app.
func (e *Engine) resting(app config.App) (*Engine, error) {
	if app.Moving() {
		return nil, fmt.Errorf("app %s: %w", app.ID, errMoving)
	}
	return e.at(app)
}

// others returns the engines of the other regions in which users of the app may be: of the other region of a move, or
// of all others in which the app lets users live.
func (v *env) others(app config.App) ([]*Engine, error) {
	regions := app.Residency.Regions
	if app.Moving() {
		regions = []string{app.Move.From, app.Move.To}
	}
	var all []*Engine
	for _, region := range regions {
		if at, err := v.in(region); err != nil {
			return nil, err
		} else if at.env != v {
			all = append(all, at)
		}
	}
	return all, nil
}

// other returns the engine of the other region of a move.
func (v *env) other(app config.App) (*Engine, error) {
	if v.region == app.Move.From {
		return v.in(app.Move.To)
	}
	return v.in(app.Move.From)
}

// elsewhere reports that another region owns a user.
type elsewhere struct {
	region string
	epoch  int64 // the row there must have reached it
}

func (e elsewhere) Error() string { return "the user is owned in region " + e.region }

// maxHops bounds how often work follows a user from region to region. A user moves at most
// a few times in the life of a request.
const maxHops = 20

var errHops = errors.New("the user moved between regions too often")
