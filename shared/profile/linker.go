package profile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
)

// maxLinkAttempts bounds how often a change of links starts again, because another one came first.
const maxLinkAttempts = 50

// linker links the tokens of persons by the evidence of events, and brings the events of anonymous
// tokens to the known users for whom they count. The section "Links between tokens" of
// functions/docs/design/links.md says why each step comes where it does.
type linker struct {
	*env
	logs    *logs
	tickets *tickets
	changes *changeList
	// refused is called for an event that asks for a link and gets none; nil: nobody asks.
	refused func(app string, r store.RefusedLink)
}

// judge returns events without the evidence that no row need be read for to refuse it: tokens that name
// nobody, and keys that may not say who has signed in.
func (l *linker) judge(app config.App, events []store.LogEvent) []store.LogEvent {
	if !app.Identity.On() {
		return events
	}
	var judged []store.LogEvent
	for i := range events {
		e := &events[i]
		if e.Known == "" || l.accepts(app, e.User, evidenceOf(e)) {
			continue
		}
		if judged == nil {
			judged = slices.Clone(events)
		}
		judged[i].Known = ""
	}
	if judged == nil {
		return events
	}
	return judged
}

// accepts reports whether evidence may ask rows for a link, by what its tokens and its key are. If not, it is
// refused.
func (l *linker) accepts(app config.App, token string, e links.Evidence) bool {
	var reason links.Reason
	switch {
	case links.NamesNobody(token) || links.NamesNobody(e.Known):
		reason = links.BadValue
	case e.Weak && !app.Identity.TrustPages:
		reason = links.WeakKey
	default:
		return true
	}
	if l.refused != nil && e.Known != token {
		l.refused(app.ID, refusedLink(token, e, reason))
	}
	return false
}

// delivery brings events of other tokens to a known user: it draws their ticket after the caller
// has drawn that of the events' own token, with a mark if asked, and returns their row at that ticket.
type delivery func(ctx context.Context, app config.App, known string, events own) (place, error)

// redraw draws another ticket of a token for events of a message.
type redraw func(ctx context.Context, token string, events own) (*user, error)

// drawHere is a redraw of an app that rests.
func (l *linker) drawHere(app config.App) redraw {
	return func(ctx context.Context, token string, events own) (*user, error) {
		u := &user{token: token}
		return u, l.tickets.draw(ctx, app, u, events.at)
	}
}

// following is an anonymous token, or one that may be, whose events are brought to where they count.
type following struct {
	*linker
	place  // at the token's ticket
	app    config.App
	token  string
	cell   links.Cell
	events []*store.LogEvent
	// unsure says that one of the events was late, or a row of the log may lack it.
	unsure  bool
	deliver delivery
	shut    []links.Listed // tokens that the limit has closed for one of the links
	by      string         // the known user whose limit has
	reason  links.Reason   // of the last evidence that made no link
	named   naming
	changed bool // links of the token
}

// follow links a token by the evidence of its events, which are in the log, and brings them to
// the known users for whom they count. The row of the user is that of a ticket drawn after the events were
// logged. It returns the events that it has dropped because of the users whom they name. An error of type elsewhere
// says that the token is owned in another region.
func (l *linker) follow(ctx context.Context, app config.App, u *user, events own, deliver delivery,
	draw redraw) (naming, error) {
	evidence := func(e *store.LogEvent) bool { return e.Known != "" }
	if len(u.row.Links) == 0 && !slices.ContainsFunc(events.events, evidence) {
		return nil, nil
	}
	f := &following{linker: l, place: place{at: l.engine, row: u.row}, app: app, token: u.token, deliver: deliver}
	f.unsure = u.late || events.refused
	for range maxLinkAttempts {
		var err error
		if f.cell, err = linksOf(app.ID, f.token, f.row); err != nil {
			return nil, err
		}
		f.events = f.counting(events.events)
		done, err := f.link(ctx)
		if err == nil && done {
			done, err = f.bring(ctx)
		}
		if done && err == nil && f.changed {
			err = f.list(ctx, app, f.token) // it may be another's now, or its own again
		}
		if done || err != nil {
			return f.named, err
		}
		again, err := draw(ctx, f.token, events.without(f.named))
		if err != nil {
			return nil, err
		}
		f.row, f.unsure = again.row, f.unsure || again.late
	}
	return nil, fmt.Errorf("link %s,%s: its links changed %d times", app.ID, f.token, maxLinkAttempts)
}

