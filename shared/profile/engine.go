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
	"maps"
	"math"
	"slices"
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
	turns turns
}

// New makes an Engine. apps is the configuration itself, not a cache of it: it
// is asked only when a profile shows that a cached one is out of date.
func New(s *store.Store, apps config.Store, now func() time.Time, log *slog.Logger) *Engine {
	return &Engine{store: s, fresh: apps.App, now: now, log: log, turns: turns{byUser: map[string]*queue{}}}
}

// Outcome is what became of the events of a message.
type Outcome struct {
	Applied int // in the log, and counted by every read from now on
	Deleted int // their user was deleted after they were received
}

// Apply writes events to the log and refreshes the profile of each of their
// users. On an error everything may be applied again, and must be.
func (e *Engine) Apply(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	if err := e.store.AppendLog(ctx, app.ID, events); err != nil {
		return Outcome{}, err
	}
	users, err := e.refreshShared(ctx, app, newestTimes(events))
	if err != nil {
		return Outcome{}, err
	}
	return e.dropDeleted(ctx, app.ID, events, users)
}

// Import writes events to the log and marks their users' profiles to be computed
// by whoever reads them next: history comes in pieces, and computing a profile
// for every piece would read a user's log many times over.
func (e *Engine) Import(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	if err := e.store.AppendLog(ctx, app.ID, events); err != nil {
		return Outcome{}, err
	}
	users, err := e.mark(ctx, app.ID, events)
	if err != nil {
		return Outcome{}, err
	}
	return e.dropDeleted(ctx, app.ID, events, users)
}

// Abandon makes the profiles of events' users true to the log, whatever of the
// events is in it, for a message that is given up after Apply has failed.
func (e *Engine) Abandon(ctx context.Context, app config.App, events []store.LogEvent) error {
	_, err := e.mark(ctx, app.ID, events)
	return err
}

// mark has the profiles of events' users computed by whoever reads them next.
func (e *Engine) mark(ctx context.Context, appID string, events []store.LogEvent) (map[string]store.User, error) {
	users, err := e.tickets(ctx, appID, slices.Collect(maps.Keys(newestTimes(events))))
	if err != nil {
		return nil, err
	}
	marks := make([]store.ProfileWrite, 0, len(users))
	for user, row := range users {
		marks = append(marks, store.ProfileWrite{User: user, Row: row, Version: row.Version})
	}
	return users, e.store.WriteProfiles(ctx, appID, marks)
}

// refreshShared refreshes users whose log was written before, each in a turn
// that may be shared with other messages, and returns their rows at its ticket.
// newest holds, by user, a time that his profile must be as of at least: receipt
// was stamped by another machine's clock.
func (e *Engine) refreshShared(ctx context.Context, app config.App, newest map[string]int64) (map[string]store.User, error) {
	now, all := map[string]*turn{}, map[string]*turn{}
	g, leading := errgroup.WithContext(ctx)
	for user, ms := range newest {
		t, what, before := e.turns.join(app.ID+","+user, ms)
		all[user] = t
		switch what {
		case run:
			now[user] = t
		case lead:
			// It must run even if this message is given up: others wait for it.
			g.Go(func() error {
				<-before
				e.turns.begin(app.ID + "," + user)
				e.runTurns(leading, app, map[string]*turn{user: t})
				return nil
			})
		}
	}
	e.runTurns(ctx, app, now)
	if err := g.Wait(); err != nil {
		return nil, err
	}
	rows := make(map[string]store.User, len(all))
	for user, t := range all {
		select {
		case <-t.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the refresh of %s,%s: %w", app.ID, user, ctx.Err())
		}
		if t.err != nil {
			return nil, t.err
		}
		rows[user] = t.row
	}
	return rows, nil
}

// runTurns refreshes users and ends their turns. Whoever fails fails for all
// that wait: their messages come again.
func (e *Engine) runTurns(ctx context.Context, app config.App, ts map[string]*turn) {
	if len(ts) == 0 {
		return
	}
	newest := make(map[string]int64, len(ts))
	for user, t := range ts {
		newest[user] = t.newest
	}
	var rows map[string]store.User
	err := errCutShort
	defer func() { // also after a crash: nobody may wait for ever
		for user, t := range ts {
			e.turns.end(app.ID+","+user, t, rows[user], err)
		}
	}()
	if rows, err = e.tickets(ctx, app.ID, slices.Collect(maps.Keys(ts))); err == nil {
		err = e.refresh(ctx, app, rows, newest)
	}
}

var errCutShort = errors.New("the refresh was cut short")

func (e *Engine) tickets(ctx context.Context, appID string, names []string) (map[string]store.User, error) {
	rows := make([]store.User, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxTickets)
	for i, user := range names {
		g.Go(func() (err error) {
			if rows[i], err = e.store.TakeTicket(ctx, appID, user); err != nil {
				return err
			}
			return checkManifest(rows[i])
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	users := make(map[string]store.User, len(names))
	for i, user := range names {
		users[user] = rows[i]
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
// covers: received before the deletion, written after it. No profile counts them
// meanwhile.
func (e *Engine) dropDeleted(ctx context.Context, appID string, events []store.LogEvent, users map[string]store.User) (Outcome, error) {
	var gone []store.LogEvent
	for i := range events {
		if d := users[events[i].User].DeletedUntil; d != 0 && events[i].Time <= d {
			gone = append(gone, events[i])
		}
	}
	if err := e.store.DeleteLogEvents(ctx, appID, gone); err != nil {
		return Outcome{}, err
	}
	return Outcome{Applied: len(events) - len(gone), Deleted: len(gone)}, nil
}

func newestTimes(events []store.LogEvent) map[string]int64 {
	newest := make(map[string]int64, len(events))
	for i := range events {
		newest[events[i].User] = max(newest[events[i].User], events[i].Time)
	}
	return newest
}

// refresh computes and writes the profiles of users at their tickets.
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
