package profile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// Messages of an app that moves. They go from region to region, and share no flight with
// others: a ticket may lead each of them elsewhere. Write windows wait until the app rests.

// visit is what a message has to do in one region.
type visit struct {
	events []store.LogEvent
	log    bool             // write the events; otherwise they may be in the log
	need   map[string]int64 // the epochs that the rows of users must have reached
}

// ownedWork does the work of a message for users who are owned in a region, at tickets that count.
// A user of whom another ticket says that they have moved on has a fault of type elsewhere.
type ownedWork func(ctx context.Context, at *Engine, app config.App, users []*user,
	events map[string]own) (drawn, error)

func (e enRoute) apply(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	return e.write(ctx, app, e.writer.linker.judge(app, events), true, refreshOwned)
}

func (e enRoute) importEvents(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	return e.write(ctx, app, e.writer.linker.judge(app, events), true, markOwned)
}

func (e enRoute) abandon(ctx context.Context, app config.App, events []store.LogEvent) error {
	_, err := e.write(ctx, app, withoutEvidence(events), false, markCopied)
	return err
}

// write draws tickets for the users of events in the regions where they are owned,
// and calls do there. With log it writes the events to the log first. The
// engine of the entry is asked first for all of them.
func (e enRoute) write(ctx context.Context, app config.App, events []store.LogEvent, log bool,
	do ownedWork) (Outcome, error) {
	visits, err := e.firstVisits(ctx, app, events, log)
	if err != nil {
		return Outcome{}, err
	}
	total, failed := Outcome{}, Faulty{}
	for range maxHops {
		next := map[*Engine]visit{}
		for at, v := range visits {
			done, err := at.visit(ctx, app, v, do, next)
			faulty, ok := errors.AsType[Faulty](err)
			if err != nil && !ok {
				return Outcome{}, err
			}
			for token, err := range faulty {
				failed[token] = err
			}
			total.Add(done)
		}
		if len(next) == 0 {
			return total, failed.orNil()
		}
		visits = next
	}
	return Outcome{}, errHops
}

// visit does what a message has to do in the region of e. To next it adds the users who
// are owned elsewhere, with their events.
func (e *Engine) visit(ctx context.Context, app config.App, v visit, do ownedWork,
	next map[*Engine]visit) (Outcome, error) {
	refused := Faulty{}
	if v.log {
		var err error
		if _, refused, err = e.logs.append(ctx, app, v.events); err != nil {
			return Outcome{}, err
		}
	}
	events := owns(v.events, refused)
	if !v.log {
		if err := e.copyOn(ctx, app, v, events); err != nil {
			return Outcome{}, err
		}
	}
	users, err := e.drawOwned(ctx, app, v, events)
	if err != nil {
		return Outcome{}, err
	}
	moved := map[string]elsewhere{}
	of, err := do(ctx, e, app, withoutMoved(users, moved), events)
	faulty, ok := errors.AsType[Faulty](err)
	if err != nil && !ok {
		return Outcome{}, err
	}
	for token, fault := range faulty {
		if m, ok := errors.AsType[elsewhere](fault); ok {
			moved[token] = m
			delete(faulty, token)
		}
	}
	here := make([]store.LogEvent, 0, len(v.events))
	done := drawn{of.rows, naming{}}
	for i := range v.events {
		ev := &v.events[i]
		if m, gone := moved[ev.User]; gone {
			delete(refused, ev.User) // the other region decides
			if err := e.sendOn(next, v, *ev, m); err != nil {
				return Outcome{}, err
			}
		} else if faulty[ev.User] == nil {
			here = append(here, *ev)
			if out, dropped := of.named[ev]; dropped {
				done.named[&here[len(here)-1]] = out
			}
		}
	}
	if err := e.dropBoth(ctx, app, here, of.rows); err != nil {
		return Outcome{}, err
	}
	if err := e.forgetElsewhere(ctx, app, here, of.rows); err != nil {
		return Outcome{}, err
	}
	outcome, err := e.writer.outcome(ctx, app, here, done, refused)
	if err == nil {
		err = faulty.orNil()
	}
	return outcome, err
}

// sendOn adds an event to the visit of the region that owns its user.
func (e *Engine) sendOn(next map[*Engine]visit, v visit, ev store.LogEvent, m elsewhere) error {
	to, err := e.env.in(m.region)
	if err != nil {
		return err
	}
	n, ok := next[to]
	if !ok {
		n = visit{log: v.log, need: map[string]int64{}}
	}
	n.events, n.need[ev.User] = append(n.events, ev), m.epoch
	next[to] = n
	return nil
}

