package profile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// The steps of a move, for one user each. Every step begins from what the row says, so it is
// safe to repeat, after a crash at any point and by several movers at once. Package
// move decides when each may run.

// MarkUser makes the region of the app the owner of a user. The app has rested there, so the
// row counts whatever it says. A row that an earlier move has left in another state gets a new
// epoch: what was done under the old one is no part of this move.
func (e *Engine) MarkUser(ctx context.Context, app config.App, user string) error {
	at, err := e.at(app)
	if err != nil {
		return err
	}
	marked, err := at.env.store.Users.SetOwner(ctx, app.ID, user, store.Owner{},
		store.Owner{Epoch: birthEpoch, State: store.Own})
	if marked || err != nil {
		return err
	}
	row, err := at.env.store.Users.ReadPrimary(ctx, app.ID, user, store.UserState)
	if err != nil || row.Owner.State == store.Own {
		return err
	}
	_, err = at.env.store.Users.SetOwner(ctx, app.ID, user, row.Owner,
		store.Owner{Epoch: row.Owner.Epoch + 1, State: store.Own})
	return err
}

// ErrUnfinished reports that the log of a user has not been copied within the time of a call.
// The next call continues.
var ErrUnfinished = errors.New("ran out of time while copying the user's log")

// logPage is how many rows of a log are copied between two looks at the clock.
const logPage = 20_000

// MoveUser moves a user to the region to which the app moves. It returns the number of rows
// of the log that it copied; none if another mover was faster. It moves nobody who has no
// owner yet: they begin where they belong. Once the engine's clock has reached until, it copies
// no further page of a log and returns ErrUnfinished.
func (e *Engine) MoveUser(ctx context.Context, app config.App, user string, until time.Time) (int, error) {
	from, to, err := e.move(app)
	if err != nil {
		return 0, err
	}
	copied := 0
	for range maxOwnerChanges {
		row, err := from.env.store.Users.ReadPrimary(ctx, app.ID, user, store.UserState)
		if err != nil {
			return copied, err
		}
		switch o := row.Owner; {
		case o.State == store.Nobodys:
			if app.Region != from.env.region || !row.Exists {
				return copied, nil
			}
			_, err = from.assignOwner(ctx, app, user) // a writer has ended before it did
		case o.State == store.Leaving && o.Region != to.env.region:
			// Another move has left it. What writers have logged since lies elsewhere.
			_, err = from.env.store.Users.SetOwner(ctx, app.ID, user, o, store.Owner{Epoch: o.Epoch + 1, State: store.Own})
		case o.State == store.Own:
			_, err = from.env.store.Users.SetOwner(ctx, app.ID, user, o,
				store.Owner{Epoch: o.Epoch + 1, State: store.Leaving, Region: to.env.region})
		case o.State == store.Leaving:
			// An event that is in the log of this region alone was written before the row was
			// Leaving, so the copy holds it.
			done := row.Copied
			if done.Move != app.Move.ID || done.Epoch != o.Epoch {
				done = store.LogCopy{Move: app.Move.ID, Epoch: o.Epoch}
			}
			rows, all, failed := to.env.store.Events.CopyLogFrom(ctx, from.env.store, app.ID, app.Log, user, done, logPage,
				func() bool { return e.env.now().Before(until) })
			if copied, err = copied+rows, failed; err == nil && !all {
				err = ErrUnfinished
			}
			if err == nil && strings.HasPrefix(app.Move.ID, residentMove) {
				err = e.checkLayout(ctx, app)
			}
			if err == nil {
				_, err = from.env.store.Users.SetOwner(ctx, app.ID, user, o,
					store.Owner{Epoch: o.Epoch + 1, State: store.Moved, Region: to.env.region})
			}
		default:
			return copied, e.arrive(ctx, app, user, from, to)
		}
		if err != nil {
			return copied, err
		}
	}
	return copied, fmt.Errorf("move %s,%s: the owner of the user changed %d times", app.ID, user, maxOwnerChanges)
}

