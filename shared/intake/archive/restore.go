package archive

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// Event is an event to restore.
type Event struct {
	Row store.LogEvent
	// unresolved is the event if its filters have to be read from the catalog.
	unresolved *event.Event
	// unknown is of how many of its objects the filters are not known.
	unknown int
	// call is the event if it is a call, whose time is remembered.
	call *event.Event
}

// Decode decodes a line that is restored now. The errors say what is wrong with it.
func Decode(l *api.ExportedEvent, now time.Time) (Event, error) {
	row, e, err := export.Restored(l, now)
	if err != nil {
		return Event{}, err
	}
	restored := Event{Row: row, unknown: l.UnknownObjects}
	if !l.Unresolved && !l.Call {
		return restored, nil
	}
	decoded := e // on the heap, where few events are
	if l.Unresolved {
		restored.unresolved, restored.unknown = &decoded, len(e.ObjectIDs)
	}
	if l.Call {
		decoded.Time, decoded.Received = l.Time, false
		restored.call = &decoded
	}
	return restored, nil
}

// Catalog looks up the filters of the objects of events, as apply.Catalog does.
type Catalog interface {
	ResolveFirst(ctx context.Context, appID string, events []event.Event) (bus.Resolution, int, error)
}

// Profiles writes the log and keeps profiles consistent with it.
type Profiles interface {
	enrich.Holder
	States(ctx context.Context, app config.App, users []string) (map[string]store.User, error)
	Import(ctx context.Context, app config.App, events []store.LogEvent) (profile.Outcome, error)
	Abandon(ctx context.Context, app config.App, events []store.LogEvent) error
	CheckSchema(ctx context.Context, app config.App) error
	Remember(ctx context.Context, app config.App, events []event.Event) error
}

// Restorer writes archived events to the log. All of its fields must be set.
type Restorer struct {
	Catalog  Catalog
	Store    *store.Store
	Profiles Profiles
	// Written is given the rows that are in the log, also those that were there before: the request that wrote
	// them may have ended early. The outcome says whether some are of deleted users.
	Written func(ctx context.Context, app config.App, events []store.LogEvent, outcome profile.Outcome) error
}

// Outcome counts restored events by their fate.
type Outcome struct {
	profile.Outcome
	// Present counts the events that the log had, with as many known objects.
	Present int
}

// Restore writes events to the log, but those that it has. After an error, some may be
// written; restoring all again completes them.
func (r *Restorer) Restore(ctx context.Context, app config.App, events []Event) (all Outcome, err error) {
	given := len(events)
	if err := r.remember(ctx, app, events); err != nil {
		return all, err
	}
	events = best(events)
	rows, err := r.present(ctx, app, events)
	if err != nil {
		return all, fmt.Errorf("read events in the log of %s: %w", app.ID, err)
	}
	var present []store.LogEvent
	missing := slices.DeleteFunc(events, func(e Event) bool {
		row, ok := rows[enrich.PlaceOf(&e.Row)]
		ok = ok && !row.Damaged && row.UnknownObjects <= e.unknown
		if ok {
			present = append(present, e.Row)
		}
		return ok
	})
	all.Present = given - len(missing)
	n := len(missing)
	missing = slices.DeleteFunc(missing, func(e Event) bool {
		return app.Purposes.Denies(e.Row.Denied, e.Row.Type, e.Row.Name)
	})
	all.Withheld = n - len(missing)
	// The request that wrote these rows may have ended before it marked their users.
	if len(present) > 0 {
		if err := r.Profiles.Abandon(ctx, app, present); err != nil {
			return all, err
		}
		if err := r.Written(ctx, app, present, profile.Outcome{Deleted: len(present)}); err != nil { // perhaps deleted
			return all, err
		}
	}
	for len(missing) > 0 {
		n, err := r.resolve(ctx, app.ID, missing)
		if err != nil {
			return all, err
		}
		part := make([]store.LogEvent, n)
		for i := range part {
			part[i] = missing[i].Row
			missing[i] = Event{}
		}
		outcome, err := r.Profiles.Import(ctx, app, part)
		if err == nil {
			err = r.Written(ctx, app, part, outcome)
		}
		if err != nil {
			return all, err
		}
		all.Add(outcome)
		missing = missing[n:]
	}
	return all, nil
}

// present returns the rows of events that the log has. It looks for those of users who have a
// row: every event that was acknowledged has drawn a ticket there. An event of another user whose
// writer died before that is as if it never was.
func (r *Restorer) present(ctx context.Context, app config.App, events []Event) (map[enrich.Place]enrich.Row, error) {
	users := make(map[string]struct{}, len(events))
	for i := range events {
		users[events[i].Row.User] = struct{}{}
	}
	known, err := r.Profiles.States(ctx, app, slices.Collect(maps.Keys(users)))
	if err != nil || len(known) == 0 {
		return nil, err
	}
	rows, err := enrich.Rows(ctx, r.Profiles, app, func(yield func(enrich.Place) bool) {
		for i := range events {
			if _, ok := known[events[i].Row.User]; ok && !yield(enrich.PlaceOf(&events[i].Row)) {
				return
			}
		}
	})
	if err == nil {
		err = r.Profiles.CheckSchema(ctx, app)
	}
	return rows, err
}

// remember moves the events of calls to the times of the first deliveries of these calls.
func (r *Restorer) remember(ctx context.Context, app config.App, events []Event) error {
	var calls []event.Event
	var at []int
	for i := range events {
		if e := events[i].call; e != nil {
			calls, at = append(calls, *e), append(at, i)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if err := r.Profiles.Remember(ctx, app, calls); err != nil {
		return err
	}
	for i, e := range calls {
		restored := &events[at[i]]
		if restored.Row.Call = e.Call; restored.Row.Time == e.Time {
			continue
		}
		if err := restored.Row.MoveTo(&e); err != nil {
			return err
		}
		if restored.unresolved != nil {
			restored.unresolved = &calls[i]
		}
	}
	return nil
}

// resolve gives the first of events their filters, as many as may be in memory at a
// time, and returns their number.
func (r *Restorer) resolve(ctx context.Context, app string, events []Event) (int, error) {
	var unresolved []event.Event
	var at []int
	for i := range events {
		if e := events[i].unresolved; e != nil {
			unresolved, at = append(unresolved, *e), append(at, i)
		}
	}
	if len(unresolved) == 0 {
		return len(events), nil
	}
	ctx, leave := admission.Process().Enter(ctx)
	defer leave()
	known, n, err := r.Catalog.ResolveFirst(ctx, app, unresolved)
	if err != nil {
		return 0, err
	}
	for i, place := range at[:n] {
		row := &events[place].Row
		*row = enrich.Relogged([]bus.Logged{{User: row.User, Time: row.Time, ID: row.ID, ReceivedAt: row.Receipt,
			Event: unresolved[i]}}, known)[0]
	}
	if n < len(at) {
		return at[n], nil
	}
	return len(events), nil
}

// best returns each event once, in the write that knows most of its objects.
func best(events []Event) []Event {
	at, all := make(map[enrich.Place]int, len(events)), make([]Event, 0, len(events))
	for _, e := range events {
		place := enrich.PlaceOf(&e.Row)
		if i, ok := at[place]; !ok {
			at[place] = len(all)
			all = append(all, e)
		} else if e.unknown < all[i].unknown {
			all[i] = e
		}
	}
	return all
}
