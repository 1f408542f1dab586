// Package profile keeps stored profiles true to the log, whatever happens at
// the same time. It holds the protocol between writers, readers and deletions;
// its data lives in the tables events and users of package store.
//
// The rules that make it right:
//
//   - The log is written first. A profile is only ever computed from the log.
//   - Then one atomic step on the user row draws a ticket and reads the tombstone
//     of the same instant; only then is the log read, and the profile is written
//     at that ticket. Of two profiles the one with the higher ticket has seen at
//     least as much of the log, and readers take the newest cell, so a slow
//     writer never hides an event.
//   - A reader who computes reads the user row first and stores what he computed
//     at the ticket he found there: never above a refresh that began later.
//   - A deletion raises the tombstone, draws a ticket, and leaves a cell at it
//     that says "compute": not an empty profile, which would hide newer events.
//   - Everything may be done again at any time: after a crash, after a lost
//     answer, for a duplicate. Nothing is skipped because it was seen before.
package profile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// tickets in flight at once for one message.
	maxTickets = 32
	// scanUsers is how many users one read of the log covers.
	scanUsers = 100
	// maxScans at once for one message.
	maxScans = 4
)

// Engine applies events, answers reads and deletes. Safe for concurrent use.
type Engine struct {
	store *store.Store
	// fresh reads an app's configuration past any cache.
	fresh func(ctx context.Context, appID string) (config.App, error)
	now   func() time.Time
	log   *slog.Logger
}

// New makes an Engine. apps is the configuration itself, not a cache of it: it
// is asked only when a profile shows that a cached one is out of date.
func New(s *store.Store, apps config.Store, now func() time.Time, log *slog.Logger) *Engine {
	return &Engine{store: s, fresh: apps.App, now: now, log: log}
}

// Outcome is what became of the events of a message.
type Outcome struct {
	Applied int // in the log, and counted by every read from now on
	Deleted int // their user was deleted after they were received
}

// Apply writes events to the log and refreshes the profile of each of their
// users. On an error everything may be applied again, and must be.
func (e *Engine) Apply(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	users, outcome, err := e.append(ctx, app.ID, events)
	if err != nil {
		return Outcome{}, err
	}
	if err := e.refresh(ctx, app, users, newestTimes(events)); err != nil {
		return Outcome{}, err
	}
	return outcome, nil
}

// Import writes events to the log and marks their users' profiles to be computed
// by whoever reads them next: history comes in pieces, and computing a profile
// for every piece would read a user's log many times over.
func (e *Engine) Import(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	users, outcome, err := e.append(ctx, app.ID, events)
	if err != nil {
		return Outcome{}, err
	}
	marks := make([]store.ProfileWrite, 0, len(users))
	for user, row := range users {
		marks = append(marks, store.ProfileWrite{User: user, Row: row, Version: row.Version})
	}
	if err := e.store.WriteProfiles(ctx, app.ID, marks); err != nil {
		return Outcome{}, err
	}
	return outcome, nil
}

// append writes the log, then draws a ticket for each user, in this order, and
// takes out again what the users' tombstones cover.
func (e *Engine) append(ctx context.Context, appID string, events []store.LogEvent) (map[string]store.User, Outcome, error) {
	if err := e.store.AppendLog(ctx, appID, events); err != nil {
		return nil, Outcome{}, err
	}
	names := make(map[string]bool, len(events))
	for i := range events {
		names[events[i].User] = true
	}
	users, err := e.tickets(ctx, appID, names)
	if err != nil {
		return nil, Outcome{}, err
	}
	deleted, err := e.dropDeleted(ctx, appID, events, users)
	return users, Outcome{Applied: len(events) - deleted, Deleted: deleted}, err
}

