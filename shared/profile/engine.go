// Package profile keeps stored profiles true to the log, whatever happens at
// the same time. It holds the protocol between writers, readers, folds and
// deletions; its data lives in the tables events, users and histories of package
// store.
//
// The rules that make it right:
//
//   - The log is written first. It is the truth; a block of a history is a cache
//     of a closed range of it, and a range is read from one or the other.
//   - Then one atomic step on the user row draws a ticket and reads the tombstone
//     and the manifest, which names the blocks, of the same instant; only then are
//     blocks and log read, and the profile is written at that ticket. Of two
//     profiles the one with the higher ticket has seen at least as much, and
//     readers take the newest cell, so a slow writer never hides an event.
//   - An event in a range that a block covers came late: the range is uncovered,
//     and the ticket drawn after that, since before it nobody could see the event.
//   - A fold reads a range after drawing its ticket, writes blocks that are never
//     rewritten, and names them in the manifest only if no ticket was drawn since;
//     or it announces the range in the manifest first, and names them only if that
//     still stands. Folding deletes nothing. Whoever changes a manifest otherwise
//     draws a ticket first.
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
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// tickets in flight at once for one message.
	maxTickets = 32
	// scanUsers is how many users one read of the log covers.
	scanUsers = 100
	// maxScans at once for one message.
	maxScans = 4
	// maxTurn ends a refresh that nothing else would end.
	maxTurn = 10 * time.Minute
)

// Engine applies events, answers reads and deletes. Safe for concurrent use.
type Engine struct {
	store *store.Store
	// fresh reads an app's configuration past any cache, cached as every request
	// sees it.
	fresh    func(ctx context.Context, appID string) (config.App, error)
	cached   func(ctx context.Context, appID string) (config.App, error)
	now      func() time.Time
	log      *slog.Logger
	turns    turns
	limits   limits
	counters Counters
}

// New makes an Engine. apps is the configuration itself, not a cache of it: it
// is asked only when something shows that a cached one is out of date. cached is
// the cache that the requests' configuration comes from.
func New(s *store.Store, apps config.Store, cached *config.Cached, now func() time.Time, log *slog.Logger) *Engine {
	return &Engine{store: s, fresh: apps.App, cached: cached.App, now: now, log: log, turns: turns{byUser: map[string]*queue{}}, limits: usual}
}

// Outcome is what became of the events of a message.
type Outcome struct {
	Applied int // in the log, and counted by every read from now on
	Deleted int // their user was deleted after they were received
}

// Apply writes events to the log and refreshes the profile of each of their
// users. On an error everything may be applied again, and must be.
func (e *Engine) Apply(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	app, err := e.appendLog(ctx, app, events)
	if err != nil {
		return Outcome{}, err
	}
	users, err := e.refreshShared(ctx, app, positions(events))
	if err != nil {
		return Outcome{}, err
	}
	return e.dropDeleted(ctx, app, events, users)
}

// Import writes events to the log and marks their users' profiles to be computed
// by whoever reads them next: history comes in pieces, and computing a profile
// for every piece would read a user's log many times over.
func (e *Engine) Import(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	app, err := e.appendLog(ctx, app, events)
	if err != nil {
		return Outcome{}, err
	}
	users, err := e.mark(ctx, app.ID, events)
	if err != nil {
		return Outcome{}, err
	}
	return e.dropDeleted(ctx, app, events, users)
}

// Abandon makes the profiles of events' users true to the log, whatever of the
// events is in it, for a message that is given up after Apply has failed.
func (e *Engine) Abandon(ctx context.Context, app config.App, events []store.LogEvent) error {
	_, err := e.mark(ctx, app.ID, events)
	return err
}

// mark has the profiles of events' users computed by whoever reads them next.
func (e *Engine) mark(ctx context.Context, appID string, events []store.LogEvent) (map[string]store.User, error) {
	works, err := e.tickets(ctx, appID, positions(events))
	if err != nil {
		return nil, err
	}
	marks, users := make([]store.ProfileWrite, 0, len(works)), make(map[string]store.User, len(works))
	for _, w := range works {
		marks = append(marks, store.ProfileWrite{User: w.user, Row: w.row, Version: w.row.Version})
		users[w.user] = w.row
	}
	return users, e.store.WriteProfiles(ctx, appID, marks)
}

