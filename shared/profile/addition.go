package profile

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// adder adds the events of a refresh to a base: a profile that is stored, or that this
// process has written, and the list of the newest events that it counts. It reads
// neither blocks nor log.
type adder struct {
	*env
	bases cache.Values[storedBase]
}

// storedBase is a base as it is written at a ticket.
type storedBase struct {
	ticket                    int64
	profile, session, counted []byte
}

// own are the events of the messages for which a user is refreshed.
type own struct {
	at     []history.Pos
	events []*store.LogEvent
	// refused means that a row of the log may lack one of the events, or that one of an anonymous token was late.
	refused bool
	// linked are events of anonymous tokens that count for the user, and mark means that a change
	// of a link must end the validity of the stored profile.
	linked []*store.LogEvent
	mark   bool
}

// owns returns the events of a message by user token.
func owns(events []store.LogEvent, refused Faulty) map[string]own {
	byUser := make(map[string]own, len(events))
	for i := range events {
		token := events[i].User
		o := byUser[token]
		o.at, o.events = append(o.at, position(&events[i])), append(o.events, &events[i])
		o.refused = refused[token] != nil
		byUser[token] = o
	}
	return byUser
}

// without returns the events of the user without some that were dropped.
func (o own) without(named naming) own {
	if len(named) == 0 {
		return o
	}
	var at []history.Pos
	var events []*store.LogEvent
	for _, e := range o.events {
		if _, dropped := named[e]; !dropped {
			at, events = append(at, position(e)), append(events, e)
		}
	}
	o.at, o.events = at, events
	return o
}

// with returns the events of two messages.
func (o own) with(other own) own {
	return own{append(o.at, other.at...), append(o.events, other.events...), o.refused || other.refused,
		append(o.linked, other.linked...), o.mark || other.mark}
}

// addition is a profile to which events were added.
type addition struct {
	*user
	affinity.Base
	before int // additions to the base
}

// write returns the new profile as a write at the ticket of the user's row.
func (a addition) write(app config.App) store.ProfileWrite {
	p := a.Profile
	p.StrategyVersion = app.ScoringVersion
	encoded := p.AppendBinary(nil)
	return store.ProfileWrite{
		User: a.token, Row: a.row, Version: app.ScoringVersion, Value: encoded, Summary: p.Outline().AppendBinary(nil),
		Session: a.Session.AppendBinary(nil, encoded), Counted: a.Counted.AppendBinary(nil, encoded),
	}
}

// add adds the events of users, who have drawn their tickets, to their bases. It
// returns the users whose profiles must be computed.
func (d *adder) add(ctx context.Context, app config.App, c *affinity.Compiled, users []*user,
	events map[string]own) (added []addition, rest []*user, err error) {
	if d.limits.maxAdditions == 0 {
		return nil, users, nil
	}
	var waiting []waitingUser
	for _, u := range users {
		b, remembered := d.bases.Take(app.ID, u.token)
		remembered = remembered && b.ticket == u.row.Ticket-1
		of := events[u.token]
		switch {
		case u.fault != nil:
			rest = append(rest, u)
		case u.late || u.damaged || of.refused || of.mark:
			d.counters.NotAddedLate.Add(1)
			rest = append(rest, u)
		case u.row.Version == 0:
			d.counters.NotAddedNoBase.Add(1) // nobody has written a profile
			rest = append(rest, u)
		case remembered && len(of.linked) == 0:
			if a, ok := d.addTo(ctx, app, c, u, b, of, nil); ok {
				d.counters.AddedFromMemory.Add(1)
				added = append(added, a)
			} else {
				rest = append(rest, u)
			}
		default:
			waiting = append(waiting, waitingUser{u, b, remembered})
		}
	}
	if len(waiting) == 0 {
		return added, rest, nil
	}
	others, err := d.readFor(ctx, app, waiting, events)
	if err != nil {
		return nil, nil, err
	}
	for _, u := range waiting {
		if a, ok := d.addTo(ctx, app, c, u.user, u.base, events[u.token], others); !ok {
			rest = append(rest, u.user)
		} else if added = append(added, a); u.remembered {
			d.counters.AddedFromMemory.Add(1)
		}
	}
	return added, rest, nil
}

