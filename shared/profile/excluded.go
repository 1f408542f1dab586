package profile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
)

// concurrency (ms) is for how long a message may wait before it is applied: Pub/Sub keeps it
// for 7 days.
const concurrency = 7 * 24 * int64(time.Hour/time.Millisecond)

// dropExcluded removes events from the log that are deleted, of types that their users
// have opted out of, or that count for no purpose: their users did so before these events were written, or while.
// No profile counted them in between. An event stays if another delivery of it, received
// later, has written its row.
func (w *writer) dropExcluded(ctx context.Context, app config.App, events []store.LogEvent, of drawn) (Outcome, error) {
	rows := of.rows
	var o Outcome
	var dropped, unkept []store.LogEvent
	now := w.now().UnixMilli()
	dead, cells := deadOf{}, linkCells(app.ID, rows)
	kept, err := views(app, rows)
	if err != nil {
		return Outcome{}, err
	}
	for i := range events {
		e, row := &events[i], rows[events[i].User]
		if out, dropped := of.named[e]; dropped {
			o.countNamed(out)
			continue
		}
		if cell := cells[e.User]; cell != nil && dead.add(cell, e) {
			o.Deleted++
			continue
		}
		receipt := e.ReceivedAt()
		later, covered := e.Time > now+w.reach(), row.Deleted().Covers(e.Time, receipt)
		if later || covered && row.Settled {
			o.Ahead++
		}
		switch {
		case row.OptedOut.Has(e.Type):
			o.Refused++
		case covered, later && row.ReceivedUntil > now-concurrency: // perhaps received before the deletion
			o.Deleted++
		case !kept[e.User].Keeps(e.Type, e.Name, e.Time, receipt):
			o.Withheld++
			unkept = append(unkept, *e)
			continue
		default:
			o.Applied++
			continue
		}
		dropped = append(dropped, *e)
	}
	err = w.logs.of(app).DropExcluded(ctx, dropped, func(user string) store.User { return rows[user] })
	if err == nil && len(unkept) > 0 {
		err = w.logs.of(app).DropExcluded(ctx, unkept, func(user string) store.User { return excludingAll(rows[user]) })
	}
	if err == nil {
		err = dead.drop(ctx, w.logs.of(app))
	}
	if err != nil {
		return Outcome{}, err
	}
	return o, nil
}

// abandon marks the users of events that may be in the log, and drops what does not
// count.
func (w *writer) abandon(ctx context.Context, app config.App, events []store.LogEvent) error {
	of, err := w.mark(ctx, app, withoutEvidence(events))
	faulty, ok := errors.AsType[Faulty](err)
	if err != nil && !ok {
		return err
	}
	if _, err := w.dropExcluded(ctx, app, events, of); err != nil {
		return err
	}
	return faulty.orNil()
}

// linkCells returns the links of the users who have any. Links that do not parse are left out: the
// computation of the user reports them.
func linkCells(appID string, rows map[string]store.User) map[string]*links.Cell {
	var cells map[string]*links.Cell
	for token, row := range rows {
		if len(row.Links) == 0 {
			continue
		}
		if cell, err := linksOf(appID, token, row); err == nil {
			if cells == nil {
				cells = map[string]*links.Cell{}
			}
			cells[token] = &cell
		}
	}
	return cells
}

// withoutEvidence returns the events of a message that is given up, which link nobody.
func withoutEvidence(events []store.LogEvent) []store.LogEvent {
	events = slices.Clone(events)
	for i := range events {
		events[i].Known = ""
	}
	return events
}
