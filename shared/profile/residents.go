package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
)

// Residents moves the users of an app whose users have regions of their own.
type Residents struct{ engine *Engine }

// ResidentsOf returns what an engine does with where users live.
func ResidentsOf(e *Engine) Residents { return Residents{e} }

// Each calls fn with the metric name, the help text and the value of each counter of locations.
func (r Residents) Each(fn func(name, help string, read func() int64)) {
	if all := r.engine.env.regions; all != nil {
		all.finder.Each(fn)
	}
}

// Region returns the region in which a user lives; that of the app for a user whom nobody knows.
func (r Residents) Region(ctx context.Context, app config.App, token string) (string, error) {
	region, _, err := r.Lives(ctx, app, token)
	return region, err
}

// Lives is Region, with the instant from which on the user lives there; zero for a user without a location.
func (r Residents) Lives(ctx context.Context, app config.App, token string) (string, time.Time, error) {
	if !app.Residency.On() {
		return app.Region, time.Time{}, nil
	}
	found, err := r.engine.env.regions.finder.Look(ctx, app, token)
	if err != nil || found.Region == "" {
		return app.Residency.Home, time.Time{}, err
	}
	return found.Region, time.UnixMicro(found.Since), nil
}

// RegionOf returns the region in which a user lives, by what the process knows; that of the app for a user without a
// location. It is empty in an app whose users all live in its region, and for one that does not exist.
func (r Residents) RegionOf(ctx context.Context, appID, token string) (string, error) {
	app, err := r.engine.appOf(ctx, appID)
	if errors.Is(err, config.ErrNotFound) || err == nil && !app.Residency.On() {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	found, err := r.engine.env.regions.finder.Find(ctx, app, token)
	return cmp.Or(found.Region, app.Residency.Home), err
}

// StatesOf is StatesOf of the engine.
func (r Residents) StatesOf(ctx context.Context, appID string, users []string) (map[string]store.User, error) {
	return r.engine.StatesOf(ctx, appID, users)
}

// ResidenceRefused reports that a user cannot live in a region.
type ResidenceRefused struct{ reason string }

// Error says why.
func (r ResidenceRefused) Error() string { return r.reason }

// ErrLeft reports that a user cannot move to a region yet, which they have left.
var ErrLeft error = left{}

type left struct{}

func (left) Error() string {
	return "the user has lived there lately, and what was left there is not removed yet; try again later"
}

// Transient says that the user may move later.
func (left) Transient() bool { return true }

// Move moves a user to a region, where they live once it returns nil. A user whom nobody knows begins there. Each
// step begins from what the rows say, so it is safe to repeat, after a crash at any point and by several movers at
// once. Once the engine's clock has reached until, it copies no further page of a log and returns ErrUnfinished.
// What is left in the other region stays until Clean.
//
// The tokens that are linked to a known user move with them. A token that is linked itself lives where they do.
func (r Residents) Move(ctx context.Context, app config.App, token, region string, until time.Time) error {
	if !app.Identity.On() || app.Residency.Mode != config.ResidencyOn {
		return r.engine.moveAlone(ctx, app, token, region, until)
	}
	cell, err := r.cell(ctx, app, token)
	if err != nil {
		return err
	}
	for _, l := range cell.Entries {
		if l.State != links.Live {
			continue
		}
		if lives, err := r.Region(ctx, app, l.Known); err != nil {
			return err
		} else if lives != region {
			return ResidenceRefused{fmt.Sprintf("%s is linked to %s, and lives where that user does: move them", token, l.Known)}
		}
	}
	if err := r.engine.moveAlone(ctx, app, token, region, until); err != nil {
		return err
	}
	for _, l := range cell.List {
		other, err := r.cell(ctx, app, l.Token)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(other.Entries, func(e links.Entry) bool { return e.State == links.Live && e.Known != token }) {
			continue // it lives where the other user does
		}
		if err := r.engine.moveAlone(ctx, app, l.Token, region, until); err != nil {
			return err
		}
	}
	return nil
}

// cell returns the links of a token.
func (r Residents) cell(ctx context.Context, app config.App, token string) (links.Cell, error) {
	found, err := r.engine.locate(ctx, app, token, store.UserState)
	if err != nil {
		return links.Cell{}, err
	}
	return linksOf(app.ID, token, found.row)
}

// gatherTime is how long a message copies the log of a token to the region of the user whom it names. Another
// delivery goes on.
const gatherTime = time.Minute

// gather moves a token to the region of a known user whom an event of it names, before anything of that event is
// written: it names the user. A token that nobody knows begins there.
func (v *env) gather(ctx context.Context, app config.App, token, known string) error {
	if app.Residency.Mode != config.ResidencyOn || !app.Identity.On() || known == "" || known == token {
		return nil
	}
	at, err := v.regions.home(ctx, app, known, app.Residency.Home)
	if err != nil {
		return err
	}
	return v.engine.moveAlone(ctx, app, token, at.env.region, v.now().Add(gatherTime))
}

// moveAlone is Move of a token alone.
func (e *Engine) moveAlone(ctx context.Context, app config.App, token, region string, until time.Time) error {
	switch {
	case app.Residency.Mode != config.ResidencyOn:
		return ResidenceRefused{fmt.Sprintf("all users of app %s live in its region: residency is not on", app.ID)}
	case app.Residency.Leave[region] != "":
		return ResidenceRefused{fmt.Sprintf("users of app %s leave %s for %s", app.ID, region, app.Residency.Leave[region])}
	case !slices.Contains(app.Residency.Regions, region):
		return ResidenceRefused{fmt.Sprintf("users of app %s do not live in %q: its residency names %v", app.ID, region,
			app.Residency.Regions)}
	}
	to, err := e.env.in(region)
	if err != nil {
		return err
	}
	for range maxHops {
		at, err := e.livesIn(ctx, app, token, region)
		if err != nil {
			return err
		}
		row, err := at.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		if err != nil {
			return err
		}
		switch {
		case row.Owner.State == store.Moved: // perhaps by a mover that died
			err = at.relocate(ctx, app, token, row.Owner)
		case at == to && row.Owner.State == store.Leaving: // a mover has died, or is given up
			_, err = at.env.store.Users.SetOwner(ctx, app.ID, token, row.Owner,
				store.Owner{Epoch: row.Owner.Epoch + 1, State: store.Own})
		case at == to:
			return nil
		case row.Owner.State == store.Nobodys:
			_, err = at.adopt(ctx, app, token)
		default:
			err = at.moveTo(ctx, app, token, to, until)
		}
		if _, away := errors.AsType[elsewhere](err); err != nil && !away {
			return err
		}
	}
	return fmt.Errorf("move %s,%s to %s: %w", app.ID, token, region, errHops)
}

// residentMove begins the id of the move of a resident.
const residentMove = "resident-"

// moveTo moves a token that is owned in the region of e, up to its arrival.
func (e *Engine) moveTo(ctx context.Context, app config.App, token string, to *Engine, until time.Time) error {
	there, err := to.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	if err != nil {
		return err
	}
	if there.Owner.State == store.Moved {
		return ErrLeft
	}
	move := app.In(e.env.region)
	// A copy that began in other schemas of the log begins again.
	move.Move = config.Move{ID: fmt.Sprint(residentMove, app.Log.Generation), From: e.env.region, To: to.env.region,
		Births: to.env.region, Phase: config.MoveUsers}
	move.Residency = config.Residency{}
	_, err = e.MoveUser(ctx, move, token, until)
	return err
}

// relocate completes the arrival of a token whose row in the region of e has moved, and then says in its location
// where it lives.
func (e *Engine) relocate(ctx context.Context, app config.App, token string, gone store.Owner) error {
	to, err := e.env.in(gone.Region)
	if err == nil {
		err = to.complete(ctx, app, token)
	}
	if err == nil {
		err = to.purgeArrived(ctx, app, token)
	}
	if err != nil {
		return err
	}
	found, err := e.env.regions.finder.Look(ctx, app, token)
	if err != nil || found.Region != e.env.region {
		return err
	}
	_, err = e.env.regions.finder.Touch(ctx, app, token, found, gone.Region)
	return err
}

// Clean removes what a region still holds of a user who lives elsewhere, and reports whether nothing is left. It
// may not before settle has passed twice since the user lives there. Settle is how long a process may act on what it
// has read: on the earlier location, on a copy of it that a slow process wrote in that time, or on the log that it
// copies here. If a copy of the location still says something else, the wait begins now.
//
// A move that was given up, or a message that met it, may leave events in a region whose row says nothing. Nobody may
// move there while they are removed. So the row says first that the user has moved away, as of now. A mover that began
// before and died may have left the user between the regions: the row where they live says so, and Clean completes
// that move in place of removing what it has copied.
//
// Of a user who lives in the region and was deleted long ago, Clean begins to remove the location, and Forget the rest.
func (r Residents) Clean(ctx context.Context, app config.App, token, region string,
	settle time.Duration) (bool, error) {
	e := r.engine
	here, err := e.env.in(region)
	if err != nil {
		return false, err
	}
	found, err := e.env.regions.finder.Look(ctx, app, token)
	if err != nil {
		return false, err
	}
	if completed, err := e.completeMove(ctx, app, token, found, region); err != nil || completed {
		return false, err
	}
	row, err := here.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	switch {
	case err != nil:
		return false, err
	case found == (store.Location{}):
		gone, err := here.forgotten(ctx, app, token, row)
		if gone {
			_, err = e.env.regions.finder.Uncopy(ctx, app, token) // who has forgotten it may have died before
		}
		return !gone && err == nil, err
	case found.Region == region && row.Owner.State == store.Moved:
		return false, here.relocate(ctx, app, token, row.Owner)
	case found.Region == region:
		return here.forget(ctx, app, token, row, found)
	case row.Owner.State == store.Nobodys || row.Owner.State == store.Moved && row.Owner.Epoch == closing:
		return here.closeLeft(ctx, app, token, row, found)
	case row.Owner.State != store.Moved || e.env.now().Before(time.UnixMicro(found.Since).Add(2*settle)):
		return false, nil
	}
	finder := e.env.regions.finder
	if copied, err := finder.Copied(ctx, app, token, found); err != nil || !copied {
		if err == nil {
			err = finder.Repair(ctx, app, token, found)
		}
		return false, err
	}
	if err := here.unname(ctx, app, token); err != nil {
		return false, err
	}
	if err := here.env.store.Events.LeaveUser(ctx, app.ID, token); err != nil {
		return false, err
	}
	return true, here.env.store.Users.EraseMoved(ctx, app.ID, token, row.Owner)
}

// completeMove completes the move of a token to a region from the one in which it lives by its location, if the row
// there says that it has left for it. Who removes what is left in the region reads the row of the region after this:
// so an arrival in between is not missed.
func (e *Engine) completeMove(ctx context.Context, app config.App, token string, found store.Location,
	region string) (bool, error) {
	if found.Region == "" || found.Region == region {
		return false, nil
	}
	there, err := e.env.in(found.Region)
	if err != nil {
		return false, err
	}
	row, err := there.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	if err != nil || row.Owner.State != store.Moved || row.Owner.Region != region || row.Owner.Epoch <= closed {
		return false, err
	}
	return true, there.relocate(ctx, app, token, row.Owner)
}

// CleanAll is Clean of all regions of the app in which the user does not live.
func (r Residents) CleanAll(ctx context.Context, app config.App, token string, settle time.Duration) (bool, error) {
	all := true
	for _, region := range app.Residency.Regions {
		gone, err := r.Clean(ctx, app, token, region, settle)
		if err != nil {
			return false, err
		}
		all = all && gone
	}
	return all, nil
}

// closing and closed are the epochs of a row that says nothing but that nobody may move here. Those of a row that a
// token has left are later.
const (
	closing = 1
	closed  = 2
)

// needed returns the epoch that the row of a user must have reached in the region to which a row that has moved points.
// A row that was closed has sent nobody there: the user may have begun there, at any epoch.
func needed(app config.App, moved store.Owner) int64 {
	if app.Residency.On() && moved.Epoch <= closed {
		return 0
	}
	return moved.Epoch
}

// closeLeft lets the row of a token in the region of e, which says nothing, say that it has moved to where it lives, if
// the log here has events of it. After that the instant of its location becomes now: only then the row is closed, so
// that what is left is removed after the wait.
func (e *Engine) closeLeft(ctx context.Context, app config.App, token string, row store.User,
	found store.Location) (bool, error) {
	users, away := e.env.store.Users, store.Owner{Epoch: closing, State: store.Moved, Region: found.Region}
	if row.Owner.State == store.Nobodys {
		empty, err := e.env.store.Events.LogIsEmpty(ctx, app.ID, token)
		if err != nil || empty && !row.Exists {
			return err == nil, err
		}
		if took, err := users.SetOwner(ctx, app.ID, token, store.Owner{}, away); err != nil || !took {
			return false, err
		}
	} else {
		away = row.Owner
	}
	if took, err := e.env.regions.finder.Touch(ctx, app, token, found, found.Region); err != nil || !took {
		return false, err
	}
	_, err := users.SetOwner(ctx, app.ID, token, away,
		store.Owner{Epoch: closed, State: store.Moved, Region: found.Region})
	return false, err
}