// checkLayout returns ErrSchemaChanged if the schemas of the log have changed since a copy began. A migration may have
// passed the region of the copy before its rows came. An app that moves does not migrate.
func (e *Engine) checkLayout(ctx context.Context, app config.App) error {
	now, err := e.logs.readFresh(ctx, app.ID)
	if err == nil && now.Log.Generation != app.Log.Generation {
		err = fmt.Errorf("copy log of %s to another region: %w", app.ID, ErrSchemaChanged)
	}
	return err
}

// arrive completes the hand-over. A purge may have ended before the copy brought the
// deleted events, so they are removed here, too.
func (e *Engine) arrive(ctx context.Context, app config.App, user string, from, to *Engine) error {
	if err := to.complete(ctx, app, user); err != nil {
		return err
	}
	return to.purgeArrived(ctx, app, user)
}

// StayUser settles a user in the region to which the app moves back. It gives up the move of
// a user who is about to leave that region. It completes the arrival of one who has left it:
// a new user may have been sent on by a request that ended there. MoveUser brings them back.
func (e *Engine) StayUser(ctx context.Context, app config.App, user string) error {
	from, to, err := e.move(app)
	if err != nil {
		return err
	}
	row, err := to.env.store.Users.ReadPrimary(ctx, app.ID, user, store.UserState)
	if err != nil {
		return err
	}
	switch row.Owner.State {
	case store.Nobodys, store.Own:
		return nil
	case store.Moved:
		there, err := from.env.store.Users.ReadPrimary(ctx, app.ID, user, store.UserState)
		if err != nil || there.Owner.Epoch >= row.Owner.Epoch {
			return err
		}
		return from.complete(ctx, app, user)
	}
	_, err = to.env.store.Users.SetOwner(ctx, app.ID, user, row.Owner,
		store.Owner{Epoch: row.Owner.Epoch + 1, State: store.Own})
	return err
}

// ArriveUser completes the move of a user who has moved away from the region to which the
// app moves back. Until then readers take the log there.
func (e *Engine) ArriveUser(ctx context.Context, app config.App, user string) error {
	from, _, err := e.move(app)
	if err != nil {
		return err
	}
	return from.complete(ctx, app, user)
}

// ClearUser removes what the region to which the app moves back still holds of a user who
// has moved away from there, but for the row that says so. It removes nothing of anybody else: what
// has no owner yet may be on its way.
func (e *Engine) ClearUser(ctx context.Context, app config.App, user string) error {
	from, to, err := e.move(app)
	if err != nil {
		return err
	}
	return to.leave(ctx, app, user, from)
}

// DropUser removes what the region from which the app moves holds of a user, but for the
// row that says that they have moved. It returns false for a user who has not.
func (e *Engine) DropUser(ctx context.Context, app config.App, user string) (bool, error) {
	from, to, err := e.move(app)
	if err != nil {
		return false, err
	}
	row, err := from.env.store.Users.ReadPrimary(ctx, app.ID, user, store.UserState)
	if err != nil || row.Owner.Here() {
		return false, err
	}
	return true, from.leave(ctx, app, user, to)
}

// leave removes what the region of e holds of a user who lives elsewhere. It completes their
// arrival there first. A new user has left nothing that was acknowledged. Of anybody else
// readers take what is left until the arrival, so that it stays until the next attempt.
func (e *Engine) leave(ctx context.Context, app config.App, user string, elsewhere *Engine) error {
	row, err := e.env.store.Users.ReadPrimary(ctx, app.ID, user, store.UserState)
	if err != nil || row.Owner.State != store.Moved {
		return err
	}
	there, err := elsewhere.env.store.Users.ReadPrimary(ctx, app.ID, user, store.UserState)
	if err != nil {
		return err
	}
	if there.Owner.Epoch < row.Owner.Epoch {
		if err := elsewhere.complete(ctx, app, user); err != nil {
			return err
		}
		if row.Owner.Epoch > birthEpoch {
			return fmt.Errorf("remove what is left of %s,%s: the row here is %s, but the row in %s was not active yet",
				app.ID, user, row.Owner, elsewhere.env.region)
		}
	}
	// The user may come back once the phase is over.
	now, err := e.logs.readFresh(ctx, app.ID)
	if err != nil {
		return err
	}
	if now.Move.ID != app.Move.ID || now.Move.Phase != app.Move.Phase || now.Move.Back != app.Move.Back {
		return fmt.Errorf("remove what is left of %s,%s: %w", app.ID, user, ErrPhaseOver)
	}
	return e.env.store.Events.LeaveUser(ctx, app.ID, user)
}

