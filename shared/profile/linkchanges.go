package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
)

// ErrNotLinked reports that two tokens are not linked, and were not before.
var ErrNotLinked = errors.New("the tokens are not linked")

// LinkRefused is the error of a link that is not made.
type LinkRefused struct{ Reason links.Reason }

// Error says why.
func (e LinkRefused) Error() string { return "the tokens are not linked: " + string(e.Reason) }

// Identities are the operations on links between the tokens of an app.
type Identities struct{ engine *Engine }

// IdentitiesOf returns those of an engine.
func IdentitiesOf(e *Engine) Identities { return Identities{e} }

// Link links an anonymous token to a known user as of now. by is the reason in the words of the
// person who asks. If the tokens are linked it changes nothing. The error is of type LinkRefused if the
// rows of the tokens do not allow the link.
func (i Identities) Link(ctx context.Context, app config.App, token, known, by string) error {
	at, err := i.engine.at(app)
	if err != nil {
		return err
	}
	l := at.writer.linker
	return l.linkUnlogged(ctx, app, token, func() links.Evidence {
		now := l.now().UnixMilli()
		return links.Evidence{Known: known, Time: now, Receipt: now, Source: links.FromRequest, By: by}
	})
}

// Unlink undoes the links of an anonymous token to a known user: both profiles are what they would
// be without. Evidence that was received until the time that it returns links no more. The error is
// ErrNotLinked if there is nothing to undo.
func (i Identities) Unlink(ctx context.Context, app config.App, token, known string) (time.Time, error) {
	at, err := i.engine.at(app)
	if err != nil {
		return time.Time{}, err
	}
	return at.writer.linker.unlink(ctx, app, token, known)
}

// SetRefused sets what is called for an event of an app that asks for a link and gets none: once for each
// delivery of the event, or more often if other changes of the links come between. Call it before the engine is used.
func (i Identities) SetRefused(refused func(app string, r store.RefusedLink)) {
	for _, at := range i.engine.all() {
		at.writer.linker.refused = refused
	}
}

// linkUnlogged links a token by evidence that is in no log. evidence is called under the token's ticket.
func (l *linker) linkUnlogged(ctx context.Context, app config.App, token string, evidence func() links.Evidence) error {
	f := &following{linker: l, app: app, token: token, deliver: l.deliverMark}
	if err := l.gather(ctx, app, token, evidence().Known); err != nil {
		return err
	}
	for range maxLinkAttempts {
		var err error
		if f.place, err = l.drawLinked(ctx, app, token, false, nil); err != nil {
			return err
		}
		if f.row.Gone() {
			return LinkRefused{links.OptedOut}
		}
		if f.cell, err = linksOf(app.ID, token, f.row); err != nil {
			return err
		}
		e := evidence()
		if exclusionOf(f.row).Covers(e.Time, e.Receipt) {
			return LinkRefused{links.Deleted}
		}
		known, err := f.excludedBy(ctx, e)
		if err != nil {
			return err
		}
		done, err := f.linkBy(ctx, e, known)
		if err == nil && done {
			done, err = f.bring(ctx)
		}
		switch {
		case err != nil:
			return err
		case done && f.reason != "":
			return f.refuseUnlogged(ctx, e)
		case done:
			return f.list(ctx, app, token)
		}
	}
	return fmt.Errorf("link %s,%s: its links changed %d times", app.ID, token, maxLinkAttempts)
}

// refuseUnlogged records that evidence was refused, and returns why.
func (f *following) refuseUnlogged(ctx context.Context, e links.Evidence) error {
	if e.Source != links.FromRequest {
		row, err := f.rowOf(ctx, f.app, e.Known)
		if err != nil {
			return err
		}
		f.refuse(e, exclusionOf(row))
	}
	return LinkRefused{f.reason}
}

// excludedBy returns what the row of the known user excludes, if an entry seems to satisfy the evidence: one from
// before a deletion of the user does not. Where the evidence needs an entry, linkBy reads the row itself.
func (f *following) excludedBy(ctx context.Context, e links.Evidence) (links.Exclusion, error) {
	if !slices.Contains(f.cell.Holders(e.Time, exclusionOf(f.row)), e.Known) {
		return links.Exclusion{}, nil
	}
	row, err := f.rowOf(ctx, f.app, e.Known)
	return exclusionOf(row), err
}

func (l *linker) unlink(ctx context.Context, app config.App, token, known string) (time.Time, error) {
	for range maxLinkAttempts {
		of, err := l.drawLinked(ctx, app, token, false, nil)
		if err != nil {
			return time.Time{}, err
		}
		cell, err := linksOf(app.ID, token, of.row)
		if err != nil {
			return time.Time{}, err
		}
		// The clock is read under the ticket: a process that links by evidence of before draws a later one.
		received := l.now().Add(l.slack).UnixMilli()
		if next, linked := cell.Unlink(known, received); linked {
			value := next.Append(nil)
			done, err := of.at.env.store.Users.SwapLinksAt(ctx, app.ID, token, of.row, value)
			if err != nil {
				return time.Time{}, err
			}
			if !done {
				continue
			}
			cell, of.row.Links = next, value
		}
		until := cell.UnlinkedUntil(known)
		if until == 0 {
			return time.Time{}, ErrNotLinked
		}
		if err := l.markOwed(ctx, app, token, of, only(links.Owed{Known: known})); err != nil {
			return time.Time{}, err
		}
		changed := []string{token, known}
		if app.Residency.On() {
			changed = changed[:1] // the known user may live elsewhere, and is listed with their mark
		}
		return time.UnixMilli(until), of.list(ctx, app, changed...)
	}
	return time.Time{}, fmt.Errorf("unlink %s,%s: messages drew tickets %d times", app.ID, token, maxLinkAttempts)
}
