package profile

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// logs finds an app's log in the schemas that its configuration names.
//
// An app's log can migrate from one schema to the other while it is in use. First
// writers write both schemas. Then readers change to the new one. Then writers stop
// writing the old one, and the migration removes it. Each step waits until the
// step before has propagated to every process. Two rules make that enough:
//
//   - A writer checks the schemas after it has written the log, and writes again
//     if they have changed.
//   - A reader checks the schemas after it has read the log, before it answers,
//     stores or commits anything.
//
// Without these rules a step would have to wait for the slowest request that began
// before it.
type logs struct {
	*env
	// fresh reads an app's configuration past every cache, cached through the cache
	// of the requests.
	fresh, cached func(ctx context.Context, appID string) (config.App, error)
	appends       *appends
}

// ErrSchemaChanged reports that the schemas of the log have changed since a read.
// The caller must read and compute again.
var ErrSchemaChanged error = schemaChanged{}

type schemaChanged struct{}

func (schemaChanged) Error() string { return "the app's log has changed schema; try again" }

// Transient reports that another attempt may succeed.
func (schemaChanged) Transient() bool { return true }

// maxSchemaChanges bounds the attempts to write or read a log whose schemas keep
// changing.
const maxSchemaChanges = 10

func (l *logs) of(app config.App) store.Log { return l.store.Events.Log(app.ID, app.Log) }

// append writes events to the log in every schema that writers write at the time of
// its return. It returns the configuration of that time, and the users of rows that
// Bigtable refuses: the other rows are written.
func (l *logs) append(ctx context.Context, app config.App, events []store.LogEvent) (config.App, Faulty, error) {
	for range maxSchemaChanges {
		err := l.appends.append(ctx, app, events)
		refused, ok := errors.AsType[store.RefusedEvents](err)
		if err != nil && !ok {
			return app, nil, err
		}
		now, err := l.readCached(ctx, app.ID)
		if err != nil {
			return app, nil, err
		}
		if now.Log.Generation <= app.Log.Generation { // app may be the newer one
			return app, Faulty(refused.ByUser()), nil
		}
		app = now
	}
	return app, nil, fmt.Errorf("append to log of %s: its schemas changed %d times", app.ID, maxSchemaChanges)
}

// check returns ErrSchemaChanged if the schemas have changed since app was read.
func (l *logs) check(ctx context.Context, app config.App) error {
	now, err := l.readCached(ctx, app.ID)
	if err != nil {
		return err
	}
	if now.Log.Generation > app.Log.Generation {
		return fmt.Errorf("read log of %s, %s: %w", app.ID, app.Log.Read, ErrSchemaChanged)
	}
	return nil
}

// retryOnSchemaChange calls do with an app's configuration. If the schemas changed
// while do ran, it calls do again with the current configuration. It returns the
// configuration of the last call.
func (l *logs) retryOnSchemaChange(ctx context.Context, app config.App,
	do func(config.App) error) (config.App, error) {
	for range maxSchemaChanges {
		err := do(app)
		if err == nil {
			err = l.check(ctx, app)
		}
		if !errors.Is(err, ErrSchemaChanged) {
			return app, err
		}
		fresh, err := l.readFresh(ctx, app.ID)
		if err != nil {
			return fresh, err
		}
		app = fresh.As(app)
	}
	return app, fmt.Errorf("read log of %s, %d times: %w", app.ID, maxSchemaChanges, ErrSchemaChanged)
}

// newest returns app, or the current configuration if a user has a profile of a
// newer strategy than app's. A profile of an older strategy must not replace it.
func (l *logs) newest(ctx context.Context, app config.App, users []*user) (config.App, error) {
	for _, u := range users {
		if u.row.Version > app.StrategyVersion {
			fresh, err := l.readFresh(ctx, app.ID)
			return fresh.As(app), err
		}
	}
	return app, nil
}

func (l *logs) readCached(ctx context.Context, appID string) (config.App, error) {
	app, err := l.cached(ctx, appID)
	if err != nil {
		return app, fmt.Errorf("read configuration of %s: %w", appID, err)
	}
	return app, nil
}

func (l *logs) readFresh(ctx context.Context, appID string) (config.App, error) {
	app, err := l.fresh(ctx, appID)
	if err != nil {
		return app, fmt.Errorf("read configuration of %s: %w", appID, err)
	}
	return app, nil
}
