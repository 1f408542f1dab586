package profile

import (
	"context"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// SweptPerson is a person of a sweep: a known user with the anonymous tokens whose events count for them, or a token
// that is part of no other person.
type SweptPerson struct {
	// User is the token in whose place the person stands, and Unit the one that decides which users are held out.
	User, Unit string
}

// PersonSweep says what a sweep of persons gives. The functions get the person, always the same pointer until the next
// call of progress, and the token under which the event was sent.
type PersonSweep struct {
	SweepOptions
	// Event gets each event that counts, as SweepObjects gives it: those of a token in the order of the log.
	Event func(of *SweptPerson, token string, e affinity.Event)
	// Original gets each conversion once more, as the client sent it: a value for schema.ParseOriginal. An error means
	// that it is damaged: it counts as faulty, and the sweep goes on.
	Original func(of *SweptPerson, token string, at int64, original []byte) error
}

// maxNoted is the number of conversions whose originals a sweep reads at a time.
const maxNoted = 20_000

// SweepPersons is SweepObjects of persons. Each event goes to one person: to the known user for whom it counts, else to
// its own token, unless that is part of a known user now. Each person is in the range that holds their own token. The
// originals of conversions come from the log, all other events from blocks if there are any.
func SweepPersons(ctx context.Context, e *Engine, app config.App, r store.Range, o PersonSweep,
	progress func(SweepProgress) error) (SweepProgress, error) {
	at, err := e.resting(app)
	if err != nil {
		return SweepProgress{}, err
	}
	s := at.sweeper
	return s.groups(ctx, app, r, o.SweepOptions, progress, func(users []*user, whole *store.Range) (swept, error) {
		return s.sweepPersons(ctx, app, users, whole, o)
	})
}

// sweptToken is a token of a person.
type sweptToken struct {
	*user
	of *SweptPerson
	at *Engine // of the region that holds it
	// cell is that of a person's own token: what counts for another user is not theirs.
	cell *links.Cell
	// intervals are those of another token that count for the person, who has opted out of some types.
	intervals []links.Interval
	optedOut  event.Types
}

// counts reports whether an event of the token counts for the person.
func (t *sweptToken) counts(e affinity.Event) bool {
	if t.intervals == nil {
		return t.cell == nil || len(t.cell.Holders(e.Time, exclusionOf(t.row))) == 0
	}
	holds := func(i links.Interval) bool { return i.Holds(e.Time) }
	return !t.optedOut.Has(e.Type) && slices.ContainsFunc(t.intervals, holds)
}

// sweepPersons gives the events of a group. A token may have been used by several persons, and a stream has one state
// of each token: so the tokens of others are read in as many streams as a token has persons, for most groups one.
func (s *sweeper) sweepPersons(ctx context.Context, app config.App, users []*user, whole *store.Range,
	o PersonSweep) (total swept, err error) {
	own, others, err := s.tokensOf(ctx, app, users, o, &total.left)
	if err != nil {
		return total, err
	}
	for ; len(own) > 0; whole = nil {
		if err := s.sweepTokens(ctx, app, own, whole, o, &total); err != nil {
			return total, err
		}
		own, others = layer(others)
	}
	return total, nil
}

// layer takes the first of each token, in one region, from tokens in the order of rows. It returns the rest too.
func layer(tokens []*sweptToken) (first, rest []*sweptToken) {
	for _, t := range tokens {
		if n := len(first); n > 0 && (first[n-1].token == t.token || first[0].at != t.at) {
			rest = append(rest, t)
		} else {
			first = append(first, t)
		}
	}
	return first, rest
}

// tokensOf returns the own tokens of the persons among the users, and the other tokens of these persons, both in the
// order of rows. It leaves out users who are part of another person.
func (s *sweeper) tokensOf(ctx context.Context, app config.App, users []*user, o PersonSweep,
	left *faults) (own, others []*sweptToken, err error) {
	var linked []*sweptToken
	var named []string
	for _, u := range users {
		t := &sweptToken{user: u, of: &SweptPerson{u.token, unitOf(app, u.token, u.row)}, at: s.engine}
		if app.Identity.Counts() && len(u.row.Links) > 0 {
			cell, err := linksOf(app.ID, u.token, u.row)
			if err != nil {
				s.logFault(ctx, app.ID, u.token, err)
				left.add(u.token, err)
				continue
			}
			if cell.Absorbed(exclusionOf(u.row)) {
				continue
			}
			t.cell = &cell
			if tokens := cell.Tokens(); len(tokens) > 0 {
				linked, named = append(linked, t), append(named, tokens...)
			}
		}
		own = append(own, t)
	}
	if len(named) == 0 {
		return own, nil, nil
	}
	rows, err := s.placesOf(ctx, app, named, store.UserHistory)
	if err != nil {
		return nil, nil, err
	}
	now := s.window(app, o.AsOf).Now
	for _, person := range linked {
		for _, token := range person.cell.Tokens() {
			found, ok := rows[token]
			if !ok {
				continue
			}
			m, err := found.at.env.memberOf(ctx, app, person.user, token, found.row, links.Open)
			if err != nil {
				s.logFault(ctx, app.ID, token, err)
				left.add(token, err)
			}
			if m == nil || err != nil {
				continue
			}
			m.setWindow(now, app)
			others = append(others, &sweptToken{user: &m.user, of: person.of, at: found.at, intervals: m.intervals,
				optedOut: person.row.OptedOut})
		}
	}
	slices.SortStableFunc(others, func(a, b *sweptToken) int { return store.UserOrder(a.token, b.token) })
	return own, others, nil
}

// sweepTokens gives the events of tokens of one region, each of which is there once.
func (s *sweeper) sweepTokens(ctx context.Context, app config.App, tokens []*sweptToken, whole *store.Range,
	o PersonSweep, total *swept) error {
	users, byToken := make([]*user, len(tokens)), make(map[string]*sweptToken, len(tokens))
	for i, t := range tokens {
		users[i], byToken[t.token] = t.user, t
	}
	var sw *sweepStream
	var noted []store.UserRange
	var last store.UserRange
	sw = tokens[0].at.sweeper.read(app, users, o.Strategy, func(token string, e affinity.Event) error {
		t := byToken[token]
		if !t.counts(e) {
			return nil
		}
		total.events++
		o.Event(t.of, token, e)
		if e.Type != event.Conversion || o.Original == nil {
			return nil
		}
		at := store.UserRange{User: token, From: history.Pos{Time: e.Time}, To: history.Pos{Time: e.Time + 1}}
		if at == last { // of several conversions at one time
			return nil
		}
		if noted, last = append(noted, at), at; len(noted) < maxNoted {
			return nil
		}
		some := noted
		noted = noted[:0]
		return sw.originals(ctx, byToken, some, o)
	})
	sw.whole = whole
	err := sw.run(ctx)
	if err == nil {
		err = sw.originals(ctx, byToken, noted, o)
	}
	total.logged += sw.logged
	left := sw.left.all()
	total.left.count += left.count
	total.left.names = append(total.left.names, left.names[:min(len(left.names), maxFaults-len(total.left.names))]...)
	if err == nil {
		sw.logLeft(ctx)
	}
	return err
}

// originals gives the originals of the conversions at noted times.
func (sw *sweepStream) originals(ctx context.Context, byToken map[string]*sweptToken, noted []store.UserRange,
	o PersonSweep) error {
	if len(noted) == 0 {
		return nil
	}
	return sw.log.ReadOriginals(ctx, noted, func(token string, row store.LogRow, original []byte) error {
		t := byToken[token]
		e, ok := sw.decode(token, row)
		if !ok || e.Type != event.Conversion || !t.window.Contains(e.Time) || !t.counts(e) {
			return nil
		}
		if sw.compiled != nil && sw.compiled.KindScore(e.Type, e.Name) == 0 {
			return nil
		}
		if err := o.Original(t.of, token, e.Time, original); err != nil {
			sw.left.add(token, fmt.Errorf("event at %d: %w", e.Time, err))
		}
		return nil
	})
}
