package profile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// sweptUsers is the number of users in a group of a sweep.
const sweptUsers = 1024

// SweepOptions say which events a sweep reads.
type SweepOptions struct {
	// AsOf is the end of the window. The window is that of the app's retention, and
	// excludes what a user's tombstone covers and their opt-out. Zero means now.
	AsOf time.Time
	// Strategy limits the events to kinds that it scores above 0. nil: all kinds.
	Strategy *affinity.Compiled
	// Counts gives events that name no objects their counts of the facets that
	// Strategy scores, without aliases. It needs a Strategy.
	Counts bool
	// Only limits the users. nil: all users.
	Only func(user string) bool
	// Until is the time after which the sweep starts no group of users. Zero means no
	// limit.
	Until time.Time
	// met also gives users without events who have met an experiment.
	met bool
}

// ErrStop is what the function of a sweep returns to end it before the user of the
// event. The sweep then returns ErrStop if what it gave of the earlier users is
// whole.
var ErrStop = errors.New("the sweep stops")

// SweepProgress counts the work of a sweep on its range.
type SweepProgress struct {
	Next string // start of the remaining range
	Done bool   // no user remains

	Users  int64 // users seen, without those that Only excludes
	Events int64 // events given to the caller
	Logged int64 // of them, events that came from the log and not from a block
	Faulty int64 // rows of the log, and users, that cannot be read and are left out
	// Faults names the first of them, at most 20, with the error of each.
	Faults []string
}

// sweeper reads the objects of users' events from blocks and log.
type sweeper struct {
	*env
	logs *logs
}

func (s *sweeper) sweep(ctx context.Context, app config.App, r store.Range, o SweepOptions,
	fn func(user string, e affinity.Event) error, progress func(SweepProgress) error) (SweepProgress, error) {
	return s.groups(ctx, app, r, o, progress, func(users []*user, whole *store.Range) (swept, error) {
		sw := s.read(app, users, o.Strategy, fn)
		sw.reader.Counts, sw.whole = o.Counts, whole
		err := sw.run(ctx)
		if err == nil {
			sw.logLeft(ctx)
		}
		return swept{events: sw.events, logged: sw.logged, left: sw.left.all()}, err
	})
}

// swept counts what was read of a group of users.
type swept struct {
	events, logged int64
	left           faults
}

// groups reads the rows of the users of a range in groups, and calls read for each with the range that holds the group
// and no other users; nil if Only excludes some.
func (s *sweeper) groups(ctx context.Context, app config.App, r store.Range, o SweepOptions,
	progress func(SweepProgress) error,
	read func(users []*user, whole *store.Range) (swept, error)) (SweepProgress, error) {
	total, window := SweepProgress{Next: r.From}, s.window(app, o.AsOf)
	for first := true; !total.Done && (first || o.Until.IsZero() || s.now().Before(o.Until)); first = false {
		users, next, left, err := s.next(ctx, app, store.Range{From: total.Next, To: r.To}, window, o)
		if err != nil {
			return total, err
		}
		var whole *store.Range
		if o.Only == nil {
			whole = &store.Range{From: total.Next, To: r.To}
			if next != "" {
				whole.To = next
			}
		}
		group, stopped := read(users, whole)
		if stopped != nil && !errors.Is(stopped, ErrStop) {
			return total, stopped
		}
		if err := s.logs.check(ctx, app); err != nil {
			return total, err
		}
		if stopped != nil {
			return total, stopped
		}
		total.Next, total.Done = next, next == ""
		total.Users += int64(len(users))
		total.Events += group.events
		total.Logged += group.logged
		total.leave(left)
		total.leave(group.left)
		if err := progress(total); err != nil {
			return total, err
		}
	}
	return total, nil
}

// leave adds what a group has left out.
func (p *SweepProgress) leave(f faults) {
	p.Faulty += f.count
	p.Faults = append(slices.Clip(p.Faults), f.names[:min(len(f.names), maxFaults-len(p.Faults))]...)
}

func (s *sweeper) window(app config.App, asOf time.Time) affinity.Window {
	if asOf.IsZero() {
		asOf = s.now()
	}
	return affinity.Window{Now: asOf.UnixMilli(), RetentionDays: app.RetentionDays}
}

