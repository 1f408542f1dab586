package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// accepted writes the events of a request to the log, with the filters that the
// message carries. Before that it gives those of calls the times of the first deliveries
// of these calls. If the message carries no filters, or those of earlier numeric bands, accepted
// reads them. It splits a message whose filters cost too much at a time.
//
// Two deliveries of an unresolved message may find other filters. The last write of
// a row replaces its filters, and its writer draws a ticket afterwards, so profiles
// agree with the log (rule 19 of functions/docs/design/rules.md).
func (a *Applier) accepted(ctx context.Context, m bus.Message) (Result, error) {
	app, err := a.app(ctx, m.App)
	if err != nil {
		return Result{}, err
	}
	events, err := m.Events()
	if err != nil {
		return Result{}, permanent{err}
	}
	if m.Calls {
		if err := a.Profiles.Remember(ctx, app, events); err != nil {
			return Result{}, err
		}
	}
	b := batch{n: len(events), event: func(i int) *event.Event { return &events[i] }}
	b.part = func(from, to int) (bus.Message, error) { return m.Part(events[from:to], from), nil }
	if all, split, err := a.prepare(ctx, app, &m, b); err != nil || !all {
		return split, err
	}
	rows := enrich.LogEvents(events, m.Resolution(), m.Receipt())
	for i := range rows {
		rows[i].Strong, rows[i].KeyID = m.Evidence == bus.StrongEvidence, m.Key
	}
	rows, withheld := enrich.Admit(app.Purposes, rows)
	incomplete := enrich.Incomplete(events, m.Objects)
	known, err := a.unknownInLog(ctx, app, incomplete)
	if err != nil {
		return Result{}, halfway{err, app, rows} // an earlier attempt may have written rows
	}
	kept, left := divide(rows, incomplete, known)
	for i := range left {
		delete(incomplete, enrich.PlaceOf(&left[i]))
	}
	result, err := a.write(ctx, app, m, kept, left)
	result.WithUnknownObjects = len(incomplete)
	result.Withheld += withheld
	if err == nil && a.Sample != nil {
		a.Sample(app.ID, app.Purposes, kept, result.Deleted+result.Refused+result.Withheld > 0)
	}
	return result, err
}

// prepare reads the filters of a message that carries none, or those of earlier numeric
// bands, and takes the memory of its rows. If they may not be in memory at once, it splits
// the message: all is false then, and the result that of the delivery.
func (a *Applier) prepare(ctx context.Context, app config.App, m *bus.Message,
	b batch) (all bool, split Result, err error) {
	if !m.Resolved || banded(app, *m) {
		n, err := a.resolve(ctx, m, b)
		if err != nil {
			return false, Result{}, err
		}
		if n < b.n {
			split, err = a.split(ctx, b, func(int) int { return n })
			return false, split, err
		}
	}
	b.objects = m.Objects
	if all, err = b.admit(ctx); err == nil && !all {
		split, err = a.splitByCost(ctx, b)
	}
	return all, split, err
}

// banded reports whether the numeric bands of an index have changed since the filters
// of a message were read. The row of its events in the log may already have those of the
// new bands.
func banded(app config.App, m bus.Message) bool {
	for index := range m.Objects {
		if m.Bands[index] < app.NumericBands[index].Version {
			return true
		}
	}
	return false
}

// resolve gives a message the filters that the catalog has for its events. An object
// that the catalog no longer has keeps the filters of the message. If the filters of all
// events are too many to be in memory, resolve changes nothing. It returns the number of
// the first events whose filters may be.
func (a *Applier) resolve(ctx context.Context, m *bus.Message, b batch) (int, error) {
	events := make([]event.Event, b.n)
	for i := range events {
		events[i] = *b.event(i)
	}
	known, n, err := a.Catalog.ResolveFirst(ctx, m.App, events)
	if err != nil || n < len(events) {
		return n, err
	}
	for index, objects := range m.Objects {
		for id, filters := range objects {
			if _, ok := known.Objects[index][id]; !ok {
				known.Objects.Put(index, id, filters)
			}
		}
	}
	m.Objects, m.Bands = known.Objects, known.Bands
	return n, nil
}

