package profile

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/store"
)

// Result is a profile as of now and where it came from.
type Result struct {
	affinity.Profile
	// Stored says that it was read; otherwise it was computed for this read.
	Stored bool
	// App is the configuration it was answered under.
	App config.App
}

// Read answers with a user's profile as of now: the stored one where it is
// still true, else one computed from the log, which is then stored. Known is
// false for a user without an event in the window. limit bounds how many
// affinities are decoded, 0 for all; Total tells how many there are.
func (e *Engine) Read(ctx context.Context, app config.App, user string, limit int) (Result, error) {
	row, err := e.store.ReadServing(ctx, app.ID, user)
	if err != nil {
		return Result{}, err
	}
	result, ok, err := e.serve(ctx, &app, row, limit)
	if ok || err != nil {
		return result, err
	}
	if !e.store.ServingIsAuthoritative() {
		// What leads to a write must have read the cluster that is written.
		if row, err = e.store.ReadUser(ctx, app.ID, user); err != nil {
			return Result{}, err
		}
	}
	results, err := e.computeMany(ctx, app, map[string]store.User{user: row})
	return results[user], err
}

// serve answers from a row if its profile is valid. A profile of a strategy that
// is newer than the cached one means that the cache is out of date: then app is
// replaced.
func (e *Engine) serve(ctx context.Context, app *config.App, row store.User, limit int) (Result, bool, error) {
	if !row.HasProfile || len(row.Profile) == 0 {
		return Result{}, false, nil
	}
	p, err := affinity.ParseProfile(row.Profile, limit)
	if err != nil {
		// A damaged profile is only a cache of the log.
		e.log.LogAttrs(ctx, slog.LevelError, "stored profile is damaged, computing it", slog.String("app", app.ID), slog.Any("error", err))
		return Result{}, false, nil
	}
	if p.StrategyVersion > app.StrategyVersion {
		if *app, err = e.fresh(ctx, app.ID); err != nil {
			return Result{}, false, fmt.Errorf("read configuration of %s: %w", app.ID, err)
		}
	}
	now := e.now().UnixMilli()
	if row.DeletedUntil != 0 && p.Anchor <= row.DeletedUntil {
		return Result{}, false, nil // computed before a deletion that is under way
	}
	if !valid(p, *app, now) {
		return Result{}, false, nil
	}
	return Result{Profile: p.At(now), Stored: true, App: *app}, true, nil
}

// ReadMany answers for many users at once, by user token.
func (e *Engine) ReadMany(ctx context.Context, app config.App, users []string, limit int) (map[string]Result, error) {
	rows, err := e.store.ReadUsers(ctx, app.ID, users)
	if err != nil {
		return nil, err
	}
	// One of them may show that the cached configuration is out of date: all are
	// answered under one strategy.
	if app, err = e.current(ctx, app, rows); err != nil {
		return nil, err
	}
	results := make(map[string]Result, len(users))
	stale := map[string]store.User{}
	for _, user := range users {
		result, ok, err := e.serve(ctx, &app, rows[user], limit)
		if err != nil {
			return nil, err
		}
		if ok {
			results[user] = result
		} else {
			stale[user] = rows[user]
		}
	}
	for _, chunk := range chunks(stale) {
		computed, err := e.computeMany(ctx, app, chunk)
		if err != nil {
			return nil, err
		}
		for user, r := range computed {
			results[user] = r
		}
	}
	return results, nil
}

// computeMany computes profiles from the log and stores them at the tickets of
// the rows, which were read before the log. A user without a ticket has no row
// yet, and nothing is stored for him.
func (e *Engine) computeMany(ctx context.Context, app config.App, rows map[string]store.User) (map[string]Result, error) {
	app, err := e.current(ctx, app, rows)
	if err != nil {
		return nil, err
	}
	for user, row := range rows {
		if err := checkManifest(row); err != nil {
			return nil, fmt.Errorf("compute profile of %s,%s: %w", app.ID, user, err)
		}
	}
	profiles, err := e.compute(ctx, app, affinity.Compile(app.Strategy), rows, nil)
	if err != nil {
		return nil, err
	}
	ticketed := make(map[string]store.User, len(rows))
	results := make(map[string]Result, len(rows))
	for user, row := range rows {
		results[user] = Result{Profile: profiles[user], App: app}
		if row.Ticket > 0 {
			ticketed[user] = row
		}
	}
	if err := e.storeProfiles(ctx, app, ticketed, profiles); err != nil {
		// What was computed is right whether or not it can be stored.
		e.log.LogAttrs(ctx, slog.LevelWarn, "computed profiles are not stored", slog.String("app", app.ID), slog.Any("error", err))
	}
	return results, nil
}
