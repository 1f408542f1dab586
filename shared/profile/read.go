package profile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

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
// still true, else one computed from blocks and log, which is then stored. Known is
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
	results, err := e.computeMany(ctx, app, []string{user}, map[string]store.User{user: row})
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
	if !valid(p, *app, row.DeletedUntil, now) {
		return Result{}, false, nil
	}
	return Result{Profile: p.At(now), Stored: true, App: *app}, true, nil
}

// ReadMany answers for many users at once, by user token.
func (e *Engine) ReadMany(ctx context.Context, app config.App, users []string, limit int) (map[string]Result, error) {
	rows, err := e.store.ReadManyServing(ctx, app.ID, users)
	if err != nil {
		return nil, err
	}
	// One of them may show that the cached configuration is out of date: all are
	// answered under one strategy.
	for _, row := range rows {
		if row.Version > app.StrategyVersion {
			if app, err = e.fresh(ctx, app.ID); err != nil {
				return nil, fmt.Errorf("read configuration of %s: %w", app.ID, err)
			}
			break
		}
	}
	results := make(map[string]Result, len(users))
	var stale []string
	for _, user := range users {
		result, ok, err := e.serve(ctx, &app, rows[user], limit)
		if err != nil {
			return nil, err
		}
		if ok {
			results[user] = result
		} else {
			stale = append(stale, user)
		}
	}
	for chunk := range slices.Chunk(stale, scanUsers) {
		if !e.store.ServingIsAuthoritative() {
			// What leads to a write must have read the cluster that is written.
			if rows, err = e.store.ReadUsers(ctx, app.ID, chunk); err != nil {
				return nil, err
			}
		}
		computed, err := e.computeMany(ctx, app, chunk, rows)
		if err != nil {
			return nil, err
		}
		maps.Copy(results, computed)
	}
	return results, nil
}

// computeMany computes profiles from blocks and log and stores them at the
// tickets of the rows, which were read before. A user without a ticket has no
// row yet, and nothing is stored for him.
func (e *Engine) computeMany(ctx context.Context, app config.App, users []string, rows map[string]store.User) (map[string]Result, error) {
	works, err := e.adoptAll(ctx, app.ID, distinct(users), rows)
	if err != nil {
		return nil, err
	}
	if app, err = e.current(ctx, app, works); err != nil {
		return nil, err
	}
	app, err = e.wherever(ctx, app, func(app config.App) error {
		return e.compute(ctx, app, affinity.Compile(app.Strategy), works, false, e.rereads(app.ID))
	})
	if err != nil {
		return nil, err
	}
	results := make(map[string]Result, len(users))
	var writes []store.ProfileWrite
	for _, w := range works {
		p := w.profile(app)
		results[w.user] = Result{Profile: p, App: app}
		if w.row.Ticket > 0 {
			writes = append(writes, write(w, app, p.AppendBinary(nil)))
		}
	}
	if err := e.store.WriteProfiles(ctx, app.ID, writes); err != nil {
		// What was computed is right whether or not it can be stored.
		e.log.LogAttrs(ctx, slog.LevelWarn, "computed profiles are not stored", slog.String("app", app.ID), slog.Any("error", err))
	}
	e.mend(ctx, app.ID, works)
	return results, nil
}

// distinct are the users, each once: two computations of one user at once would
// take each other's blocks away.
func distinct(users []string) []string {
	users = slices.Clone(users)
	slices.Sort(users)
	return slices.Compact(users)
}

func (e *Engine) adoptAll(ctx context.Context, appID string, users []string, rows map[string]store.User) ([]*work, error) {
	works := make([]*work, len(users))
	for i, user := range users {
		works[i] = &work{user: user}
		if err := e.adopt(ctx, appID, works[i], rows[user]); err != nil {
			return nil, fmt.Errorf("compute profile of %s,%s: %w", appID, user, err)
		}
	}
	return works, nil
}

// rereads renews rows by reading them again.
func (e *Engine) rereads(appID string) again {
	return func(ctx context.Context, w *work) error {
		row, err := e.store.ReadUser(ctx, appID, w.user)
		if err != nil {
			return err
		}
		return e.adopt(ctx, appID, w, row)
	}
}

// Compute computes users' profiles as of now from blocks and log under any
// strategies, compiled, and stores nothing: by user, in the order of the
// strategies. Users without an event are there too, not Known.
func (e *Engine) Compute(ctx context.Context, app config.App, users []string, sets ...*affinity.Compiled) (map[string][]affinity.Profile, error) {
	profiles := make(map[string][]affinity.Profile, len(users))
	for chunk := range slices.Chunk(distinct(users), scanUsers) {
		rows, err := e.store.ReadUsers(ctx, app.ID, chunk)
		if err != nil {
			return nil, err
		}
		for _, c := range sets {
			works, err := e.adoptAll(ctx, app.ID, chunk, rows)
			if err != nil {
				return nil, err
			}
			app, err = e.wherever(ctx, app, func(app config.App) error {
				return e.compute(ctx, app, c, works, false, e.rereads(app.ID))
			})
			if err != nil {
				return nil, err
			}
			for _, w := range works {
				profiles[w.user] = append(profiles[w.user], w.profile(app))
			}
		}
	}
	return profiles, nil
}
