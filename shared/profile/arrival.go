package profile

import (
	"context"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// arrive appends an event that has arrived at a user's log, unless the row excludes it. It returns false if the row
// does not tell, or it may not count yet.
func (d *adder) arrive(to []affinity.Arrival, row store.User, view *consent.View, cell *links.Cell,
	e *store.LogEvent, now int64) ([]affinity.Arrival, bool) {
	if row.Excludes(e.Type, e.Time, math.MaxInt64) || !view.Keeps(e.Type, e.Name, e.Time, math.MaxInt64) {
		return to, true // whatever its receipt
	}
	receipt := e.ReceivedAt()
	if row.Excludes(e.Type, e.Time, receipt) || cell.Dropped(e.Time, receipt) {
		return to, false // another delivery of it may count, and has the filters of this one now
	}
	time := position(e).Time
	if time > now+d.reach() {
		return to, false
	}
	arrived := affinity.Event{
		Time: time, Type: e.Type, Name: e.Name, Counts: e.Counts, Index: e.Index, ObjectIDs: e.ObjectIDs,
	}
	if view != nil && view.Unclear(time, time+1) {
		return to, false // so may another delivery, for more purposes
	}
	counts, kept := view.Counts(arrived, receipt)
	if arrived.Counts = counts; !kept {
		return to, false
	}
	return append(to, affinity.Arrival{ID: e.ID, Event: arrived}), true
}

// arriveFrom is arrive of an event of an anonymous token whose row has been read after the ticket of the known user. It
// returns false, too, if the event does not count for the user by that row, or a block covers it.
func (d *adder) arriveFrom(ctx context.Context, app config.App, to []affinity.Arrival, known *user, list *links.Cell,
	e *store.LogEvent, row store.User, now int64) ([]affinity.Arrival, bool) {
	if listed, shut := list.Lists(e.User); !listed || shut {
		return to, false
	}
	m, err := d.memberOf(ctx, app, known, e.User, row, links.Open)
	if m == nil || err != nil || m.damaged {
		return to, false // the computation reports it
	}
	holds := slices.ContainsFunc(m.intervals, func(i links.Interval) bool { return i.Holds(e.Time) })
	if _, covered := uncover(m.manifest, m.row.Tombstone(), []history.Pos{position(e)}); !holds || covered {
		return to, false
	}
	view, _ := app.Purposes.Of(m.consents, consent.Kept, 0)
	return d.arrive(to, m.row, view, &m.cell, e, now)
}