// next reads the rows of the next group of users. It returns the user after the
// last one, or "" if no user follows.
func (s *sweeper) next(ctx context.Context, app config.App, r store.Range, w affinity.Window,
	o SweepOptions) (users []*user, next string, left faults, err error) {
	n := 0
	add := func(token string, row store.User) error {
		if n++; n > sweptUsers {
			next = token
			return nil
		}
		away := app.Residency.On() && row.Owner.State == store.Moved
		nobody := row.Ticket == 0 && !(o.met && len(row.Exposures) > 0)
		if nobody || row.Gone() || away || o.Only != nil && !o.Only(token) {
			return nil
		}
		u := &user{token: token}
		if s.setRowOf(ctx, app.ID, u, row); u.fault != nil {
			s.logFault(ctx, app.ID, token, u.fault)
			left.add(token, u.fault)
			return nil
		}
		u.setWindow(w.Now, app)
		users = append(users, u)
		return nil
	}
	err = s.store.Users.ScanUsers(ctx, app.ID, r.From, r.To, sweptUsers+1, store.UserHistory, add)
	return users, next, left, err
}

// objectsOf reads the objects of one user's events as of now, and of those of other tokens that count for them.
func (s *sweeper) objectsOf(ctx context.Context, app config.App, token string, c *affinity.Compiled,
	fn func(affinity.Event) error) error {
	row, err := s.store.Users.ReadPrimary(ctx, app.ID, token, store.UserHistory)
	if err != nil {
		return err
	}
	u := &user{token: token}
	if err := s.setRow(ctx, app.ID, u, row); err != nil {
		return err
	}
	users, counted, err := s.personOf(ctx, app, u)
	if err != nil {
		return err
	}
	for _, u := range slices.Concat(slices.Collect(maps.Values(users))...) {
		u.setWindow(s.now().UnixMilli()+s.reach(), app) // events ahead count
	}
	give := func(of string, e affinity.Event) error {
		counts := func(i links.Interval) bool { return i.Holds(e.Time) && !row.OptedOut.Has(e.Type) }
		if of != token && !slices.ContainsFunc(counted[of], counts) {
			return nil
		}
		return fn(e)
	}
	for at, users := range users {
		sw := at.sweeper.read(app, users, c, give)
		if err := sw.run(ctx); err != nil {
			return err
		}
		sw.logLeft(ctx)
	}
	return s.logs.check(ctx, app)
}

// personOf returns a user, with the tokens whose events count for them, by the region that owns each, in the order of
// rows. It returns the intervals in which the events of each token do.
func (s *sweeper) personOf(ctx context.Context, app config.App,
	u *user) (map[*Engine][]*user, map[string][]links.Interval, error) {
	users := map[*Engine][]*user{s.engine: {u}}
	if !app.Identity.Counts() || len(u.row.Links) == 0 {
		return users, nil, nil
	}
	cell, err := linksOf(app.ID, u.token, u.row)
	if err != nil || len(cell.List) == 0 {
		return users, nil, err
	}
	rows, err := s.placesOf(ctx, app, cell.Tokens(), store.UserHistory)
	if err != nil {
		return nil, nil, err
	}
	counted := make(map[string][]links.Interval, len(rows))
	for token, of := range rows {
		m, err := of.at.env.memberOf(ctx, app, u, token, of.row, links.Open)
		if err != nil {
			return nil, nil, err
		}
		if m != nil {
			users[of.at], counted[token] = append(users[of.at], &m.user), m.intervals
		}
	}
	for _, some := range users {
		slices.SortFunc(some, func(a, b *user) int { return store.UserOrder(a.token, b.token) })
	}
	return users, counted, nil
}

func (s *sweeper) read(app config.App, users []*user, c *affinity.Compiled,
	fn func(user string, e affinity.Event) error) *sweepStream {
	sw := &sweepStream{
		sweeper: s, app: app, log: s.logs.of(app), users: users, byUser: make(map[string]*user, len(users)),
		compiled: c, fn: fn,
		rows: make(chan []loose, 2), blocks: make(chan map[store.BlockName][]byte, 1),
	}
	linked := map[string]store.User{}
	for _, u := range users {
		sw.byUser[u.token] = u
		if len(u.row.Links) > 0 {
			linked[u.token] = u.row
		}
	}
	sw.links = linkCells(app.ID, linked)
	sw.reader.Strategy = c
	return sw
}
