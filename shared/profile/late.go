package profile

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// maxReopens bounds how often one message uncovers a user's blocks. Each time a
// fold covered them anew.
const maxReopens = 50

// change is what gives a manifest its next version. With the ticket of who
// changes it, which nobody else has, the version never comes again.
type change int64

const (
	reopened change = iota
	announced
	committed
	trimmed
	changes
)

// version of a manifest that is changed under a ticket.
func version(ticket int64, c change) int64 { return ticket*int64(changes) + int64(c) }

// position is an event's place in the log.
func position(ev *store.LogEvent) history.Pos {
	return history.Pos{Time: max(ev.Time, 0), ID: ev.ID}
}

// ticket draws a ticket at which all of a user's events given are outside the
// blocks. An event in a range that a block covers, or that a fold has announced,
// came late: the range is uncovered first, and the ticket drawn after that, since
// only then will whoever reads see the event.
func (e *Engine) ticket(ctx context.Context, appID string, w *work, events []history.Pos) error {
	for range maxReopens {
		row, err := e.store.TakeTicket(ctx, appID, w.user)
		if err != nil {
			return err
		}
		if err := e.adopt(ctx, appID, w, row); err != nil {
			return err
		}
		next, late := uncovered(w.manifest, row.DeletedUntil, events)
		if !late {
			return nil
		}
		e.counters.Reopened.Add(1)
		next.Version = version(row.Ticket, reopened)
		if _, err := e.store.SwapManifest(ctx, appID, w.user, w.manifest.Version, next.AppendBinary(nil)); err != nil {
			return err
		}
	}
	return fmt.Errorf("uncover the history of %s,%s: covered again %d times meanwhile", appID, w.user, maxReopens)
}

// uncovered is the manifest without the ranges that hold one of the events, or
// that reach to what is deleted, and whether there are any.
func uncovered(m history.Manifest, deletedUntil int64, events []history.Pos) (history.Manifest, bool) {
	late := func(r history.Range) bool {
		if deletedUntil != 0 && r.From.Time <= deletedUntil {
			return true // left over from before the deletion
		}
		for _, p := range events {
			if (deletedUntil == 0 || p.Time > deletedUntil) && r.From.Compare(p) <= 0 && p.Compare(r.To) < 0 {
				return true
			}
		}
		return false
	}
	next := m.Without(func(b history.Block) bool { return late(b.Range) })
	changed := len(next.Blocks) < len(m.Blocks)
	if m.Announced != nil && late(m.Announced.Range) {
		next.Announced, next.Complete, changed = nil, 0, true
	}
	return next, changed
}

// uncoverBlocks takes blocks out of a user's manifest.
func (e *Engine) uncoverBlocks(ctx context.Context, appID, user string, which func(history.Block) bool) error {
	row, err := e.store.TakeTicket(ctx, appID, user)
	if err != nil {
		return err
	}
	w := &work{user: user}
	if err := e.adopt(ctx, appID, w, row); err != nil {
		return err
	}
	if w.damaged {
		_, err := e.replaceManifest(ctx, appID, w)
		return err
	}
	next := w.manifest.Without(which)
	if len(next.Blocks) == len(w.manifest.Blocks) {
		return nil
	}
	next.Version = version(row.Ticket, reopened)
	_, err = e.store.SwapManifest(ctx, appID, user, w.manifest.Version, next.AppendBinary(nil))
	return err
}

// replaceManifest puts an empty manifest in the place of one that cannot be read,
// which has no version to change it by. It reports whether it did: another ticket
// may have been drawn since.
func (e *Engine) replaceManifest(ctx context.Context, appID string, w *work) (bool, error) {
	empty := history.Manifest{Version: version(w.row.Ticket, reopened)}
	done, err := e.store.CommitFold(ctx, appID, w.user, w.row.Ticket, empty.AppendBinary(nil))
	if done {
		w.manifest, w.damaged = empty, false
	}
	return done, err
}
