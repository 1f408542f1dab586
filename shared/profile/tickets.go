package profile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// maxTickets is the number of tickets that one message draws at a time.
	maxTickets = 32
	// maxUncovers bounds how often one message uncovers a user's blocks. Each time
	// after the first, a fold has covered the events again.
	maxUncovers = 50
)

// change is a kind of change of a manifest. A manifest's version is ticket x 4 +
// kind of change. Tickets are unique, so versions never repeat, and a
// compare-and-swap on the version cannot mistake one manifest for another.
type change int64

const (
	uncovered change = iota
	announced
	committed
	trimmed
	changes
)

// version returns the version of a manifest that is changed under a ticket.
func version(ticket int64, c change) int64 { return ticket*int64(changes) + int64(c) }

// ticketOf returns the ticket under which a manifest of a version was changed.
func ticketOf(version int64) int64 { return version / int64(changes) }

// tickets draws tickets, and changes manifests under them.
type tickets struct{ *env }

// drawAll draws a ticket for each user at which no block covers that user's events.
// events holds their positions by user token. A user with a manifest of a newer
// version has a ticket and a fault.
func (t *tickets) drawAll(ctx context.Context, app config.App, events map[string][]history.Pos) ([]*user, error) {
	return t.drawEach(ctx, app.ID, events, t.taker(app))
}

// markAll is drawAll with a mark in the request of each ticket.
func (t *tickets) markAll(ctx context.Context, app config.App, events map[string][]history.Pos) ([]*user, error) {
	return t.drawEach(ctx, app.ID, events, t.marker(app))
}

// taker draws a ticket.
type taker func(ctx context.Context, appID, token string) (store.User, error)

// taker returns what draws the tickets of an app: with the links of the token if it has any.
func (t *tickets) taker(app config.App) taker {
	if app.Identity.On() {
		return t.store.Users.TakeLinked
	}
	return t.store.Users.TakeTicket
}

// marker returns what draws the tickets of an app with a mark.
func (t *tickets) marker(app config.App) taker {
	if app.Identity.On() {
		return t.store.Users.TakeLinkedMark
	}
	return t.store.Users.TakeMark
}

func (t *tickets) drawEach(ctx context.Context, appID string, events map[string][]history.Pos,
	take taker) ([]*user, error) {
	users := make([]*user, 0, len(events))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxTickets)
	for token, positions := range events {
		u := &user{token: token}
		users = append(users, u)
		g.Go(func() error {
			err := t.drawWith(ctx, appID, u, positions, take)
			if ofOne(err) {
				u.fault, err = err, nil
			}
			return err
		})
	}
	return users, g.Wait()
}

// ofOne reports whether an error of a ticket concerns its user alone: their manifest is of a
// newer version, their consents are damaged, or another region owns them.
func ofOne(err error) bool {
	_, moved := errors.AsType[elsewhere](err)
	return moved || errors.Is(err, ErrManifest) || errors.Is(err, consent.ErrDamaged)
}

// draw draws a ticket at which no block covers the given events of a user. An event
// in a range that a block covers, or that a fold has announced, is late. draw then
// uncovers the range and draws another ticket, because a reader sees the event
// only from then on.
func (t *tickets) draw(ctx context.Context, app config.App, u *user, events []history.Pos) error {
	return t.drawWith(ctx, app.ID, u, events, t.taker(app))
}

func (t *tickets) drawWith(ctx context.Context, appID string, u *user, events []history.Pos, take taker) error {
	u.late = false
	settled := false
	for range maxUncovers {
		row, err := take(ctx, appID, u.token)
		if err != nil {
			return err
		}
		if t.unsettled(row) {
			if err := t.settle(ctx, appID, u.token, row); err != nil {
				return err
			}
			settled = true
			continue
		}
		row.Settled = settled
		if err := t.setRow(ctx, appID, u, row); err != nil {
			return err
		}
		next, late := uncover(u.manifest, row.Tombstone(), events)
		if !late {
			return nil
		}
		u.late = true
		t.counters.Uncovered.Add(1)
		next.Version = version(row.Ticket, uncovered)
		if _, err := t.swap(ctx, appID, u.token, u.manifest, next, nil); err != nil {
			return err
		}
	}
	return fmt.Errorf("uncover the history of %s,%s: folds covered it again %d times", appID, u.token, maxUncovers)
}

// uncover returns the manifest without leftovers and without the ranges that hold one
// of the events. It reports whether it removed a range.
func uncover(m history.Manifest, t affinity.Tombstone, events []history.Pos) (history.Manifest, bool) {
	late := func(r history.Range) bool {
		return leftover(t, r) || slices.ContainsFunc(events, func(p history.Pos) bool {
			return r.From.Compare(p) <= 0 && p.Compare(r.To) < 0
		})
	}
	next := m.Without(func(b history.Block) bool { return late(b.Range) })
	changed := len(next.Blocks) < len(m.Blocks)
	if m.Announced != nil && late(m.Announced.Range) {
		next.Announced, next.Complete, changed = nil, 0, true
	}
	return next, changed
}

// repair removes bad blocks from the manifests of users and replaces damaged
// manifests, so that the next fold packs their ranges again. It only logs its
// errors, because the profiles come from the log and are right.
func (t *tickets) repair(ctx context.Context, appID string, users []*user) {
	var wg sync.WaitGroup
	for _, u := range users {
		if len(u.badBlocks) == 0 && !u.damaged {
			continue
		}
		wg.Go(func() {
			if err := t.removeBlocks(ctx, appID, u.token, func(b history.Block) bool { return u.badBlocks[b.ID] }); err != nil {
				t.log.LogAttrs(ctx, slog.LevelWarn, "damaged blocks stay in the manifest",
					slog.String("app", appID), slog.String("user", u.token), slog.Any("error", err))
			}
		})
	}
	wg.Wait()
}

// removeBlocks removes the blocks for which remove returns true from a user's
// manifest.
func (t *tickets) removeBlocks(ctx context.Context, appID, token string, remove func(history.Block) bool) error {
	row, err := t.store.Users.TakeTicket(ctx, appID, token)
	if err != nil {
		return err
	}
	u := &user{token: token}
	if err := t.setRow(ctx, appID, u, row); err != nil {
		return err
	}
	if u.damaged {
		_, err := t.replaceManifest(ctx, appID, u)
		return err
	}
	next := u.manifest.Without(remove)
	if len(next.Blocks) == len(u.manifest.Blocks) {
		return nil
	}
	next.Version = version(row.Ticket, uncovered)
	_, err = t.swap(ctx, appID, token, u.manifest, next, nil)
	return err
}

// replaceManifest replaces a damaged manifest by an empty one. A damaged manifest
// has no version to compare, so the swap compares the ticket counter. It reports
// whether it replaced the manifest: another process may have drawn a ticket first.
func (t *tickets) replaceManifest(ctx context.Context, appID string, u *user) (bool, error) {
	empty := history.Manifest{Version: version(u.row.Ticket, uncovered)}
	done, err := t.commit(ctx, appID, u, empty, nil)
	if done {
		u.manifest, u.damaged = empty, false
	}
	return done, err
}

// position returns the position of an event in its user's log.
func position(ev *store.LogEvent) history.Pos {
	return history.Pos{Time: max(ev.Time, 0), ID: ev.ID}
}

// positions returns the positions of events by user token.
func positions(events []store.LogEvent) map[string][]history.Pos {
	byUser := make(map[string][]history.Pos, len(events))
	for i := range events {
		byUser[events[i].User] = append(byUser[events[i].User], position(&events[i]))
	}
	return byUser
}