// counting returns the events that neither the token's row nor that of the user whom they name excludes, by time.
func (f *following) counting(events []*store.LogEvent) []*store.LogEvent {
	var kept []*store.LogEvent
	for _, e := range events {
		if _, dropped := f.named[e]; dropped {
			continue
		}
		if !f.row.Excludes(e.Type, e.Time, e.ReceivedAt()) && !f.cell.Dropped(e.Time, e.ReceivedAt()) {
			kept = append(kept, e)
		}
	}
	slices.SortStableFunc(kept, func(a, b *store.LogEvent) int { return cmp.Compare(a.Time, b.Time) })
	return kept
}

func evidenceOf(e *store.LogEvent) links.Evidence {
	return links.Evidence{Known: e.Known, Time: e.Time, Receipt: e.ReceivedAt(), Source: links.FromEvent, By: e.ID,
		Weak: !e.Strong, Key: e.KeyID}
}

// link makes the links that the events ask for. False means that the token's links have changed
// since its ticket.
func (f *following) link(ctx context.Context) (bool, error) {
	for _, e := range slices.Clone(f.events) {
		if _, dropped := f.named[e]; dropped || e.Known == "" {
			continue
		}
		if e.Known == f.token {
			if done, err := f.beKnown(ctx); !done || err != nil {
				return done, err
			}
			continue
		}
		done, err := f.linkBy(ctx, evidenceOf(e), links.Exclusion{})
		if err == nil && done && f.reason != "" {
			done, err = f.dropRefused(ctx, e)
		}
		if !done || err != nil {
			return done, err
		}
	}
	return true, nil
}

// beKnown gives a token without a role that of a known user.
func (f *following) beKnown(ctx context.Context) (bool, error) {
	if f.cell.Role != links.None {
		return true, nil
	}
	next := f.cell
	next.Role = links.Known
	next.Number++
	return f.swap(ctx, next)
}

// linkBy links the token by evidence, if it asks for a link. known is what the known user's row
// excludes, as far as it has been read. False means that the token's links have changed.
func (f *following) linkBy(ctx context.Context, e links.Evidence, known links.Exclusion) (bool, error) {
	asks, reason := f.cell.Asks(e, exclusionOf(f.row), known)
	if f.reason = reason; reason == links.Shared {
		if next, open := f.cell.Shut("", e.Time); open {
			return f.swap(ctx, next)
		}
	}
	if !asks {
		if next, stronger := f.cell.Strengthen(e, exclusionOf(f.row)); stronger && reason == "" {
			return f.swap(ctx, next)
		}
		return true, nil
	}
	to, reason, err := f.admit(ctx, e)
	if err != nil {
		return false, err
	}
	if f.reason = reason; reason != "" {
		return true, nil
	}
	return f.swap(ctx, f.cell.Link(e, exclusionOf(f.row), exclusionOf(to.row), f.app.Identity.Lookback.Milliseconds()))
}

// refuse records why evidence has made no link, by what the known user's row excludes. Who asks for a link by a request
// gets the reason in the answer.
func (f *following) refuse(e links.Evidence, known links.Exclusion) {
	if f.refused == nil || e.Source == links.FromRequest {
		return
	}
	r := refusedLink(f.token, e, f.reason)
	if known.OptedOut != 0 || known.Covers(e.Time, e.Receipt) {
		r = store.RefusedLink{Reason: r.Reason}
	}
	f.refused(f.app.ID, r)
}

// refusedLink names no user who was deleted or has opted out.
func refusedLink(token string, e links.Evidence, reason links.Reason) store.RefusedLink {
	if reason == links.Deleted || reason == links.OptedOut {
		return store.RefusedLink{Reason: string(reason)}
	}
	return store.RefusedLink{User: token, Known: e.Known, Time: e.Time, Event: e.By, Reason: string(reason)}
}

// swap changes the links of the token, if they are those that it knows and the row still counts.
func (f *following) swap(ctx context.Context, next links.Cell) (bool, error) {
	value := next.Append(nil)
	done, err := f.at.env.store.Users.SwapLinks(ctx, f.app.ID, f.token, f.row, value)
	if done {
		f.changed = true
		f.cell, f.row.Links = next, value
	}
	return done, err
}

