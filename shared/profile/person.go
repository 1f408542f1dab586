package profile

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// Person is what the rows of a token, and of those linked to it, say at one moment.
type Person struct {
	User string
	Role links.Role
	// Links are those of the user, ordered by when the engine received their evidence, then by token.
	Links []Link
	// Others are the anonymous tokens with events that count for the user.
	Others []Other
	links  links.Cell
	granted
}

// granted is what counts of a token by what its users grant.
type granted struct {
	setting  consent.Setting
	consents consent.Consents
	view     *consent.View
}

// Link is an entry of an anonymous token.
type Link struct {
	Token string
	links.Entry
	// Ended says that no event counts by it: it was undone, or one of the two tokens was deleted or has opted out.
	Ended bool
	of    *tokenRow
	known links.Exclusion // of the row of the known user
}

// tokenRow is what the row of an anonymous token says, and where it is.
type tokenRow struct {
	place
	cell links.Cell
}

// Other is an anonymous token with events that count for a known user.
type Other struct {
	Token     string
	intervals []links.Interval
	row       store.User // excludes what the rows of both exclude
	links     links.Cell
	// granted is what both grant.
	granted
	// log has the events while the app moves: the token may be in another region than the user. nil: the user's has them.
	log *store.Log
}

// Of reads the row of a token, and returns the person.
func (i Identities) Of(ctx context.Context, app config.App, token string) (Person, error) {
	at, err := i.engine.at(app)
	if err != nil {
		return Person{}, err
	}
	row, err := at.env.rowOf(ctx, app, token)
	if err != nil {
		return Person{}, err
	}
	return i.Person(ctx, app, token, row)
}

// Person returns the person of a token whose row has been read. The rows of other tokens are read after it, so
// that a computation that follows knows every change of links that the person shows.
func (i Identities) Person(ctx context.Context, app config.App, user string, row store.User) (Person, error) {
	of, err := grantedByBoth(app, row, row, user)
	p := Person{User: user, granted: of}
	if len(row.Links) == 0 || err != nil {
		return p, err
	}
	if p.links, err = linksOf(app.ID, user, row); err != nil {
		return p, err
	}
	p.Role = p.links.Role
	named := p.links.Tokens()
	for _, e := range p.links.Entries {
		named = append(named, e.Known)
	}
	if len(named) == 0 {
		return p, nil
	}
	at, err := i.engine.at(app)
	if err == nil {
		at, err = at.holding(ctx, app, user)
	}
	if err != nil {
		return p, err
	}
	rows, err := at.env.placesOf(ctx, app, named, store.UserState)
	if err != nil {
		return p, err
	}
	own := &tokenRow{place{at: at, row: row}, p.links}
	for _, e := range own.cell.Entries {
		p.add(user, own, e, exclusionOf(rows[e.Known].row))
	}
	for _, other := range p.links.Tokens() {
		if err := p.join(app, other, row, rows[other]); err != nil {
			return p, err
		}
	}
	slices.SortStableFunc(p.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Token, b.Token))
	})
	return p, nil
}

// join adds a token of the user's list. of is the row of the user, and other where the token is.
func (p *Person) join(app config.App, name string, of store.User, other place) error {
	row := other.row
	cell, err := linksOf(app.ID, name, row)
	if err != nil {
		return err
	}
	known, t := exclusionOf(of), &tokenRow{other, cell}
	for _, e := range cell.Entries {
		if e.Known == p.User {
			p.add(name, t, e, known)
		}
	}
	intervals := cell.Intervals(p.User, exclusionOf(row), known, links.Open)
	if app.Identity.Counts() && len(intervals) > 0 {
		o := Other{Token: name, intervals: intervals, row: excluding(row, exclusionOf(row).With(known)), links: cell}
		if o.granted, err = grantedByBoth(app, row, of, name); err != nil {
			return err
		}
		if app.Owned() {
			log := other.at.logs.of(app)
			o.log = &log
		}
		p.Others = append(p.Others, o)
	}
	return nil
}

func (p *Person) add(name string, of *tokenRow, e links.Entry, known links.Exclusion) {
	ended := !e.Counts(exclusionOf(of.row), known)
	p.Links = append(p.Links, Link{Token: name, Entry: e, Ended: ended, of: of, known: known})
}

// SameAs reports whether the same events of other tokens count for the user as in another reading.
func (p *Person) SameAs(other Person) bool {
	same := slices.Equal(p.links.DeadRanges(), other.links.DeadRanges())
	return same && slices.EqualFunc(p.Others, other.Others, func(a, b Other) bool {
		return a.Token == b.Token && slices.Equal(a.intervals, b.intervals) && exclusionOf(a.row) == exclusionOf(b.row) &&
			reflect.DeepEqual(a.view, b.view) &&
			slices.Equal(a.links.DeadRanges(), b.links.DeadRanges())
	})
}

// absorbed reports whether a token is no user of its own for now, because it is part of a known one. Links that
// do not parse make none.
func absorbed(app config.App, token string, row store.User) bool {
	if !app.Identity.Counts() || len(row.Links) == 0 {
		return false
	}
	cell, err := linksOf(app.ID, token, row)
	return err == nil && cell.Absorbed(exclusionOf(row))
}