func (e *Engine) tickets(ctx context.Context, appID string, names map[string]bool) (map[string]store.User, error) {
	type drawn struct {
		user string
		row  store.User
	}
	rows := make(chan drawn, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxTickets)
	for user := range names {
		g.Go(func() error {
			row, err := e.store.TakeTicket(ctx, appID, user)
			if err != nil {
				return err
			}
			rows <- drawn{user, row}
			return checkManifest(row)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	close(rows)
	users := make(map[string]store.User, len(names))
	for d := range rows {
		users[d.user] = d.row
	}
	return users, nil
}

// ErrManifest means that a newer version of the engine has packed part of a
// user's log: this one must not compute his profile.
var ErrManifest = errors.New("the user's history is in a format this version does not read; deploy the newer version")

func checkManifest(row store.User) error {
	if len(row.Manifest) > 0 {
		return ErrManifest
	}
	return nil
}

// dropDeleted takes events out of the log again that their user's tombstone
// covers: received before the deletion, written after it.
func (e *Engine) dropDeleted(ctx context.Context, appID string, events []store.LogEvent, users map[string]store.User) (int, error) {
	var gone []store.LogEvent
	for i := range events {
		if d := users[events[i].User].DeletedUntil; d != 0 && events[i].Time <= d {
			gone = append(gone, events[i])
		}
	}
	return len(gone), e.store.DeleteLogEvents(ctx, appID, gone)
}

func newestTimes(events []store.LogEvent) map[string]int64 {
	newest := make(map[string]int64, len(events))
	for i := range events {
		newest[events[i].User] = max(newest[events[i].User], events[i].Time)
	}
	return newest
}

// refresh computes and writes the profiles of users at their tickets. newest
// holds, where it is known, a time that the profile must be as of at least:
// receipt was stamped by another machine's clock.
func (e *Engine) refresh(ctx context.Context, app config.App, users map[string]store.User, newest map[string]int64) error {
	app, err := e.current(ctx, app, users)
	if err != nil {
		return err
	}
	compiled := affinity.Compile(app.Strategy)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxScans)
	for _, chunk := range chunks(users) {
		g.Go(func() error {
			profiles, err := e.compute(ctx, app, compiled, chunk, newest)
			if err != nil {
				return err
			}
			return e.storeProfiles(ctx, app, chunk, profiles)
		})
	}
	return g.Wait()
}

func chunks(users map[string]store.User) []map[string]store.User {
	var all []map[string]store.User
	var chunk map[string]store.User
	for user, row := range users {
		if len(chunk) == 0 || len(chunk) == scanUsers {
			chunk = make(map[string]store.User, scanUsers)
			all = append(all, chunk)
		}
		chunk[user] = row
	}
	return all
}

// current is the app's configuration, read anew if one of the users carries a
// profile of a newer strategy than the cached one: a refresh must not put an
// older one in its place.
func (e *Engine) current(ctx context.Context, app config.App, users map[string]store.User) (config.App, error) {
	for _, row := range users {
		if row.Version > app.StrategyVersion {
			fresh, err := e.fresh(ctx, app.ID)
			if err != nil {
				return app, fmt.Errorf("read configuration of %s: %w", app.ID, err)
			}
			return fresh, nil
		}
	}
	return app, nil
}

// compute reads the log of users, whose rows were read before, and scores it.
func (e *Engine) compute(ctx context.Context, app config.App, c *affinity.Compiled, users map[string]store.User, newest map[string]int64) (map[string]affinity.Profile, error) {
	now := e.now().UnixMilli()
	scorers := make(map[string]*affinity.Scorer, len(users))
	spans := make([]store.Span, 0, len(users))
	for user, row := range users {
		w := affinity.Window{Now: max(now, newest[user]), RetentionDays: app.RetentionDays, DeletedUntil: row.DeletedUntil}
		scorers[user] = affinity.NewScorer(c, w)
		spans = append(spans, store.Span{User: user, From: w.From()})
	}
	err := e.store.ScoreLog(ctx, app.ID, spans, c, func(user string) *affinity.Scorer { return scorers[user] })
	if err != nil {
		return nil, err
	}
	profiles := make(map[string]affinity.Profile, len(users))
	for user, sc := range scorers {
		p := sc.Profile()
		p.StrategyVersion, p.RetentionDays = app.StrategyVersion, app.RetentionDays
		profiles[user] = p
	}
	return profiles, nil
}

func (e *Engine) storeProfiles(ctx context.Context, app config.App, users map[string]store.User, profiles map[string]affinity.Profile) error {
	writes := make([]store.ProfileWrite, 0, len(users))
	for user, row := range users {
		writes = append(writes, store.ProfileWrite{
			User: user, Row: row, Value: profiles[user].AppendBinary(nil), Version: app.StrategyVersion,
		})
	}
	return e.store.WriteProfiles(ctx, app.ID, writes)
}

// valid tells whether a stored profile may be served now: it was computed under
// the active strategy and retention, and nothing has left or entered the window.
func valid(p affinity.Profile, app config.App, now int64) bool {
	return p.StrategyVersion == app.StrategyVersion && p.RetentionDays == app.RetentionDays &&
		(p.Until == math.MaxInt64 || max(now, p.Anchor) < p.Until)
}