// admit makes the known user's row list the token, or returns why it refuses the evidence.
func (f *following) admit(ctx context.Context, e links.Evidence) (place, links.Reason, error) {
	var reason links.Reason
	var shut []links.Listed
	to, err := f.changeLinks(ctx, f.app, e.Known, func(cell links.Cell, of links.Exclusion) (links.Cell, bool) {
		shut, reason = nil, cell.Admits(f.token, e, of)
		if reason != "" || !cell.Lacks(f.token, e) {
			return cell, false
		}
		next := cell.Admit(f.token, e)
		shut = next.ShutSince(cell)
		return next, true
	})
	if err == nil && len(shut) > 0 {
		f.shut, f.by = shut, e.Known
	}
	return to, reason, err
}

// bring brings the events to the known users for whom they count, and marks those whom changes of
// the token's links concern. False means that the token's links have changed.
func (f *following) bring(ctx context.Context) (bool, error) {
	x := exclusionOf(f.row)
	for _, known := range f.concerned(x) {
		if done, err := f.bringTo(ctx, known, x); !done || err != nil {
			return done, err
		}
	}
	for _, l := range f.shut {
		if err := f.shutLink(ctx, f.app, l.Token, f.by, l.Shut); err != nil {
			return false, err
		}
	}
	f.shut = nil
	return true, nil
}

// concerned returns the known users for whom one of the events counts, and those whom nobody has
// marked for a change. Of a deleted one only the deletion knows whom it has marked.
func (f *following) concerned(x links.Exclusion) []string {
	var all []string
	for _, o := range f.cell.Owes(x) {
		if !o.Dead {
			all = append(all, o.Known)
		}
	}
	for _, e := range f.events {
		all = append(all, f.cell.Holders(e.Time, x)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// bringTo brings the events that count for a known user to them.
func (f *following) bringTo(ctx context.Context, known string, x links.Exclusion) (bool, error) {
	for range maxLinkAttempts {
		events := own{mark: f.cell.Owing(known, x), refused: f.unsure}
		for _, e := range f.events {
			if slices.Contains(f.cell.Holders(e.Time, x), known) {
				events.linked = append(events.linked, e)
			}
		}
		to, err := f.deliver(ctx, f.app, known, events)
		if err != nil {
			return false, err
		}
		cell, err := linksOf(f.app.ID, known, to.row)
		if err != nil {
			return false, err
		}
		if len(f.naming(known, to.row)) > 0 {
			// What it is given counts none of these.
			if err := f.drop(ctx, known, to.row); err != nil {
				return false, err
			}
		}
		of := exclusionOf(to.row)
		listed, shut := cell.Lists(f.token)
		switch {
		case len(events.linked) > 0 && len(f.cell.Intervals(known, x, of, links.Open)) == 0:
			// The link is from before a deletion of the known user. Later evidence makes another one.
			if linked, err := f.relink(ctx, known, of); linked || err != nil {
				return false, err
			}
		case shut && f.cell.Open(known):
			return false, f.shutLink(ctx, f.app, f.token, known, shutAt(cell, f.token))
		case !listed && len(f.cell.Intervals(known, x, of, links.Open)) > 0:
			// The row may have lost the token between the reading of its list and the link.
			next := cell.Relist(f.token, f.cell.Newest(known))
			if _, err := to.at.env.store.Users.SwapLinks(ctx, f.app.ID, known, to.row, next.Append(nil)); err != nil {
				return false, err
			}
			continue
		}
		if events.mark {
			if err := f.pay(ctx, links.Owed{Known: known}, x); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return false, fmt.Errorf("link %s,%s: the list of the known user changed %d times", f.app.ID, f.token, maxLinkAttempts)
}

func shutAt(cell links.Cell, token string) int64 {
	for _, l := range cell.List {
		if l.Token == token {
			return l.Shut
		}
	}
	return 0
}

// relink links the token by evidence that was received after the deletion of a known user. It
// reports whether the token's links have changed, by this process or another.
func (f *following) relink(ctx context.Context, known string, of links.Exclusion) (bool, error) {
	for _, e := range f.events {
		if e.Known != known || of.Covers(e.Time, e.ReceivedAt()) {
			continue
		}
		before := f.row.Links
		if done, err := f.linkBy(ctx, evidenceOf(e), of); !done || err != nil {
			return true, err
		}
		if f.reason != "" {
			f.refuse(evidenceOf(e), of)
		}
		return !bytes.Equal(before, f.row.Links), nil
	}
	return false, nil
}

// pay notes that a known user was marked. If the links have changed since, the process that changed them does.
func (f *following) pay(ctx context.Context, o links.Owed, x links.Exclusion) error {
	if next, changed := f.cell.Pay(o, x); changed {
		_, err := f.swap(ctx, next)
		return err
	}
	return nil
}
