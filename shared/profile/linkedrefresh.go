package profile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

// takerOf returns what draws the tickets of flights: with a mark for a known user whose stored
// profile a change of a link ends.
func (w *writer) takerOf(app config.App, events map[string]own) taker {
	plain := w.tickets.taker(app)
	if !app.Identity.On() {
		return plain
	}
	return func(ctx context.Context, appID, token string) (store.User, error) {
		if events[token].mark {
			return w.store.Users.TakeLinkedMark(ctx, appID, token)
		}
		return plain(ctx, appID, token)
	}
}

// refreshLinked is refresh in an app that links tokens. Beside it, it brings the events of the users to the known users
// for whom they count. A user's flight ends after both.
func (w *writer) refreshLinked(ctx context.Context, app config.App, users []*user, events map[string]own,
	draw rowReader, end func(*user, error)) error {
	var mu sync.Mutex
	var running sync.WaitGroup
	halves := make(map[string]error, len(users)) // those that have ended, each with the error of its first half
	dropped := make(map[string]naming)
	half := func(u *user, err error) {
		mu.Lock()
		first, second := halves[u.token]
		halves[u.token] = cmp.Or(first, err)
		if second {
			u.named = dropped[u.token]
		}
		mu.Unlock()
		if second {
			end(u, cmp.Or(first, err))
		}
	}
	refreshed := map[string]bool{}
	ended := func(u *user, err error) { // also called for a user who has ended before
		mu.Lock()
		was := refreshed[u.token]
		refreshed[u.token] = true
		mu.Unlock()
		if !was {
			half(u, err)
		}
	}
	for _, u := range users {
		at := *u // the refresh changes it
		running.Go(func() {
			named, err := w.linker.follow(ctx, app, &at, events[at.token], w.deliverRefresh, w.linker.drawHere(app))
			if len(named) > 0 {
				mu.Lock()
				dropped[u.token] = named
				mu.Unlock()
			}
			half(u, err)
		})
	}
	err := w.refresh(ctx, app, users, events, draw, ended)
	if err != nil {
		for _, u := range users {
			ended(u, err) // the flight of an anonymous token may wait for one of these
		}
	}
	running.Wait()
	return err
}

// deliverRefresh is a delivery that refreshes the known user.
func (w *writer) deliverRefresh(ctx context.Context, app config.App, known string, events own) (place, error) {
	of, err := w.refreshShared(ctx, app, map[string]own{known: events}, w.refreshedPersons)
	return place{at: w.engine, row: of.rows[known]}, err
}

// followAll brings the events of users, who have drawn their tickets, to the known users for whom
// they count, by marks: the next reader computes them. It returns the events that were dropped because of the
// users whom they name. A user who is owned in another region has a fault of type elsewhere.
func (w *writer) followAll(ctx context.Context, app config.App, users []*user, byUser map[string]own,
	deliver delivery, draw redraw) (all naming, err error) {
	if !app.Identity.On() {
		return nil, nil
	}
	for _, u := range users {
		if u.fault != nil {
			continue
		}
		named, err := w.linker.follow(ctx, app, u, byUser[u.token], deliver, draw)
		_, moved := errors.AsType[elsewhere](err)
		if moved || errors.Is(err, wire.ErrDamaged) || errors.Is(err, wire.ErrNewer) {
			u.fault, err = err, nil // of this user, or links of theirs, or of those whom they name: the others are marked
		}
		if err != nil {
			return nil, err
		}
		all = all.with(named)
	}
	return all, nil
}

// deliverLater is a delivery at the end of the write window.
func (w *writer) deliverLater(ctx context.Context, app config.App, known string, _ own) (place, error) {
	of, err := w.linker.mark(ctx, app, known)
	if err == nil && !of.row.Gone() {
		at := w
		if of.at != nil {
			at = of.at.writer
		}
		at.refreshLater(ctx, app, []string{known})
	}
	return of, err
}

func newestOf(events []*store.LogEvent) int64 {
	if len(events) == 0 {
		return 0
	}
	return slices.MaxFunc(events, func(a, b *store.LogEvent) int { return cmp.Compare(a.Time, b.Time) }).Time
}
