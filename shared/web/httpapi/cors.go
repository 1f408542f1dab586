package httpapi

import "net/http"

// forbidStoring keeps answers out of caches: a cache before the engine knows only the
// URL and serves what one key may read to everybody. A handler whose answer is public
// replaces the header.
func forbidStoring(h http.Header) { notStored.set(h) }

// allowOrigin lets web pages of any origin call the API and read its answers. Keys
// authenticate a caller, not cookies.
func allowOrigin(h http.Header) { anyOrigin.set(h) }

// AllowCredentials lets pages call routes in the mode that sends credentials, as a browser does
// for a beacon whose body is JSON, and with any header. Such a page needs its own origin in the
// answer. The routes must read no cookie, but one that only pages of their own site can send: see
// auth.Authenticator.Complete.
func (rt *Router) AllowCredentials(patterns ...string) {
	for _, pattern := range patterns {
		rt.pages[pattern] = true
	}
}

// allowPage answers the page that a request comes from, if AllowCredentials has its route, and
// reports whether it has.
func (rt *Router) allowPage(h http.Header, r *http.Request, pattern string) bool {
	if !rt.pages[pattern] {
		return false
	}
	h["Vary"] = byOrigin
	if origin := r.Header["Origin"]; len(origin) == 1 {
		h["Access-Control-Allow-Origin"] = origin[:1:1]
		h["Access-Control-Allow-Credentials"] = allowed
	}
	return true
}

// preflight says what a page may send with the request that it asks about.
func (rt *Router) preflight(h http.Header, r *http.Request) {
	asked := *r
	asked.Method = r.Header.Get("Access-Control-Request-Method")
	_, pattern := rt.mux.Handler(&asked)
	if names := r.Header["Access-Control-Request-Headers"]; rt.allowPage(h, r, pattern) && len(names) > 0 {
		h["Access-Control-Allow-Headers"] = names
	}
}

var (
	byOrigin = []string{"Origin"}
	allowed  = []string{"true"}

	notStored = newConstants(
		"Cache-Control", "no-store",
		"X-Content-Type-Options", "nosniff",
	)
	anyOrigin = newConstants(
		"Access-Control-Allow-Origin", "*",
		"Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, OPTIONS",
		"Access-Control-Allow-Headers", "content-type, x-algolia-application-id, x-algolia-api-key, x-algolia-agent, "+
			"x-algolia-usertoken, request-id, accept, content-encoding, authorization",
		"Access-Control-Expose-Headers", "retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, "+
			"link, x-wp-total, x-wp-totalpages",
		"Access-Control-Max-Age", "86400",
	)
)

// constants are headers that all answers share, so that no answer allocates them.
type constants []struct {
	name  string   // as net/http writes it
	value []string // one, so that an append copies it
}

// newConstants returns headers of names and values in turn.
func newConstants(pairs ...string) constants {
	all := make(constants, len(pairs)/2)
	for i := range all {
		all[i].name, all[i].value = http.CanonicalHeaderKey(pairs[2*i]), []string{pairs[2*i+1]}
	}
	return all
}

func (all constants) set(h http.Header) {
	for _, c := range all {
		h[c.name] = c.value
	}
}
