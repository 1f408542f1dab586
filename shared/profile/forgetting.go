package profile

import (
	"context"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/profile/location"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// A user of an app whose users have regions of their own was deleted so long ago that nothing of before may come any
// more. Clean and Forget remove their row with the tombstone, and their location.

// forget begins to forget a token whose location names the region of e, if nothing else is left of it. It reports
// whether there is nothing to forget. Nobody has drawn a ticket of the row by the time at which it is stripped, since
// before the log was empty. From then on who gives the row an owner looks at the location, and renews it.
func (e *Engine) forget(ctx context.Context, app config.App, token string, row store.User,
	found store.Location) (bool, error) {
	if !e.forgettable(row, found) {
		return true, nil
	}
	if left, err := e.leftOf(ctx, app, token, row); err != nil || left {
		return err == nil, err
	}
	if !row.Bare() { // else an earlier attempt has stripped it
		if took, err := e.env.store.Users.Strip(ctx, app.ID, token, row); err != nil || !took {
			return false, err
		}
	}
	finder := e.env.regions.finder
	if took, err := finder.Forget(ctx, app, token, found); err != nil || !took {
		return false, err
	}
	_, err := finder.Uncopy(ctx, app, token)
	return false, err
}

// forgettable reports whether a row and a location are of a user who was deleted long ago. Opt-outs and consents stay.
func (e *Engine) forgettable(row store.User, found store.Location) bool {
	old := e.env.now().Add(-location.Lasting)
	deleted := row.DeletedUntil > 0 && max(row.DeletedUntil, row.ReceivedUntil) < old.UnixMilli()
	return row.Exists && (deleted || row.Bare()) && time.UnixMicro(found.Since).Before(old) &&
		row.Owner.State != store.Leaving && row.OptedOut == 0 && len(row.Consents) == 0
}

// leftOf reports whether anything is left of a token beside the row: a link, a block, an event, or a row elsewhere.
func (e *Engine) leftOf(ctx context.Context, app config.App, token string, row store.User) (bool, error) {
	cell, err := linksOf(app.ID, token, row)
	if err != nil {
		return false, err
	}
	live := func(l links.Entry) bool { return l.State == links.Live }
	if len(cell.List) > 0 || cell.OutBy != "" || slices.ContainsFunc(cell.Entries, live) {
		return true, nil
	}
	manifest, err := history.ParseManifest(row.Manifest)
	if err != nil || len(manifest.Blocks) > 0 {
		return err == nil, err
	}
	blocks, err := e.env.store.Histories.ListBlocks(ctx, app.ID, token)
	if err != nil || len(blocks) > 0 {
		return err == nil, err
	}
	if empty, err := e.env.store.Events.LogIsEmpty(ctx, app.ID, token); err != nil || !empty {
		return err == nil, err
	}
	others, err := e.env.others(app)
	for _, other := range others {
		if err != nil {
			break
		}
		var there store.User
		if there, err = other.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState); there.Exists {
			return true, err
		}
	}
	return false, err
}

// Forget removes what is left in a region of the row of a token that Clean has forgotten, and reports whether something
// is still to do. The caller has waited since then, as long as a process may act on what it has read. If a slow process
// has written a copy of the location again, that time begins now.
func (r Residents) Forget(ctx context.Context, app config.App, token, region string) (left bool, err error) {
	here, err := r.engine.env.in(region)
	if err != nil {
		return false, err
	}
	row, err := here.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	if err != nil || !row.Exists || !row.Bare() {
		return false, err
	}
	finder := r.engine.env.regions.finder
	if found, err := finder.Look(ctx, app, token); err != nil || found != (store.Location{}) {
		return false, err
	}
	if left, err = finder.Uncopy(ctx, app, token); err != nil || left {
		return left, err
	}
	if left, err = here.leftOf(ctx, app, token, row); err != nil || left {
		return false, err // of a user from before locations, or of a message that is delivered again
	}
	_, err = here.env.store.Users.Strip(ctx, app.ID, token, row)
	return false, err
}

// forgotten reports whether a row that is nobody's is what Clean has left of a token without a location. Who does not
// write for the token gives it none.
func (e *Engine) forgotten(ctx context.Context, app config.App, token string, row store.User) (bool, error) {
	if !row.Exists || !row.Bare() {
		return false, nil
	}
	found, err := e.env.regions.finder.Look(ctx, app, token)
	if err != nil || found != (store.Location{}) {
		return false, err
	}
	return e.env.store.Events.LogIsEmpty(ctx, app.ID, token)
}

// ForgetUnused removes the locations of tokens that nobody has written for, in a region that users leave and where
// nobody has a row. It reports whether none is left.
func (r Residents) ForgetUnused(ctx context.Context, app config.App, region string) (bool, error) {
	young, err := r.engine.env.regions.finder.ForgetUnused(ctx, app, region)
	return young == 0, err
}
