package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/store"
)

// deletions adds who was deleted or has opted out and, after the events, how tokens are linked.
func (p *dumpPage) deletions(ctx context.Context) error {
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
	if p.at.Part == dumpLater {
		p.endUsers(dumpEnd)
	} else {
		p.endUsers(dumpEvents)
	}
	return nil
}

func (p *dumpPage) addUser(user string, row store.User) error {
	if p.app.Residency.On() && row.Owner.State == store.Moved {
		return nil // the region in which the user lives says it
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