// refreshShared refreshes users whose log was written before, each in a turn
// that may be shared with other messages, and returns their rows at its ticket.
func (e *Engine) refreshShared(ctx context.Context, app config.App, events map[string][]history.Pos) (map[string]store.User, error) {
	now, all := map[string]*turn{}, map[string]*turn{}
	// A turn goes on if its message is given up: others wait for it.
	for user, places := range events {
		t, what, before := e.turns.join(app.ID+","+user, places)
		all[user] = t
		switch what {
		case run:
			now[user] = t
		case lead:
			go func() {
				<-before // which ends: every turn does
				e.turns.begin(app.ID + "," + user)
				e.runTurns(context.WithoutCancel(ctx), app, map[string]*turn{user: t})
			}()
		}
	}
	go e.runTurns(context.WithoutCancel(ctx), app, now)
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
	ctx, cancel := context.WithTimeout(ctx, maxTurn)
	defer cancel()
	events := make(map[string][]history.Pos, len(ts))
	for user, t := range ts {
		events[user] = t.events
	}
	var works []*work
	err := errCutShort
	defer func() { // also after a crash: nobody may wait for ever
		rows := make(map[string]store.User, len(works))
		for _, w := range works {
			rows[w.user] = w.row
		}
		for user, t := range ts {
			e.turns.end(app.ID+","+user, t, rows[user], err)
		}
	}()
	if works, err = e.tickets(ctx, app.ID, events); err == nil {
		err = e.refresh(ctx, app, works, events)
	}
}

var errCutShort = errors.New("the refresh was cut short")

// tickets draws a ticket for each of some users, at which his events given are
// outside the blocks.
func (e *Engine) tickets(ctx context.Context, appID string, events map[string][]history.Pos) ([]*work, error) {
	works := make([]*work, 0, len(events))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxTickets)
	for user, places := range events {
		w := &work{user: user}
		works = append(works, w)
		g.Go(func() error {
			for _, p := range places {
				w.newest = max(w.newest, p.Time)
			}
			return e.ticket(ctx, appID, w, places)
		})
	}
	return works, g.Wait()
}

// dropDeleted takes events out of the log again that their user's tombstone
// covers: received before the deletion, written after it. No profile counts them
// meanwhile.
func (e *Engine) dropDeleted(ctx context.Context, app config.App, events []store.LogEvent, users map[string]store.User) (Outcome, error) {
	var gone []store.LogEvent
	for i := range events {
		if d := users[events[i].User].DeletedUntil; d != 0 && events[i].Time <= d {
			gone = append(gone, events[i])
		}
	}
	if err := e.logOf(app).Delete(ctx, gone); err != nil {
		return Outcome{}, err
	}
	return Outcome{Applied: len(events) - len(gone), Deleted: len(gone)}, nil
}

// positions are the places of events in the logs of their users.
func positions(events []store.LogEvent) map[string][]history.Pos {
	places := make(map[string][]history.Pos, len(events))
	for i := range events {
		places[events[i].User] = append(places[events[i].User], position(&events[i]))
	}
	return places
}

// refresh computes and writes the profiles of users at their tickets, and folds
// what of their logs has become much.
func (e *Engine) refresh(ctx context.Context, app config.App, works []*work, events map[string][]history.Pos) error {
	app, err := e.current(ctx, app, works)
	if err != nil {
		return err
	}
	compiled := affinity.Compile(app.Strategy)
	renew := func(ctx context.Context, w *work) error { return e.ticket(ctx, app.ID, w, events[w.user]) }
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxScans)
	for chunk := range slices.Chunk(works, scanUsers) {
		g.Go(func() error {
			if err := e.compute(ctx, app, compiled, chunk, true, renew); err != nil {
				return err
			}
			writes := make([]store.ProfileWrite, len(chunk))
			for i, w := range chunk {
				writes[i] = write(w, app, w.scorer.AppendProfile(nil, app.StrategyVersion))
			}
			if err := e.CheckSchema(ctx, app); err != nil {
				return err
			}
			if err := e.store.WriteProfiles(ctx, app.ID, writes); err != nil {
				return err
			}
			e.mend(ctx, app.ID, chunk)
			e.foldLoose(ctx, app, chunk)
			return nil
		})
	}
	return g.Wait()
}

// current is the app's configuration, read anew if one of the users carries a
// profile of a newer strategy than the cached one: a refresh must not put an
// older one in its place.
func (e *Engine) current(ctx context.Context, app config.App, works []*work) (config.App, error) {
	for _, w := range works {
		if w.row.Version > app.StrategyVersion {
			fresh, err := e.fresh(ctx, app.ID)
			if err != nil {
				return app, fmt.Errorf("read configuration of %s: %w", app.ID, err)
			}
			return fresh, nil
		}
	}
	return app, nil
}

// valid tells whether a stored profile may be served now: it was computed under
// the active strategy and retention and knew of the user's last deletion, and
// nothing has left or entered the window.
func valid(p affinity.Profile, app config.App, deletedUntil, now int64) bool {
	return p.StrategyVersion == app.StrategyVersion && p.RetentionDays == app.RetentionDays && p.DeletedUntil == deletedUntil &&
		(p.Until == math.MaxInt64 || max(now, p.Anchor) < p.Until)
}