// waitingUser is a user for whom something has to be read: their base, if this process does not remember it, or the
// rows of anonymous tokens.
type waitingUser struct {
	*user
	base       storedBase
	remembered bool
}

// readFor completes users, who have all drawn their tickets, by their bases, and beside that reads the rows of the
// anonymous tokens with events for them.
func (d *adder) readFor(ctx context.Context, app config.App, users []waitingUser,
	events map[string]own) (others map[string]store.User, err error) {
	var anonymous []string
	for _, u := range users {
		for _, e := range events[u.token].linked {
			anonymous = append(anonymous, e.User)
		}
	}
	if len(anonymous) == 0 {
		return nil, d.readBases(ctx, app, users)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.readBases(ctx, app, users) })
	g.Go(func() (err error) {
		others, err = d.store.Users.ReadUserStates(ctx, app.ID, distinct(anonymous))
		return err
	})
	err = g.Wait()
	return others, err
}

// readBases completes users by the bases that this process does not remember.
func (d *adder) readBases(ctx context.Context, app config.App, users []waitingUser) error {
	var tokens []string
	for _, u := range users {
		if !u.remembered {
			tokens = append(tokens, u.token)
		}
	}
	if len(tokens) == 0 {
		return nil
	}
	// What does not fit is computed, within the memory of all computations.
	rows, err := d.store.Users.ReadBases(ctx, app.ID, tokens, d.limits.groupBytes/maxScans)
	for i := range users {
		if u := &users[i]; !u.remembered {
			row := rows[u.token]
			u.base = storedBase{row.ProfileTicket, row.Profile, row.Session, row.Counted}
		}
	}
	return err
}

// addTo adds events to a base of the ticket before the user's, or of a later one. others are rows of the anonymous
// tokens with events for the user, read after the ticket. It returns false if it cannot.
func (d *adder) addTo(ctx context.Context, app config.App, c *affinity.Compiled, u *user, b storedBase,
	events own, others map[string]store.User) (addition, bool) {
	switch {
	case len(b.profile) == 0 || len(b.session) == 0 || len(b.counted) == 0:
		d.counters.NotAddedNoBase.Add(1)
		return addition{}, false
	case b.ticket < u.row.Ticket-1:
		d.counters.NotAddedGap.Add(1)
		return addition{}, false
	}
	base, err := d.limits.bounds.ParseBase(b.profile, b.session, b.counted)
	if err != nil && !errors.Is(err, affinity.ErrOtherProfile) {
		// The base is only a cache of the log.
		d.log.LogAttrs(ctx, slog.LevelError, "stored profile is damaged, computing it",
			slog.String("app", app.ID), slog.String("user", u.token), slog.Any("error", err))
	}
	p, now := base.Profile, d.now().UnixMilli()
	if err != nil || !app.ScoresAs(p.StrategyVersion) || p.RetentionDays != app.RetentionDays ||
		p.Tombstone() != u.row.Tombstone() ||
		p.Marks != u.row.Marks || p.Anchor > now+d.reach() {
		d.counters.NotAddedNoBase.Add(1)
		return addition{}, false
	}
	cell, err := linksOf(app.ID, u.token, u.row)
	if err != nil {
		d.counters.NotAddedNoBase.Add(1) // the computation reports it
		return addition{}, false
	}
	arrivals, clear := make([]affinity.Arrival, 0, len(events.events)+len(events.linked)), true
	view, _ := app.Purposes.Of(u.consents, consent.Kept, 0)
	for _, e := range events.events {
		if clear {
			arrivals, clear = d.arrive(arrivals, u.row, view, &cell, e, now)
		}
	}
	for _, e := range events.linked {
		if clear {
			arrivals, clear = d.arriveFrom(ctx, app, arrivals, u, &cell, e, others[e.User], now)
		}
	}
	if !clear {
		d.counters.notAdded(affinity.Unclear)
		return addition{}, false
	}
	at := max(now, p.Anchor)
	for i := range arrivals {
		at = max(at, arrivals[i].Time)
	}
	d.setReading(u, now, at, app)
	next, why := base.Add(c, u.window, arrivals, d.limits.additions(u.token))
	if why != affinity.NotRefused {
		d.counters.notAdded(why)
		return addition{}, false
	}
	d.counters.Added.Add(1)
	return addition{u, next, base.Counted.Additions}, true
}

