package auth

import (
	"net/http"

	"github.com/affinityengine/affinity/shared/app/config"
)

// Access is what a key may see of a user.
type Access int

const (
	// OrderOnly is the order of objects for the user and nothing about why: no
	// scores, no features, no affinities, and not whether the user is known. The
	// caller also refuses every option that weighs the user's profile. It is what a
	// key in a web page sees if the app has turned its browser ranking on.
	OrderOnly Access = iota + 1
	// FullAccess is all that the permission Recommendation gives for the user.
	FullAccess
)

// TenantAccessGrant returns the app and the Grant of a request for the order of
// objects for a user. It refuses keys that may see no user's order. The caller
// asks Grant.Access for the user that the request names, and Grant.Index for its
// index.
func (a *Authenticator) TenantAccessGrant(r *http.Request) (config.App, Grant, error) {
	app, g, err := a.TenantUserGrant(r, Recommendation, OwnUser, Search)
	if err == nil {
		_, err = g.Access(app, g.user)
	}
	if err != nil {
		return config.App{}, Grant{}, err
	}
	return app, g, nil
}

// Access returns what the key may see of a user of its app. The error is ErrUser if
// the key is for another user, and ErrForbidden if the key may see nothing.
//
// The permission Recommendation sees all of every user, and a secured key with OwnUser
// sees all of its own. The permission Search alone sees the order of every user if the
// app has turned on BrowserRanking, and nothing otherwise.
func (g Grant) Access(app config.App, user string) (Access, error) {
	if err := g.User(user); err != nil {
		return 0, err
	}
	switch {
	case g.holds(Recommendation, OwnUser):
		return FullAccess, nil
	case app.BrowserRanking && g.holds(Search):
		return OrderOnly, nil
	}
	return 0, hinted(ErrForbidden, "Let keys with the permission search rank with `affinity app ranking %s --browser on`, "+
		"or give each user a secured key: /docs#secured-keys", g.App)
}
