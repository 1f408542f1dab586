package auth

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Request is what a check reads of a request.
type Request struct {
	// Customer is the request's CustomerHeader. It counts only where customers have
	// hosts of their own.
	Customer string
	// App and Key are the credentials.
	App, Key string
	// Referer is the page that sends the request, or its origin. Empty: unknown.
	Referer string
	// ForwardedFor are the values of X-Forwarded-For. Remote is the address and port
	// at the other end of the connection.
	ForwardedFor []string
	Remote       string

	session *Session // in whose name the request is; nil: in that of its credentials
}

// NewRequest returns what a check reads of r.
func NewRequest(r *http.Request) Request {
	app, key := Credentials(r.Header.Get, r.URL.Query())
	referer := r.Header.Get("Referer")
	if referer == "" {
		referer = r.Header.Get("Origin")
	}
	made := Request{Customer: r.Header.Get(CustomerHeader), App: app, Key: key, Referer: referer,
		ForwardedFor: r.Header.Values("X-Forwarded-For"), Remote: r.RemoteAddr}
	return made.in(r.Context())
}

// address returns the client's address; the zero value if it is unknown. A client
// can send a list of its own in X-Forwarded-For. Only the last forwarded entries
// are the load balancer's, and the first of them is the client.
func (r Request) address(forwarded int) netip.Addr {
	if forwarded > 0 {
		list := strings.Split(strings.Join(r.ForwardedFor, ","), ",")
		if len(list) < forwarded {
			return netip.Addr{}
		}
		address, _ := netip.ParseAddr(strings.TrimSpace(list[len(list)-forwarded]))
		return address.Unmap()
	}
	remote, _ := netip.ParseAddrPort(r.Remote)
	return remote.Addr().Unmap()
}

// refererAllowed reports whether a page matches one of the patterns
// [scheme://]host[/path], or there are none. In each of the three parts a * stands
// for any characters, so the * of a host cannot match the path of another host.
// Without a path a pattern matches every page of the host.
func refererAllowed(patterns []string, referer string) bool {
	if len(patterns) == 0 {
		return true
	}
	page, err := url.Parse(referer)
	if err != nil || page.Host == "" {
		return false
	}
	scheme, host, path := strings.ToLower(page.Scheme), strings.ToLower(page.Host), page.RequestURI()
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		wantScheme, rest, ok := strings.Cut(pattern, "://")
		if !ok {
			wantScheme, rest = "*", pattern
		}
		wantHost, wantPath, ok := strings.Cut(rest, "/")
		if !ok {
			wantPath = "*"
		}
		return matches(strings.ToLower(wantScheme), scheme) && matches(strings.ToLower(wantHost), host) &&
			matches("/"+wantPath, path)
	})
}
