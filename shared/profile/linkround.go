package profile

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/wire"
)

// maxReplay (ms) is for how long evidence may be delivered again: Pub/Sub keeps messages for 7 days.
const maxReplay = concurrency + concurrency/7

// tendLinks does the nightly work on the links of a group: it marks those whom a process that died
// has not marked, and drops what nobody needs any more.
func (run *bulkRun) tendLinks(ctx context.Context, gr *group) error {
	if !run.app.Identity.On() {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxFolds)
	for _, u := range gr.users {
		if len(u.row.Links) == 0 {
			continue
		}
		token, row, from := u.token, u.row, u.windowStart().Time
		g.Go(func() error {
			err := run.linker.tend(ctx, run.app, token, row, from)
			if errors.Is(err, wire.ErrDamaged) || errors.Is(err, wire.ErrNewer) {
				run.logFault(ctx, run.app.ID, token, err) // the other users' round goes on
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

// tend tends the links of a token. Entries whose interval ended before from (ms) are out of the
// window.
func (l *linker) tend(ctx context.Context, app config.App, token string, row store.User, from int64) error {
	cell, err := linksOf(app.ID, token, row)
	if err != nil {
		return err
	}
	if cell.Role == links.Known {
		return l.sweep(ctx, app, token)
	}
	all := func(links.Owed) bool { return true }
	if err := l.markOwed(ctx, app, token, place{at: l.engine, row: row}, all); err != nil {
		return err
	}
	_, err = l.changeLinks(ctx, app, token, func(cell links.Cell, x links.Exclusion) (links.Cell, bool) {
		return cell.Trim(x, from, l.now().UnixMilli()-maxReplay)
	})
	return err
}

// sweep completes the deletion of a known user, and takes the tokens off the list that are no longer
// linked. It draws a ticket first, and changes the list only while that is the newest: who links a
// token draws a later one, and looks whether the list has the token.
func (l *linker) sweep(ctx context.Context, app config.App, known string) error {
	row, err := l.store.Users.TakeLinked(ctx, app.ID, known)
	if err != nil {
		return err
	}
	cell, err := linksOf(app.ID, known, row)
	if err != nil || len(cell.List) == 0 {
		return err
	}
	tokens := cell.Tokens()
	rows, err := l.store.Users.ReadUserStates(ctx, app.ID, tokens) // the round waits while the app moves
	if err != nil {
		return err
	}
	next, spent := cell, false
	for _, token := range tokens {
		of, err := linksOf(app.ID, token, rows[token])
		if err != nil {
			return err
		}
		x := exclusionOf(rows[token])
		if _, due := of.Kill(known, row.Deleted(), x); due {
			// A deletion has died, or a message that was slower has linked the token since.
			if err := l.kill(ctx, app, token, known, row.Deleted()); err != nil {
				return err
			}
		} else if of.Spent(known, x) {
			next, spent = next.Unlist(token), true
		}
	}
	if !spent {
		return nil
	}
	_, err = l.store.Users.SwapLinksAt(ctx, app.ID, known, row, next.Append(nil))
	return err
}