// ErrPhaseOver reports that the phase of a move has ended, and with it the permission to remove
// what was left behind.
var ErrPhaseOver = errors.New("the phase of the move is over")

// ReconcileUser copies events of a user that count in the region that the user has left,
// and are not in the log of the one where they are, and leaves a marker. Only a process that
// died before it acknowledged a message leaves such events, as one does who dies between
// log and ticket in an app that rests. It returns their number.
//
// It then removes what the user's row excludes from the log of the new region: a mover that
// was slow may have copied it after the user had arrived.
func (e *Engine) ReconcileUser(ctx context.Context, app config.App, token string) (int, error) {
	from, to, err := e.move(app)
	if err != nil {
		return 0, err
	}
	rows, err := to.reconcile(ctx, app, token, from)
	if err != nil {
		return rows, err
	}
	return rows, to.purgeArrived(ctx, app, token)
}

// reconcile copies such events to the region of e.
func (e *Engine) reconcile(ctx context.Context, app config.App, token string, from *Engine) (_ int, err error) {
	u := user{token: token}
	if u.row, err = e.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState); err != nil ||
		!u.row.Owner.Here() || u.row.OptedOut != 0 {
		return 0, err // what a user has opted out of is not copied
	}
	u.setWindow(e.env.now().UnixMilli(), app)
	first := u.foldStart() // before it, receipts decide what counts
	missing, err := e.env.store.Events.MissingInLog(ctx, from.env.store, app.ID, app.Log, token, first)
	if err != nil || len(missing) == 0 {
		return 0, err
	}
	if err := e.env.store.Events.CopyEventsFrom(ctx, from.env.store, app.ID, app.Log, token, missing); err != nil {
		return 0, err
	}
	take := func(ctx context.Context, _, token string) (store.User, error) {
		return e.takeOwned(ctx, app, token, 0, nil, e.env.store.Users.TakeOwned)
	}
	users, err := e.writer.tickets.drawEach(ctx, app.ID, map[string][]history.Pos{token: missing}, take)
	if err != nil {
		return 0, err
	}
	_, err = e.writer.markDrawn(ctx, app, users)
	return len(missing), err
}

// UserIsDone reports whether the phase of a move has nothing left to do for a user.
func (e *Engine) UserIsDone(ctx context.Context, app config.App, user string) (bool, error) {
	from, to, err := e.move(app)
	if err != nil {
		return false, err
	}
	there, err := to.env.store.Users.ReadPrimary(ctx, app.ID, user, store.UserState)
	if err != nil {
		return false, err
	}
	left, err := from.env.store.Users.ReadPrimary(ctx, app.ID, user, store.UserState)
	if err != nil {
		return false, err
	}
	// In the region to which the app moves, nobody is about to leave and nobody has left.
	settled := there.Owner.State == store.Nobodys || there.Owner.State == store.Own
	switch app.Move.Phase {
	case config.MoveMarking:
		return left.Owner.State == store.Own, nil
	case config.MoveArriving, config.MoveClearing:
		return there.Owner.State != store.Moved || left.Owner.Epoch >= there.Owner.Epoch, nil
	case config.MoveUsers:
		return !left.Owner.Here() && settled && there.Owner.Epoch >= left.Owner.Epoch, nil
	case config.MoveDropping:
		return !left.Owner.Here() && settled && (left.Owner.State == store.Nobodys || left.Ticket == 0), nil
	}
	return true, nil
}

// move returns the engines of the two regions of a move.
func (e *Engine) move(app config.App) (from, to *Engine, err error) {
	if !app.Moving() {
		return nil, nil, fmt.Errorf("app %s does not move", app.ID)
	}
	if from, err = e.env.in(app.Move.From); err == nil {
		to, err = e.env.in(app.Move.To)
	}
	return from, to, err
}
