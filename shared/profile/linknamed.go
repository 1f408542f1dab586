package profile

import (
	"context"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// An event that names a known user is theirs, too. If their row excludes it, it is dropped, whether or not it
// links its token to them: so a user who is out, or was deleted, leaves nothing under the token of a device.

// naming are events that were dropped because of the known users whom they name. The value says
// whether the user has opted out, or was deleted.
type naming map[*store.LogEvent]bool

// with returns the events of both, and changes neither: all messages of a flight read its naming.
func (n naming) with(more naming) naming {
	if len(n) == 0 {
		return more
	}
	all := maps.Clone(n)
	maps.Copy(all, more)
	return all
}

// countNamed counts such an event.
func (o *Outcome) countNamed(out bool) {
	if out {
		o.Refused++
	} else {
		o.Deleted++
	}
}

// naming returns the events that name a known user whose row excludes them. Evidence from before an
// unlink of the two says nothing of the user any more.
func (f *following) naming(known string, row store.User) []*store.LogEvent {
	var all []*store.LogEvent
	for _, e := range f.events {
		if e.Known == known && row.Excludes(e.Type, e.Time, e.ReceivedAt()) && e.ReceivedAt() > f.cell.UnlinkedUntil(known) {
			all = append(all, e)
		}
	}
	return all
}

// dropRefused records that the evidence of an event was refused, and drops the events that name the same
// user if the row of that user excludes them. The ticket of the user decides: a change of their opt-out
// comes before it, or reads the log after it. False means that the token's links may have changed.
func (f *following) dropRefused(ctx context.Context, e *store.LogEvent) (bool, error) {
	known := e.Known
	row, err := f.rowOf(ctx, f.app, known)
	if err != nil {
		return false, err
	}
	f.refuse(evidenceOf(e), exclusionOf(row))
	if len(f.naming(known, row)) == 0 {
		return true, nil
	}
	to, err := f.drawLinked(ctx, f.app, known, false, nil)
	if err != nil {
		return false, err
	}
	return true, f.drop(ctx, known, to.row)
}

// errLeaving reports that an event must be dropped from a log that is being copied. Another delivery drops it once the
// token has arrived.
var errLeaving error = leaving{}

type leaving struct{}

func (leaving) Error() string {
	return "the token is about to move to another region, where an event of it is dropped; try again"
}

// Transient says that another delivery may succeed.
func (leaving) Transient() bool { return true }

// dropNamed removes events of the token that row excludes, while its log is not being copied: the row of the token says
// nothing of them, so nobody would remove what a copy has brought back. The log of the region that the token has left
// may hold them, too.
func (f *following) dropNamed(ctx context.Context, events []store.LogEvent, row store.User) error {
	if f.row.Owner.State == store.Leaving {
		return errLeaving
	}
	both, err := logsAnywhere(f.app, f.at)
	if err != nil {
		return err
	}
	for _, at := range both {
		if err := at.logs.of(f.app).DropExcluded(ctx, events, func(string) store.User { return row }); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the events that name a known user and that the row of a ticket of theirs excludes. A reader may have
// counted one for its own token, or for another user that this is linked to, and a fold may have packed it. So
// these are marked afterwards, and its place is uncovered.
func (f *following) drop(ctx context.Context, known string, row store.User) error {
	events := f.naming(known, row)
	if len(events) == 0 {
		return nil
	}
	dropped, at := make([]store.LogEvent, len(events)), make([]history.Pos, len(events))
	for i, e := range events {
		dropped[i], at[i] = *e, position(e)
	}
	if err := f.dropNamed(ctx, dropped, row); err != nil {
		return err
	}
	own, err := f.drawLinked(ctx, f.app, f.token, true, at)
	if err != nil {
		return err
	}
	if own.at != f.at || own.row.Owner != f.row.Owner {
		return errLeaving // a copy of the log may have begun before the drop
	}
	cell, err := linksOf(f.app.ID, f.token, own.row)
	if err != nil {
		return err
	}
	if err := own.list(ctx, f.app, f.token); err != nil {
		return err
	}
	var holders []string
	for _, e := range events {
		holders = append(holders, cell.Holders(e.Time, exclusionOf(own.row))...)
	}
	for _, holder := range distinct(holders) {
		if _, err := f.mark(ctx, f.app, holder); err != nil {
			return err
		}
	}
	if f.named == nil {
		f.named = naming{}
	}
	for _, e := range events {
		f.named[e] = row.OptedOut.Has(e.Type)
	}
	f.events = slices.DeleteFunc(f.events, func(e *store.LogEvent) bool { return slices.Contains(events, e) })
	return nil
}