// additions returns how much the bases of a user list, and when they are computed again.
// The last eighth is the user's own, for the reason of foldsBetween.
func (l *limits) additions(token string) affinity.AdditionLimits {
	return affinity.AdditionLimits{Events: l.sessionEvents, Additions: l.maxAdditions - phase(token, l.maxAdditions/8)}
}

// foldsBetween reports whether a user is folded between two numbers of added events: once
// in foldEvents. Each user begins at a number of their own. Otherwise many users whose
// events begin together, as in a sale, would all fold at the same time, and everybody's
// events would wait for these folds.
func (l *limits) foldsBetween(token string, before, after int) bool {
	first := phase(token, l.foldEvents)
	return (before+first)/l.foldEvents < (after+first)/l.foldEvents
}

// phase returns a number below n, the same for a user in every process.
func phase(token string, n int) int {
	if n < 2 {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(token))
	return int(h.Sum32() % uint32(n))
}

// keep keeps a profile that was written for the next refresh of its user.
func (d *adder) keep(appID string, w store.ProfileWrite) {
	if len(w.Counted) > 0 {
		d.bases.Put(appID, w.User, storedBase{w.Row.Ticket, w.Value, w.Session, w.Counted},
			len(w.Value)+len(w.Session)+len(w.Counted))
	}
}

// saveAdded writes profiles to which events were added, and ends the refreshes of their
// users. Now and then it first folds the events that a user's additions leave unfolded:
// until then that user's next events wait, and no others.
func (w *writer) saveAdded(ctx context.Context, app config.App, added []addition, listed *listing,
	end func(*user, error)) error {
	save := w.newSaver(app, listed)
	for _, a := range added {
		if err := save.add(ctx, a.write(app)); err != nil {
			return err
		}
	}
	if err := save.flush(ctx); err != nil {
		return err
	}
	var due []*user
	for _, a := range added {
		if w.limits.foldsBetween(a.token, a.before, a.Counted.Additions) {
			due = append(due, a.user)
		} else {
			end(a.user, nil)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxFolds)
	for _, u := range due {
		g.Go(func() error {
			_, err := w.folder.foldUnderTicket(ctx, app, u)
			w.folder.logFailure(ctx, app.ID, u.token, err)
			end(u, nil)
			return nil
		})
	}
	return g.Wait() // it returns no error
}

// newSaver makes a saver of listed users that keeps what it writes for the next refreshes.
func (w *writer) newSaver(app config.App, listed *listing) *saver {
	s := w.logs.newSaver(app)
	s.listed = listed
	s.stored = func(write store.ProfileWrite) { w.adder.keep(app.ID, write) }
	return s
}

// foldUnderTicket folds a user's unfolded events under the ticket of a refresh that has
// not read them, or of a round. It leaves another fold's announcement alone. foldRows says
// why it may commit.
func (f *folder) foldUnderTicket(ctx context.Context, app config.App, u *user) (extent, error) {
	if a := u.manifest.Announced; a != nil && u.row.Ticket-a.Ticket < refreshPatience {
		return packedNone, nil
	}
	base, gaps, until, ok := f.toFold(u)
	if !ok {
		return packedNone, nil
	}
	next, cell, packed, err := f.packGaps(ctx, app, u, base, gaps, until, min(f.limits.maxFold, maxRefreshFold))
	if packed == packedNone || err != nil {
		return packedNone, err
	}
	if err := f.logs.check(ctx, app); err != nil {
		return packedNone, err
	}
	done, err := f.commit(ctx, app.ID, u, owned(next, cell), cell)
	f.countFold(done, err)
	if !done || err != nil {
		return packedNone, err
	}
	return packed, nil
}
