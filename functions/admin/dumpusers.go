package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// users adds what the part says of users: their consents, who was deleted or has opted out or, after the events, both,
// and how tokens are linked.
func (p *dumpPage) users(ctx context.Context) error {
	read, after := 0, p.at.After
	err := p.here().Users.ScanUsers(ctx, p.app.ID, after, "", dumpUsers, store.UserState,
		func(user string, row store.User) error {
			read++
			p.at.After = user
			if user == after {
				return nil
			}
			if err := p.addUser(user, row); err != nil {
				return err
			}
			if len(p.lines) >= dumpBytes {
				return errPageFull
			}
			return nil
		})
	if errors.Is(err, errPageFull) {
		return nil
	}
	if err != nil || read == dumpUsers {
		return err
	}
	p.endUsers(map[dumpPart]dumpPart{
		dumpConsents: dumpDeletions, dumpDeletions: dumpEvents, dumpLater: dumpEnd,
	}[p.at.Part])
	return nil
}

func (p *dumpPage) addUser(user string, row store.User) error {
	if p.app.Residency.On() && row.Owner.State == store.Moved {
		return nil // the region in which the user lives says it
	}
	if p.at.Part != dumpDeletions {
		if err := p.addConsents(user, row); err != nil || p.at.Part == dumpConsents {
			return err
		}
	}
	if row.DeletedUntil != 0 { // an opt-out raises it, too
		if err := p.add(export.NewDeletion(user, row.Deleted(), row.OptedOut)); err != nil {
			return err
		}
	}
	if p.at.Part != dumpLater || len(row.Links) == 0 {
		return nil
	}
	line, linked, err := export.NewLinks(user, row)
	if err != nil {
		return fmt.Errorf("row of %s,%s: %w", p.app.ID, user, err)
	}
	if !linked {
		return nil
	}
	return p.add(line)
}

func (p *dumpPage) addConsents(user string, row store.User) error {
	if !p.app.Purposes.On() || len(row.Consents) == 0 {
		return nil
	}
	c, err := consent.Parse(row.Consents)
	if err != nil {
		return fmt.Errorf("row of %s,%s: %w", p.app.ID, user, err)
	}
	line, said := export.NewConsents(user, p.app.Purposes, c)
	if !said {
		return nil
	}
	return p.add(line)
}

// viewOf returns what is kept of the events of a user.
func (p *dumpPage) viewOf(user string, row store.User) (*consent.View, error) {
	if !p.app.Purposes.On() {
		return nil, nil
	}
	c, err := consent.Parse(row.Consents)
	if err != nil {
		return nil, fmt.Errorf("row of %s,%s: %w", p.app.ID, user, err)
	}
	view, _ := p.app.Purposes.Of(c, consent.Kept, 0)
	return view, nil
}
