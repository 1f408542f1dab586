package console

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"regexp"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// overTLS reports whether a browser asked by https, perhaps a proxy.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// keepsSession reports whether a browser keeps the cookie of a session from the address of a request.
// It sends Sec-Fetch-Site only where it does, so a proxy with TLS need not say that it is one.
func keepsSession(r *http.Request) bool {
	return overTLS(r) || httpapi.Loopback(r.Host) || r.Header.Get("Sec-Fetch-Site") != ""
}

// insecure is the page in place of a login at an address from which no browser keeps a session.
type insecure struct {
	Host   string
	Here   string // the same page on the machine of the engine, or through Tunnel
	Tunnel string // the command that makes the tunnel
	Link   bool   // the page is a link that has not been used
}

// plainHost matches the names of hosts that a command may have.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// refuseInsecure says where to log in instead.
func refuseInsecure(w http.ResponseWriter, r *http.Request) error {
	at := url.URL{Host: r.Host}
	host, port := at.Hostname(), cmp.Or(at.Port(), "80")
	to, ip := host, net.ParseIP(host)
	if ip.IsUnspecified() || ip == nil && !plainHost.MatchString(host) {
		host, to = "HOST", "localhost"
	}
	local := cmp.Or(at.Port(), "8080") // a person may not listen on 80
	page := insecure{Host: r.Host, Here: "http://localhost:" + local + "/", Tunnel: "ssh -L " + shellArg(local+":"+net.JoinHostPort(to, port)) + " " + shellArg(host)}
	if r.URL.Path == "/console/open" {
		page.Here, page.Link = "http://localhost:"+local+r.URL.RequestURI(), true
	}
	return write(w, templates()["login"], "insecure", http.StatusForbidden, view{Title: "Log in elsewhere", Page: page})
}
