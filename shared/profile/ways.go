package profile

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// operations are those on the users of an app by which events reach profiles, and
// profiles readers. The methods of Engine document them.
type operations interface {
	apply(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error)
	importEvents(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error)
	abandon(ctx context.Context, app config.App, events []store.LogEvent) error
	refreshMarked(ctx context.Context, app config.App, token string) (bool, error)

	read(ctx context.Context, app config.App, token string, parts store.UserParts, limit int) (Result, error)
	computeStored(ctx context.Context, app config.App, token string) (Result, error)
	readEach(ctx context.Context, app config.App, tokens []string, limit int,
		fn func(token string, result Result) error) error
	readStored(ctx context.Context, app config.App, tokens []string,
		fn func(token string, stored []byte, ticket int64) error) error
	readChanged(ctx context.Context, app config.App, tickets map[string]int64,
		fn func(token string, stored []byte, ticket int64) error) error
	compute(ctx context.Context, app config.App, tokens []string, strategies []*affinity.Compiled,
		read *Reading) (map[string][]affinity.Profile, error)
	ask(ctx context.Context, app config.App, token string, q question) (Result, error)
}

// exclusions are the operations that exclude events of a user.
type exclusions interface {
	delete(ctx context.Context, app config.App, token string) (time.Time, error)
	optOut(ctx context.Context, app config.App, token string, types event.Types) (time.Time, error)
	optIn(ctx context.Context, app config.App, token string) (time.Time, error)
	restore(ctx context.Context, app config.App, token string, types event.Types, t affinity.Tombstone) error
	optedOut(ctx context.Context, app config.App, token string) (event.Types, time.Time, error)
	purge(ctx context.Context, app config.App, token string, until time.Time) (int, error)
}

// home does the operations for an app that lives in the region of the engine.
type home struct {
	*writer
	*reader
	*deletion
}

// enRoute does them for an app that moves, or whose users have regions of their own: each user is in one region or
// another. The engine is that of the entry.
type enRoute struct{ *Engine }

var (
	_ operations = home{}
	_ exclusions = home{}
	_ operations = enRoute{}
	_ exclusions = enRoute{}
)

// operations returns those for an app.
func (e *Engine) operations(app config.App) (operations, error) {
	at, err := e.at(app)
	if err != nil {
		return nil, err
	}
	if app.Owned() {
		return enRoute{at}, nil
	}
	return at.home, nil
}

// exclusions returns them for callers who know the id of the app alone.
func (e *Engine) exclusions(ctx context.Context, appID string) (config.App, exclusions, error) {
	app, err := e.appOf(ctx, appID)
	if err != nil {
		return app, nil, err
	}
	at, err := e.at(app)
	if err != nil {
		return app, nil, err
	}
	if app.Owned() {
		return app, enRoute{at}, nil
	}
	return app, at.home, nil
}

// appOf returns what the configuration, which may be some seconds old, says of where an app
// lives.
func (e *Engine) appOf(ctx context.Context, appID string) (config.App, error) {
	if e.env.regions == nil {
		return config.App{ID: appID}, nil // there is nowhere else
	}
	return e.logs.readCached(ctx, appID)
}
