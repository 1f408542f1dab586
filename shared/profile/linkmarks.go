package profile

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// changeLinks changes the links of a token, where it is owned, by a function of them and of what the row excludes,
// which returns false if there is nothing to change. It returns the row of the token afterwards.
func (l *linker) changeLinks(ctx context.Context, app config.App, token string,
	change func(links.Cell, links.Exclusion) (links.Cell, bool)) (place, error) {
	for range maxLinkAttempts {
		of, err := l.rowToChange(ctx, app, token)
		if err != nil {
			return of, err
		}
		cell, err := linksOf(app.ID, token, of.row)
		if err != nil {
			return of, err
		}
		next, changes := change(cell, exclusionOf(of.row))
		if !changes {
			return of, nil
		}
		value := next.Append(nil)
		done, err := of.at.env.store.Users.SwapLinks(ctx, app.ID, token, of.row, value)
		if err != nil {
			return of, err
		}
		if done {
			of.row.Links = value
			return of, nil
		}
	}
	return place{}, fmt.Errorf("change the links of %s,%s: they changed %d times", app.ID, token, maxLinkAttempts)
}

// shutLink ends the open link of a token to a known user, who has too many.
func (l *linker) shutLink(ctx context.Context, app config.App, token, known string, at int64) error {
	of, err := l.changeLinks(ctx, app, token, func(cell links.Cell, _ links.Exclusion) (links.Cell, bool) {
		return cell.Shut(known, at)
	})
	if err != nil {
		return err
	}
	if err := l.markOwed(ctx, app, token, of, only(links.Owed{Known: known})); err != nil {
		return err
	}
	return of.list(ctx, app, token)
}

// kill makes the intervals of a token dead that count for a known user whom t deletes, and marks
// the token. It repeats what an earlier attempt has left.
func (l *linker) kill(ctx context.Context, app config.App, token, known string, t affinity.Tombstone) error {
	of, err := l.changeLinks(ctx, app, token, func(cell links.Cell, x links.Exclusion) (links.Cell, bool) {
		return cell.Kill(known, t, x)
	})
	if err != nil {
		return err
	}
	return l.markOwed(ctx, app, token, of, only(links.Owed{Known: known, Dead: true}))
}

// only asks for one mark.
func only(one links.Owed) func(links.Owed) bool { return func(o links.Owed) bool { return o == one } }

// markOwed marks the users whom changes of a token's links concern, as far as asked, and notes
// it: the known ones, and the token itself where a known one was deleted. of has the token's row.
func (l *linker) markOwed(ctx context.Context, app config.App, token string, of place,
	asked func(links.Owed) bool) error {
	cell, err := linksOf(app.ID, token, of.row)
	if err != nil {
		return err
	}
	x := exclusionOf(of.row)
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
		done, err := of.at.env.store.Users.SwapLinks(ctx, app.ID, token, of.row, value)
		if err != nil {
			return err
		}
		if !done {
			return nil // the process that changed the links, or that meets them in the other region, sees what is owed
		}
		cell, of.row.Links = next, value
	}
	return nil
}

// mark draws a ticket of a user with a mark, which ends the validity of the stored profile, and
// lists the user as changed. It returns the row at the ticket.
func (l *linker) mark(ctx context.Context, app config.App, token string) (place, error) {
	of, err := l.drawLinked(ctx, app, token, true, nil)
	if err == nil {
		err = of.list(ctx, app, token)
	}
	return of, err
}

// deliverMark is a delivery that leaves the computation to the next reader.
func (l *linker) deliverMark(ctx context.Context, app config.App, known string, _ own) (place, error) {
	return l.mark(ctx, app, known)
}
