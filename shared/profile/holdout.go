package profile

import (
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// The events of users who are held out are logged, and their profiles stored, as those of all users: surfaces leave
// them out. So a user who is no longer held out has a profile at once.

// unitOf returns the token that decides whether the user of a row is held out, and in which arm they are: of a person
// that of their first open link, so that a sign-in changes nothing for the visitor who was there before it. Links that
// do not parse are none.
func unitOf(app config.App, token string, row store.User) string {
	if !app.Identity.Counts() || len(row.Links) == 0 {
		return token
	}
	cell, err := links.Parse(row.Links)
	if first, ok := cell.First(); err == nil && ok {
		return first
	}
	return token
}

// heldOut reports whether the user of a row gets no personalization.
func heldOut(app config.App, token string, row store.User) bool {
	return app.Holdout.On() && app.Holdout.Has(unitOf(app, token, row))
}

// placed returns the result for the user of a row as the experiment of the app and its holdout have it. Who is held out
// is in no arm, and the App of who is in one has the strategy of that arm: all arms score alike, so the profile is that
// of any of them.
func (r Result) placed(token string, row store.User, now time.Time) Result {
	if r.HeldOut = heldOut(r.App, token, row); !r.HeldOut && r.App.Experiment.On() {
		r.App, r.Assigned = r.App.InArm(unitOf(r.App, token, row), now)
	}
	return r
}

// leavesOut reports whether the surface of an app leaves out the user of a row, who is held out.
func leavesOut(app config.App, token string, row store.User) bool {
	return app.Surface != consent.Kept && !app.HeldOutToo && heldOut(app, token, row)
}

// holdOut leaves out a user who is held out: nothing of them counts on the surface of an app.
func (u *user) holdOut(app config.App) {
	if leavesOut(app, u.token, u.row) {
		u.view, u.use = consent.Nothing(), consent.None
	}
}