// exclusionOf is what a row excludes.
func exclusionOf(row store.User) links.Exclusion {
	return links.Exclusion{Tombstone: row.Deleted(), OptedOut: row.OptedOut, Consents: string(row.Consents)}
}

// excluding returns a row that excludes x.
func excluding(row store.User, x links.Exclusion) store.User {
	row.DeletedUntil, row.ReceivedUntil, row.OptedOut = x.DeletedUntil, x.ReceivedUntil, x.OptedOut
	return row
}

// Dropped reports whether an event of the user's own log does not count: it was deleted with a known user for whom it
// counted, or counts for no purpose.
func (p *Person) Dropped(row store.LogRow) bool {
	return p.links.Dropped(row.Time, row.Receipt()) || !keeps(p.view, row)
}

// Counts returns the counts of an event whose facets count for the user by what they grant, and whether the event does.
// token is that of the log which has the event.
func (p *Person) Counts(token string, e affinity.Event, receipt int64) ([]affinity.Count, bool) {
	return p.grantedOf(token).view.Counts(e, receipt)
}

// Purposes returns for which purposes of the app an event counts, and a facet of it; "" for any.
func (p *Person) Purposes(token string, e affinity.Event, facet string, receipt int64) []string {
	of := p.grantedOf(token)
	return of.setting.Counting(of.consents, e, facet, receipt)
}

func (p *Person) grantedOf(token string) *granted {
	for i := range p.Others {
		if token == p.Others[i].Token {
			return &p.Others[i].granted
		}
	}
	return &p.granted
}

// ReadOriginals calls fn for the events of a range of time, in the order of time: all those in the user's own
// log, and those of other tokens that count for the user. token is that of the log which has the event. log is that of
// the region that holds the user.
func (p *Person) ReadOriginals(ctx context.Context, log store.Log, within history.Range,
	fn func(token string, row store.LogRow, original []byte) error) error {
	own := []store.UserRange{{User: p.User, From: within.From, To: within.To}}
	if len(p.Others) == 0 {
		return log.ReadOriginals(ctx, own, fn)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heads := []*head{begin(events(ctx, log, own, func(store.LogRow) bool { return true }))}
	for i := range p.Others {
		o, from := &p.Others[i], log
		if o.log != nil {
			from = *o.log
		}
		heads = append(heads, begin(events(ctx, from, o.ranges(within), o.counts)))
	}
	defer func() {
		for _, h := range heads {
			h.stop()
		}
	}()
	for {
		first := earliest(heads)
		if first == nil {
			return nil
		}
		if first.err != nil {
			return first.err
		}
		if err := fn(first.token, first.row, first.original); err != nil {
			return err
		}
		first.advance()
	}
}

// ranges returns the parts of the token's log within a range that may count for the user.
func (o *Other) ranges(within history.Range) []store.UserRange {
	_, parts := cut(nil, []history.Range{within}, o.intervals)
	ranges := make([]store.UserRange, len(parts))
	for i, r := range parts {
		ranges[i] = store.UserRange{User: o.Token, From: r.From, To: r.To}
	}
	return ranges
}

// counts reports whether an event of these ranges counts for the user.
func (o *Other) counts(row store.LogRow) bool {
	return !row.Excluded(o.row) && keeps(o.view, row) && !o.links.Dropped(row.Time, row.Receipt())
}

// logged is an event of a log, or why the log cannot be read further.
type logged struct {
	token    string
	row      store.LogRow
	original []byte
	err      error
}

// errNobodyAsks ends the reading of a log.
var errNobodyAsks = errors.New("enough")

// events reads the events of ranges that count. The reading waits while nobody asks for the next one.
func events(ctx context.Context, log store.Log, ranges []store.UserRange,
	counts func(store.LogRow) bool) iter.Seq[logged] {
	return func(yield func(logged) bool) {
		err := log.ReadOriginals(ctx, ranges, func(token string, row store.LogRow, original []byte) error {
			if counts(row) && !yield(logged{token: token, row: row, original: original}) {
				return errNobodyAsks
			}
			return nil
		})
		if err != nil && !errors.Is(err, errNobodyAsks) {
			yield(logged{err: err})
		}
	}
}

// head is the next event of a log.
type head struct {
	logged
	more bool
	next func() (logged, bool)
	stop func()
}

func begin(all iter.Seq[logged]) *head {
	h := &head{}
	h.next, h.stop = iter.Pull(all)
	h.advance()
	return h
}

func (h *head) advance() { h.logged, h.more = h.next() }

// earliest returns the head with the earliest event, or one with an error; nil if no log has more events.
func earliest(heads []*head) *head {
	var first *head
	for _, h := range heads {
		switch {
		case !h.more:
		case h.err != nil:
			return h
		case first == nil || h.row.Pos.Compare(first.row.Pos) < 0:
			first = h
		}
	}
	return first
}