// copyOn copies the events of users whom a visit to the other region has sent here. They
// may be in the log there alone.
func (e *Engine) copyOn(ctx context.Context, app config.App, v visit, events map[string]own) error {
	if len(v.need) == 0 {
		return nil
	}
	others, err := e.env.others(app)
	if err != nil {
		return err
	}
	for _, from := range others {
		for token, own := range events {
			if err := from.relogCopies(app, token, own.events)(ctx, e, store.User{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropBoth removes events that are excluded from the log of the region to which their users
// are about to move. They may have been written there before they were excluded. Those that are dead it removes from
// the log of the other region, wherever their users move.
func (e *Engine) dropBoth(ctx context.Context, app config.App, events []store.LogEvent,
	rows map[string]store.User) error {
	excluded, dead, cells := map[string][]store.LogEvent{}, deadOf{}, linkCells(app.ID, rows)
	for _, ev := range events {
		if cell := cells[ev.User]; cell != nil && dead.add(cell, &ev) {
			continue
		}
		if row := rows[ev.User]; row.Owner.State == store.Leaving && row.Excludes(ev.Type, ev.Time, ev.ReceivedAt()) {
			excluded[row.Owner.Region] = append(excluded[row.Owner.Region], ev)
		}
	}
	for region, some := range excluded {
		to, err := e.env.in(region)
		if err == nil {
			err = to.logs.of(app).DropExcluded(ctx, some, func(user string) store.User { return rows[user] })
		}
		if err != nil {
			return err
		}
	}
	if len(dead) == 0 {
		return nil
	}
	others, err := e.env.others(app)
	for _, to := range others {
		if err == nil {
			err = dead.drop(ctx, to.logs.of(app))
		}
	}
	return err
}

// withoutMoved takes out the users who are owned elsewhere, and adds them to moved.
func withoutMoved(users []*user, moved map[string]elsewhere) []*user {
	here := users[:0]
	for _, u := range users {
		if m, ok := errors.AsType[elsewhere](u.fault); ok {
			moved[u.token] = m
		} else {
			here = append(here, u)
		}
	}
	return here
}

// drawOwned draws a ticket for each user, at which no block covers the user's events.
func (e *Engine) drawOwned(ctx context.Context, app config.App, v visit, events map[string]own) ([]*user, error) {
	at := make(map[string][]history.Pos, len(events))
	for token, own := range events {
		at[token] = own.at
	}
	return e.writer.tickets.drawEach(ctx, app.ID, at, e.owned(app, v.log, v.need, events))
}

// owned returns what draws the tickets of users with their events. logged says that the log
// holds them; otherwise it may.
func (e *Engine) owned(app config.App, logged bool, need map[string]int64, events map[string]own) taker {
	return func(ctx context.Context, _, token string) (store.User, error) {
		log := relogEvents(app, events[token].events)
		if !logged {
			log = e.relogCopies(app, token, events[token].events)
		}
		take := e.env.store.Users.TakeOwned
		if app.Identity.On() {
			take = e.env.store.Users.TakeOwnedLinks
		}
		return e.takeOwned(ctx, app, token, need[token], log, take)
	}
}

// follow brings the events of users to the known users for whom they count, by marks: the next reader computes these.
// A user may be owned in another region by then.
func (e *Engine) follow(ctx context.Context, app config.App, users []*user, events map[string]own,
	logged bool) (naming, error) {
	draw := func(ctx context.Context, token string, events own) (*user, error) {
		u := &user{token: token}
		take := e.owned(app, logged, nil, map[string]own{token: events})
		return u, e.writer.tickets.drawWith(ctx, app.ID, u, events.at, take)
	}
	return e.writer.followAll(ctx, app, users, events, e.writer.linker.deliverMark, draw)
}

// refreshOwned writes the profiles of users at their tickets.
func refreshOwned(ctx context.Context, at *Engine, app config.App, users []*user,
	events map[string]own) (drawn, error) {
	places, err := at.writer.takePlaces(ctx, at.writer.refreshed, len(users))
	if err != nil {
		return drawn{}, err
	}
	defer places.leave(int64(at.writer.most))
	rows, faulty := make(map[string]store.User, len(users)), Faulty{}
	var living []*user
	for _, u := range users {
		rows[u.token] = u.row
		if !u.row.Gone() {
			living = append(living, u)
		}
	}
	named, err := at.follow(ctx, app, living, events, true)
	if err != nil {
		return drawn{}, err
	}
	if len(named) > 0 {
		events = maps.Clone(events)
		for token, own := range events {
			events[token] = own.without(named)
		}
	}
	living = slices.DeleteFunc(living, func(u *user) bool {
		_, moved := errors.AsType[elsewhere](u.fault)
		return moved && faulty.note(u)
	})
	var mu sync.Mutex // of rows and faulty
	take := at.owned(app, true, nil, events)
	draw := func(ctx context.Context, u *user) error {
		return at.writer.tickets.drawWith(ctx, app.ID, u, events[u.token].at, take)
	}
	err = at.writer.refresh(ctx, app, living, events, draw, func(u *user, err error) {
		mu.Lock()
		defer mu.Unlock()
		rows[u.token] = u.row
		if _, moved := errors.AsType[elsewhere](u.fault); err == nil && u.fault != nil && !moved {
			at.env.logFault(ctx, app.ID, u.token, u.fault)
		}
		faulty.note(u)
	})
	if err == nil {
		err = faulty.orNil()
	}
	return drawn{rows, named}, err
}

// markOwned leaves markers for users at their tickets.
func markOwned(ctx context.Context, at *Engine, app config.App, users []*user,
	events map[string]own) (drawn, error) {
	return markFollowed(ctx, at, app, users, events, true)
}

// markCopied is markOwned of a message that is given up.
func markCopied(ctx context.Context, at *Engine, app config.App, users []*user,
	events map[string]own) (drawn, error) {
	return markFollowed(ctx, at, app, users, events, false)
}

func markFollowed(ctx context.Context, at *Engine, app config.App, users []*user, events map[string]own,
	logged bool) (of drawn, err error) {
	if of.named, err = at.follow(ctx, app, users, events, logged); err != nil {
		return drawn{}, err
	}
	of.rows, err = at.writer.markDrawn(ctx, app, users)
	return of, err
}
