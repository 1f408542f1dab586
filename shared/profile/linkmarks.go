package profile

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// changeLinks changes the links of a token by a function of them and of what the row excludes, which
// returns false if there is nothing to change. It returns the row of the token afterwards.
func (l *linker) changeLinks(ctx context.Context, app config.App, token string,
	change func(links.Cell, links.Exclusion) (links.Cell, bool)) (store.User, error) {
	for range maxLinkAttempts {
		row, err := l.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		if err != nil {
			return row, err
		}
		cell, err := linksOf(app.ID, token, row)
		if err != nil {
			return row, err
		}
		next, changes := change(cell, exclusionOf(row))
		if !changes {
			return row, nil
		}
		value := next.Append(nil)
		done, err := l.store.Users.SwapLinks(ctx, app.ID, token, row.Links, value)
		if err != nil {
			return row, err
		}
		if done {
			row.Links = value
			return row, nil
		}
	}
	return store.User{}, fmt.Errorf("change the links of %s,%s: they changed %d times", app.ID, token, maxLinkAttempts)
}

// shutLink ends the open link of a token to a known user, who has too many.
func (l *linker) shutLink(ctx context.Context, app config.App, token, known string, at int64) error {
	row, err := l.changeLinks(ctx, app, token, func(cell links.Cell, _ links.Exclusion) (links.Cell, bool) {
		return cell.Shut(known, at)
	})
	if err != nil {
		return err
	}
	if err := l.markOwed(ctx, app, token, row, only(links.Owed{Known: known})); err != nil {
		return err
	}
	return l.changes.list(ctx, app, token)
}

// kill makes the intervals of a token dead that count for a known user whom t deletes, and marks
// the token. It repeats what an earlier attempt has left.
func (l *linker) kill(ctx context.Context, app config.App, token, known string, t affinity.Tombstone) error {
	row, err := l.changeLinks(ctx, app, token, func(cell links.Cell, x links.Exclusion) (links.Cell, bool) {
		return cell.Kill(known, t, x)
	})
	if err != nil {
		return err
	}
	return l.markOwed(ctx, app, token, row, only(links.Owed{Known: known, Dead: true}))
}

// only asks for one mark.
func only(one links.Owed) func(links.Owed) bool { return func(o links.Owed) bool { return o == one } }

// markOwed marks the users whom changes of a token's links concern, as far as asked, and notes
// it: the known ones, and the token itself where a known one was deleted. row is the token's.
func (l *linker) markOwed(ctx context.Context, app config.App, token string, row store.User,
	asked func(links.Owed) bool) error {
	cell, err := linksOf(app.ID, token, row)
	if err != nil {
		return err
	}
	x := exclusionOf(row)
	for _, o := range cell.Owes(x) {
		if !asked(o) {
			continue
		}
		marked := o.Known
		if o.Dead {
			marked = token
		}
		if _, err := l.mark(ctx, app, marked); err != nil {
			return err
		}
		next, changed := cell.Pay(o, x)
		if !changed {
			continue
		}
		value := next.Append(nil)
		done, err := l.store.Users.SwapLinks(ctx, app.ID, token, row.Links, value)
		if err != nil {
			return err
		}
		if !done {
			return nil // the process that changed the links sees what is owed
		}
		cell, row.Links = next, value
	}
	return nil
}

// mark draws a ticket of a user with a mark, which ends the validity of the stored profile, and
// lists the user as changed. It returns the row at the ticket.
func (l *linker) mark(ctx context.Context, app config.App, token string) (store.User, error) {
	u := &user{token: token}
	err := l.tickets.drawWith(ctx, app.ID, u, nil, l.store.Users.TakeLinkedMark)
	if err == nil {
		err = l.changes.list(ctx, app, token)
	}
	return u.row, err
}

// deliverMark is a delivery that leaves the computation to the next reader.
func (l *linker) deliverMark(ctx context.Context, app config.App, known string, _ own) (store.User, error) {
	return l.mark(ctx, app, known)
}
