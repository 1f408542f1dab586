package auth

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
)

// KeyCookie is the cookie that holds a user's secured key, where a route reads it.
const KeyCookie = "affinity_key"

// Complete returns a request with the credentials that a client leaves out which only knows an
// address: the app is the one whose own host the request came by, and the key is that of KeyCookie
// if cookie is true. What the request names itself counts before both.
//
// The cookie counts if it holds a secured key and the page that asks is of the engine's own site,
// or no page asks. Otherwise every page on the web could read what the user's browser may read.
func (a *Authenticator) Complete(r *http.Request, cookie bool) *http.Request {
	if r.Header.Get(appIDName) != "" && r.Header.Get(keyName) != "" {
		return r
	}
	app, key := Credentials(r.Header.Get, r.URL.Query())
	if app != "" && key != "" {
		return r
	}
	if key == "" && cookie {
		key = cookieKey(r)
	}
	if app = cmp.Or(app, a.ownApp(r)); app == "" || key == "" {
		return r
	}
	with := *r
	with.Header = maps.Clone(r.Header) // another goroutine may read that of r, to answer in time
	with.Header.Set(appIDName, app)
	with.Header.Set(keyName, key)
	return &with
}

func cookieKey(r *http.Request) string {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "same-site", "none":
	case "":
		if r.Header.Get("Origin") != "" { // a page, in a browser that does not say of which site
			return ""
		}
	default:
		return ""
	}
	cookie, err := r.Cookie(KeyCookie)
	if err != nil {
		return ""
	}
	key, err := url.PathUnescape(cookie.Value) // as scripts write cookies
	if _, secured := parseSecured(key); err != nil || !secured {
		return ""
	}
	return key
}

// HostTenant returns the app whose own host a request came by, for what anybody may read there. It
// returns ErrMissing if the host is no app's own, or the request names a key or another app.
func (a *Authenticator) HostTenant(r *http.Request) (config.App, error) {
	own := a.ownApp(r)
	if app, key := Credentials(r.Header.Get, r.URL.Query()); own == "" || key != "" || cmp.Or(app, own) != own {
		return config.App{}, ErrMissing
	}
	found, err := a.app(r.Context(), own)
	if err == nil {
		err = limit.Authenticated(r.Context(), own,
			func() (limit.Numbers, error) { return a.config.Limits(r.Context(), own) })
	}
	return found, err
}

// ownApp returns the app whose own host a request came by, empty if there is none.
func (a *Authenticator) ownApp(r *http.Request) string {
	customer := r.Header.Get(CustomerHeader)
	if a.env.Hosts.For(customer) == "" { // also of AnyCustomer
		return ""
	}
	return customer
}

// Site returns the scheme and the host by which the client reaches the engine, as far as the
// request says them.
func (a *Authenticator) Site(r *http.Request) (scheme, host string) {
	scheme = "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" { // as load balancers say it
		scheme = "https"
	}
	if own := a.ownApp(r); own != "" && a.env.Hosts.Of(r.Host) != own {
		return scheme, a.env.Hosts.For(own)
	}
	return scheme, r.Host
}
