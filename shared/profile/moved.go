package profile

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/store"
)

// An app's log may move from one schema to the other while all of this goes on.
// For a while both are written; then reads change sides; then the one that was
// left is not written any more, and removed. Each step waits until the one before
// is in force everywhere, which takes two rules here: what has written the log
// looks afterwards whether the schemas have changed since it looked last, and
// writes again if so; and what has read the log looks, before anything comes of
// it, whether they have. Without them a step would have to wait for the slowest
// process that began before it.

// ErrSchemaChanged reports that the schemas of the log have changed since it was
// read, so that whatever was computed from it must be computed again.
var ErrSchemaChanged error = schemaChanged{}

type schemaChanged struct{}

func (schemaChanged) Error() string { return "the app's log has changed schema; try again" }

// Transient reports that another attempt may succeed.
func (schemaChanged) Transient() bool { return true }

// logOf is the log of an app as its configuration has it.
func (e *Engine) logOf(app config.App) store.Log { return e.store.Log(app.ID, app.Log) }

// maxLayouts bounds how often the log is written, or read, again because its
// schemas have changed meanwhile.
const maxLayouts = 10

// appendLog writes events to the log, in every schema that is to be written when
// it has done so. It returns the configuration that it then found.
func (e *Engine) appendLog(ctx context.Context, app config.App, events []store.LogEvent) (config.App, error) {
	for range maxLayouts {
		if err := e.logOf(app).Append(ctx, events); err != nil {
			return app, err
		}
		now, err := e.cached(ctx, app.ID)
		if err != nil {
			return app, fmt.Errorf("read configuration of %s: %w", app.ID, err)
		}
		if now.Log.Generation <= app.Log.Generation { // app may be the newer one
			return app, nil
		}
		app = now
	}
	return app, fmt.Errorf("append to log of %s: its schemas changed %d times meanwhile", app.ID, maxLayouts)
}

// CheckSchema returns ErrSchemaChanged if the schemas of the app's log have changed since app
// was read: what was read of the log under it may not be all, even where the
// schemas are the same again. It is asked after the reading, and before anything
// comes of it.
func (e *Engine) CheckSchema(ctx context.Context, app config.App) error {
	now, err := e.cached(ctx, app.ID)
	if err != nil {
		return fmt.Errorf("read configuration of %s: %w", app.ID, err)
	}
	if now.Log.Generation > app.Log.Generation {
		return fmt.Errorf("use what was read of %s, %s: %w", app.ID, app.Log.Read, ErrSchemaChanged)
	}
	return nil
}

// wherever calls do with an app's configuration, and again with a newer one as long
// as the log has moved meanwhile.
func (e *Engine) wherever(ctx context.Context, app config.App, do func(config.App) error) (config.App, error) {
	for range maxLayouts {
		if err := do(app); err != nil {
			return app, err
		}
		err := e.CheckSchema(ctx, app)
		if !errors.Is(err, ErrSchemaChanged) {
			return app, err
		}
		if app, err = e.fresh(ctx, app.ID); err != nil {
			return app, fmt.Errorf("read configuration of %s: %w", app.ID, err)
		}
	}
	return app, fmt.Errorf("read log of %s, %d times: %w", app.ID, maxLayouts, ErrSchemaChanged)
}
