package process

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/enrich"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// reenrich puts events in the place of their rows in the log, with the filters of
// objects that the catalog has learned of since, and refreshes their users as for
// any other event.
func (p process) reenrich(ctx context.Context, app config.App, m bus.Message, logged []bus.Logged) error {
	entries := enrich.Relogged(logged, m.Objects)
	unknown := make(map[enrich.Place]int, len(entries))
	for i := range entries {
		unknown[enrich.PlaceOf(&entries[i])] = enrich.UnknownObjects(&logged[i].Event, m.Objects)
	}
	known, err := p.known(ctx, app, unknown)
	if err != nil {
		return halfway{err, app, entries} // an earlier attempt may have come further
	}
	all := len(entries)
	entries = slices.DeleteFunc(entries, func(e store.LogEvent) bool {
		at := enrich.PlaceOf(&e)
		n, there := known[at]
		return !there || n < unknown[at] // deleted since, or a newer message was quicker
	})
	outcome, err := p.Profiles.Apply(ctx, app, entries)
	if err != nil {
		return halfway{err, app, entries}
	}
	p.count("reenriched", outcome, all-len(entries))
	p.Log.LogAttrs(ctx, slog.LevelInfo, "events reenriched", slog.String("app", app.ID), slog.Int("events", outcome.Applied),
		slog.Int("deleted", outcome.Deleted), slog.Int("superseded", all-len(entries)))
	return nil
}

// known reads which of some events are in the log, and how many of the objects of
// each the catalog did not know when its row was written. A row that knows more
// than a message stays: messages come in any order, and the first one of an event
// may come again long after it was reenriched. Two that are applied at the same
// moment may still leave the row that knows less, which the next re-enrichment
// finds. A row of the same knowledge is written again, since the last attempt may
// have ended before its profile was.
func (p process) known(ctx context.Context, app config.App, events map[enrich.Place]int) (map[enrich.Place]int, error) {
	if len(events) == 0 {
		return nil, nil
	}
	spans := make([]store.UserRange, 0, len(events))
	for at := range events {
		spans = append(spans, store.UserRange{User: at.User, From: history.Pos{Time: at.Time, ID: at.ID}, To: history.Pos{Time: at.Time, ID: at.ID + "\x00"}})
	}
	slices.SortFunc(spans, func(a, b store.UserRange) int {
		if c := store.UserOrder(a.User, b.User); c != 0 {
			return c
		}
		return a.From.Compare(b.From)
	})
	known := make(map[enrich.Place]int, len(events))
	err := p.Store.Log(app.ID, app.Log).ReadOriginals(ctx, spans, func(user string, row store.LogRow, original []byte) error {
		at := enrich.Place{User: user, Time: row.Time, ID: row.ID}
		o, err := schema.ParseOriginal(original)
		if err != nil {
			o.UnknownObjects = events[at] // what cannot be read is written anew
		}
		known[at] = o.UnknownObjects
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for events in the log of %s: %w", app.ID, err)
	}
	now, err := p.CachedConfig.App(ctx, app.ID)
	if err == nil && now.Log.Generation > app.Log.Generation {
		err = profile.ErrSchemaChanged // what is not there may be elsewhere
	}
	if err != nil {
		return nil, fmt.Errorf("look for events in the log of %s: %w", app.ID, err)
	}
	return known, nil
}