// divide divides the rows of a message into those to write, and those whose row in the
// log knows more objects of the event. unknown holds the number of objects that the
// message does not know, known that of the rows in the log.
func divide(rows []store.LogEvent, unknown, known map[enrich.Place]int) (kept, left []store.LogEvent) {
	for i := range rows {
		at := enrich.PlaceOf(&rows[i])
		if n, ok := known[at]; ok && n < unknown[at] {
			left = append(left, rows[i])
		} else {
			kept = append(kept, rows[i])
		}
	}
	return kept, left
}

// reenriched writes logged events to their rows again, with the filters of
// objects that were unknown before, or those of new numeric bands.
func (a *Applier) reenriched(ctx context.Context, m bus.Message) (Result, error) {
	app, err := a.app(ctx, m.App)
	if err != nil {
		return Result{}, err
	}
	logged, err := m.Logged()
	if err != nil {
		return Result{}, permanent{err}
	}
	b := batch{n: len(logged), event: func(i int) *event.Event { return &logged[i].Event }}
	b.part = func(from, to int) (bus.Message, error) { return m.LoggedPart(logged[from:to]) }
	if all, split, err := a.prepare(ctx, app, &m, b); err != nil || !all {
		return split, err
	}
	rows := enrich.Relogged(logged, m.Resolution())
	unknown := make(map[enrich.Place]int, len(rows))
	for i := range rows {
		unknown[enrich.PlaceOf(&rows[i])] = enrich.UnknownObjects(&logged[i].Event, m.Objects)
	}
	known, err := a.unknownInLog(ctx, app, unknown)
	if err != nil {
		return Result{}, halfway{err, app, rows} // an earlier attempt may have written rows
	}
	kept, left := divide(rows, unknown, known)
	kept = slices.DeleteFunc(kept, func(e store.LogEvent) bool {
		_, ok := known[enrich.PlaceOf(&e)]
		return !ok // deleted
	})
	result, err := a.write(ctx, app, m, kept, left)
	result.Superseded = len(rows) - len(kept)
	return result, err
}

// write writes rows to the log and refreshes the profiles of their users. left are rows
// that the message leaves as they are in the log. The delivery that wrote them may have
// ended before it refreshed their users, so write marks those.
func (a *Applier) write(ctx context.Context, app config.App, m bus.Message, rows,
	left []store.LogEvent) (Result, error) {
	if len(left) > 0 {
		if err := a.Profiles.Abandon(ctx, app, left); err != nil {
			return Result{}, halfway{err, app, slices.Concat(rows, left)}
		}
	}
	outcome, err := a.Profiles.Apply(ctx, app, rows)
	if err != nil {
		return Result{}, halfway{err, app, rows}
	}
	if a.Warehouse != nil {
		if err := a.Warehouse(ctx, app, rows, outcome.Deleted+outcome.Refused+outcome.Withheld > 0); err != nil {
			return Result{}, fmt.Errorf("publish rows to the warehouse: %w", err)
		}
	}
	return Result{
		Fate: Applied, App: app.ID, Kind: m.Kind, ReceivedAt: m.ReceivedAt, Lane: m.Lane,
		Events: outcome.Applied, Deleted: outcome.Deleted, Refused: outcome.Refused, Superseded: len(left),
		Ahead: outcome.Ahead, Withheld: outcome.Withheld,
	}, nil
}

// unknownInLog reads the rows of events. For each event that is in the log, it
// returns the number of objects that were unknown when the row was written.
// events holds these numbers for the message.
//
// The row with fewer unknown objects must stay: messages arrive in any order,
// and the first message of an event may be delivered again long after its row
// was re-enriched. Two messages that are applied at the same moment may still
// leave the other row; the next re-enrichment finds it. A row with the same
// number is written again, because the attempt that wrote it may have failed
// before it refreshed the profile.
func (a *Applier) unknownInLog(ctx context.Context, app config.App,
	events map[enrich.Place]int) (map[enrich.Place]int, error) {
	if len(events) == 0 {
		return nil, nil
	}
	rows, err := enrich.Rows(ctx, a.Profiles, app, maps.Keys(events))
	if err == nil {
		err = a.checkSchema(ctx, app)
	}
	if err != nil {
		return nil, fmt.Errorf("read events in the log of %s: %w", app.ID, err)
	}
	known := make(map[enrich.Place]int, len(rows))
	for at, row := range rows {
		known[at] = row.UnknownObjects
		if row.Damaged {
			known[at] = events[at] // a row that cannot be read is written again
		}
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
