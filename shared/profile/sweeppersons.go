package profile

import (
	"context"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
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
	// Exposure gets each exposure of the person to an arm of an experiment, as its token has it.
	Exposure func(of *SweptPerson, e store.Exposure)
	// Original gets each conversion once more, as the client sent it: a value for schema.ParseOriginal. An error means
	// that it is damaged: it counts as faulty, and the sweep goes on.
	Original func(of *SweptPerson, token string, at int64, original []byte) error
	// Clicked gets each click as the client sent it of the persons for whom Follows says so, once all of their events and
	// conversions were given. Its errors are as those of Original.
	Follows func(of *SweptPerson) bool
	Clicked func(of *SweptPerson, at int64, original []byte) error
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
	o.met = o.Exposure != nil
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
	return t.holds(e.Time) && !(t.intervals != nil && t.optedOut.Has(e.Type))
}

// holds reports whether what was done under the token at a time is the person's.
func (t *sweptToken) holds(time int64) bool {
	if t.intervals == nil {
		return t.cell == nil || len(t.cell.Holders(time, exclusionOf(t.row))) == 0
	}
	return slices.ContainsFunc(t.intervals, func(i links.Interval) bool { return i.Holds(time) })
}

// sweepPersons gives the events of a group. A token may have been used by several persons, and a stream has one state
// of each token: so the tokens of others are read in as many streams as a token has persons, for most groups one.
func (s *sweeper) sweepPersons(ctx context.Context, app config.App, users []*user, whole *store.Range,
	o PersonSweep) (total swept, err error) {
	own, others, err := s.tokensOf(ctx, app, users, o, &total.left)
	if err != nil {
		return total, err
	}
	for _, t := range slices.Concat(own, others) {
		t.giveExposures(o)
	}
	var follow []func() error
	for ; len(own) > 0; whole = nil {
		clicks, err := s.sweepTokens(ctx, app, own, whole, o, &total)
		if err != nil {
			return total, err
		}
		follow = append(follow, clicks)
		own, others = layer(others)
	}
	if o.Follows != nil {
		for _, clicks := range follow {
			if err := clicks(); err != nil {
				return total, err
			}
		}
	}
	return total, nil
}

// giveExposures gives the exposures of the token that are the person's, unless the app may use nothing of the token.
func (t *sweptToken) giveExposures(o PersonSweep) {
	if o.Exposure == nil || t.use == consent.None {
		return
	}
	for _, e := range t.row.Exposures {
		if t.holds(e.At) {
			o.Exposure(t.of, e)
		}
	}
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

// sweepTokens gives the events of tokens of one region, each of which is there once. It returns what gives the clicks
// of those that are followed.
func (s *sweeper) sweepTokens(ctx context.Context, app config.App, tokens []*sweptToken, whole *store.Range,
	o PersonSweep, total *swept) (clicks func() error, err error) {
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
		return sw.originals(ctx, byToken, some, event.Conversion, o.Original)
	})
	sw.whole = whole
	err = sw.run(ctx)
	if err == nil {
		err = sw.originals(ctx, byToken, noted, event.Conversion, o.Original)
	}
	total.logged += sw.logged
	left := sw.left.all()
	total.left.count += left.count
	total.left.names = append(total.left.names, left.names[:min(len(left.names), maxFaults-len(total.left.names))]...)
	if err == nil {
		sw.logLeft(ctx)
	}
	return func() error {
		var ranges []store.UserRange
		for _, t := range tokens {
			if o.Follows(t.of) {
				from, to := t.windowStart(), history.Pos{Time: t.window.Now + 1}
				ranges = append(ranges, store.UserRange{User: t.token, From: from, To: to})
			}
		}
		// Rows that do not decode were counted with the events, unless a block gave these.
		give := func(of *SweptPerson, token string, at int64, original []byte) error {
			if err := o.Clicked(of, at, original); err != nil {
				total.left.add(token, fmt.Errorf("event at %d: %w", at, err))
			}
			return nil
		}
		return sw.originals(ctx, byToken, ranges, event.Click, give)
	}, err
}

// originals gives the originals of the events of a type in ranges.
func (sw *sweepStream) originals(ctx context.Context, byToken map[string]*sweptToken, noted []store.UserRange,
	typ event.Type, give func(of *SweptPerson, token string, at int64, original []byte) error) error {
	if len(noted) == 0 {
		return nil
	}
	return sw.log.ReadOriginals(ctx, noted, func(token string, row store.LogRow, original []byte) error {
		t := byToken[token]
		e, ok := sw.decode(token, row)
		if !ok || e.Type != typ || !t.window.Contains(e.Time) || !t.counts(e) {
			return nil
		}
		if sw.compiled != nil && sw.compiled.KindScore(e.Type, e.Name) == 0 {
			return nil
		}
		if err := give(t.of, token, e.Time, original); err != nil {
			sw.left.add(token, fmt.Errorf("event at %d: %w", e.Time, err))
		}
		return nil
	})
}
