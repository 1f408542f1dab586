package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/enrich"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// accepted writes the events of a request to the log, with the filters that the
// message carries.
func (a *Applier) accepted(ctx context.Context, app config.App, m bus.Message, events []event.Event) (Result, error) {
	rows := enrich.LogEvents(events, m.Objects, m.ReceivedAt)
	incomplete := enrich.Incomplete(events, m.Objects)
	known, err := a.unknownInLog(ctx, app, incomplete)
	if err != nil {
		return Result{}, halfway{err, app, rows} // an earlier attempt may have written rows
	}
	// The log knows more of these events than the message does.
	superseded := func(at enrich.Place) bool {
		unknown, there := known[at]
		return there && unknown < incomplete[at]
	}
	kept := slices.DeleteFunc(slices.Clone(rows), func(e store.LogEvent) bool { return superseded(enrich.PlaceOf(&e)) })
	maps.DeleteFunc(incomplete, func(at enrich.Place, _ int) bool { return superseded(at) })
	result, err := a.write(ctx, app, m, kept)
	result.Superseded, result.WithUnknownObjects = len(rows)-len(kept), len(incomplete)
	return result, err
}

// reenriched writes events of the log in their old places, with the filters that
// the catalog has learned of since.
func (a *Applier) reenriched(ctx context.Context, app config.App, m bus.Message, logged []bus.Logged) (Result, error) {
	rows := enrich.Relogged(logged, m.Objects)
	unknown := make(map[enrich.Place]int, len(rows))
	for i := range rows {
		unknown[enrich.PlaceOf(&rows[i])] = enrich.UnknownObjects(&logged[i].Event, m.Objects)
	}
	known, err := a.unknownInLog(ctx, app, unknown)
	if err != nil {
		return Result{}, halfway{err, app, rows} // an earlier attempt may have written rows
	}
	kept := slices.DeleteFunc(slices.Clone(rows), func(e store.LogEvent) bool {
		at := enrich.PlaceOf(&e)
		n, there := known[at]
		return !there || n < unknown[at] // deleted, or written by a newer message
	})
	result, err := a.write(ctx, app, m, kept)
	result.Superseded = len(rows) - len(kept)
	return result, err
}

// write puts rows into the log and refreshes the profiles of their users.
func (a *Applier) write(ctx context.Context, app config.App, m bus.Message, rows []store.LogEvent) (Result, error) {
	outcome, err := a.Profiles.Apply(ctx, app, rows)
	if err != nil {
		return Result{}, halfway{err, app, rows}
	}
	return Result{
		Fate: Applied, App: app.ID, Kind: m.Kind, ReceivedAt: m.ReceivedAt, Events: outcome.Applied, Deleted: outcome.Deleted,
	}, nil
}

// unknownInLog reads the rows of some events. For each event that is in the log it
// returns how many objects the catalog did not know when the row was written.
// events says the same of the message.
//
// The row that knows more must stay: messages come in any order, and the first
// message of an event may come again long after its row was reenriched. Two
// messages that are applied at the same moment may still leave the row that knows
// less; the next re-enrichment finds it. A row of equal knowledge is written
// again, since the attempt that wrote it may have failed before the profile was
// refreshed.
func (a *Applier) unknownInLog(ctx context.Context, app config.App, events map[enrich.Place]int) (map[enrich.Place]int, error) {
	if len(events) == 0 {
		return nil, nil
	}
	ranges := make([]store.UserRange, 0, len(events))
	for at := range events {
		from, to := history.Pos{Time: at.Time, ID: at.ID}, history.Pos{Time: at.Time, ID: at.ID + "\x00"}
		ranges = append(ranges, store.UserRange{User: at.User, From: from, To: to})
	}
	slices.SortFunc(ranges, func(a, b store.UserRange) int {
		if c := store.UserOrder(a.User, b.User); c != 0 {
			return c
		}
		return a.From.Compare(b.From)
	})
	known := make(map[enrich.Place]int, len(events))
	err := a.Store.Log(app.ID, app.Log).ReadOriginals(ctx, ranges, func(user string, row store.LogRow, original []byte) error {
		at := enrich.Place{User: user, Time: row.Time, ID: row.ID}
		o, err := schema.ParseOriginal(original)
		if err != nil {
			o.UnknownObjects = events[at] // a row that cannot be read is written again
		}
		known[at] = o.UnknownObjects
		return nil
	})
	if err == nil {
		err = a.checkSchema(ctx, app)
	}
	if err != nil {
		return nil, fmt.Errorf("look for events in the log of %s: %w", app.ID, err)
	}
	return known, nil
}

// checkSchema returns profile.ErrSchemaChanged if the schemas of the log have
// changed since app was read: an event that one schema lacks may be in another.
func (a *Applier) checkSchema(ctx context.Context, app config.App) error {
	now, err := a.Config.App(ctx, app.ID)
	if err == nil && now.Log.Generation > app.Log.Generation {
		err = profile.ErrSchemaChanged
	}
	return err
}
