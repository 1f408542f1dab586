package profile

import (
	"context"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// Later makes sure that users are refreshed at the end of the app's write window. It is
// called after their marks, and its errors are its own: no answer depends on it.
type Later func(ctx context.Context, app config.App, users []string)

// markLater marks the users of events that are in the log. Until their refresh at the end of the window, reads
// compute them.
func (w *writer) markLater(ctx context.Context, app config.App, events []store.LogEvent) (drawn, error) {
	users, err := w.tickets.markAll(ctx, app, positions(events))
	if err != nil {
		return drawn{}, err
	}
	named, err := w.followAll(ctx, app, users, owns(events, nil), w.deliverLater, w.linker.drawHere(app))
	if err != nil {
		return drawn{}, err
	}
	faulty, rows, marked := Faulty{}, make(map[string]store.User, len(users)), make([]string, 0, len(users))
	for _, u := range users {
		rows[u.token] = u.row
		if !faulty.note(u) && !u.row.Gone() {
			marked = append(marked, u.token)
		}
	}
	if err := w.changes.list(ctx, app, slices.Collect(maps.Keys(rows))...); err != nil {
		return drawn{}, err
	}
	w.counters.Marked.Add(int64(len(marked)))
	if len(marked) > 0 {
		w.refreshLater(ctx, app, marked)
	}
	return drawn{rows, named}, faulty.orNil()
}

// refreshLater makes sure that users who are owned here are refreshed at the end of the window. The tasks name them.
func (w *writer) refreshLater(ctx context.Context, app config.App, tokens []string) {
	if app.Residency.On() {
		app = app.In(w.region)
	}
	w.later(ctx, app, tokens)
}

// refreshMarked computes and stores a profile unless a valid one is stored. It draws no
// ticket: it stores at that of the row, as a read does. Then it folds the log of a user
// of whom so much is unfolded that it holds more than young events.
func (r *reader) refreshMarked(ctx context.Context, app config.App, token string) (bool, error) {
	row, err := r.store.Users.ReadPrimary(ctx, app.ID, token, store.UserSummary)
	if err != nil || !row.Exists || row.Gone() {
		return false, err
	}
	if len(row.Summary) > 0 {
		p, err := r.limits.bounds.Parse(row.Summary, 0)
		if err == nil && r.valid(p, app, row, r.now().UnixMilli()) {
			r.counters.Spared.Add(1)
			return false, nil
		}
	}
	if row, err = r.store.Users.ReadPrimary(ctx, app.ID, token, store.UserHistory); err != nil {
		return false, err
	}
	result, err := r.computeOne(ctx, app, token, row)
	if err != nil {
		return false, err
	}
	r.counters.Refreshed.Add(1)
	if result.unfolded < r.limits.foldEvents+r.limits.maxYoung {
		return true, nil
	}
	_, err = r.folder.fold(ctx, app, token)
	r.folder.logFailure(ctx, app.ID, token, err)
	return true, nil
}
