package stack

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// DemoKey is a key that everybody knows. It is accepted on loopback only.
const DemoKey = "demokey"

// answered are the hosts and origins that an address answers.
type answered int

const (
	thisMachine answered = iota // this machine, customers' hosts, and the pages of both
	onlyHosts                   // customers' hosts, and the pages of all origins
	everything
)

// guardPublic protects the public functions of an engine.
//
// On a developer's machine keys may be known to everybody. On loopback every program of the machine
// can call, and so can every web page that its browser shows. A page sends the origin that it came from, or, after
// its name was made to resolve to loopback (DNS rebinding), its own host. So the
// guard refuses hosts other than loopback and customers' hosts, and origins other
// than loopback and those that the developer names.
//
// An address that other machines reach has hosts and origins that the engine
// cannot know. There only keys protect the engine, see refuseDemoKey.
func guardPublic(of answered, customers auth.Hosts, origins []string, h http.Handler) http.Handler {
	refuse := func(*http.Request) (int, string) { return 0, "" }
	switch of {
	case thisMachine:
		refuse = func(r *http.Request) (int, string) { return refuseForeign(r, customers, origins) }
	case onlyHosts:
		refuse = func(r *http.Request) (int, string) { return refuseOtherHosts(r, customers) }
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, why := refuse(r); status != 0 {
			// Without the headers of CORS a page cannot read even the refusal.
			_ = httpapi.WriteMessage(w, status, why)
			return
		}
		// As the load balancer of a deployment does.
		r.Header.Set(auth.CustomerHeader, customers.Of(r.Host))
		h.ServeHTTP(w, r)
	})
}

// refuseOtherHosts returns a status other than 0 for hosts that are no customer's. Load balancers ask for the
// health by address.
func refuseOtherHosts(r *http.Request, customers auth.Hosts) (int, string) {
	if customers.Has(r.Host) || r.URL.Path == "/healthz" {
		return 0, ""
	}
	return http.StatusMisdirectedRequest, fmt.Sprintf("This engine does not answer for the host %.100q: call it by the "+
		"host of your app, which its operator names with --host", r.Host)
}

// refuseForeign returns a status other than 0 if a request does not name this
// machine or comes from a web page of another one that is not among the origins.
func refuseForeign(r *http.Request, customers auth.Hosts, origins []string) (int, string) {
	if !httpapi.Loopback(r.Host) && !customers.Has(r.Host) {
		return http.StatusMisdirectedRequest, fmt.Sprintf(
			"This engine listens on loopback and does not answer for the host %.100q: "+
				"call it at localhost or 127.0.0.1, or start it with an --addr that other machines reach, and keys of your own", r.Host)
	}
	for _, origin := range r.Header.Values("Origin") {
		if !localOrigin(origin) && !slices.Contains(origins, origin) {
			return http.StatusForbidden, fmt.Sprintf("This engine listens on loopback and does not answer web pages of "+
				"%.100q: serve the page from localhost, name its origin with --origin, or start the engine with an --addr "+
				"that other machines reach, and keys of your own", origin)
		}
	}
	return 0, ""
}

// localOrigin reports whether a page came from this machine. The origin null is
// that of a file, but also of a sandboxed frame in any page.
func localOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && httpapi.Loopback(u.Host)
}

// loopback reports whether only programs of this machine reach an address.
func loopback(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// errDemoKey says that DemoKey is not accepted.
var errDemoKey error = fault.New(fault.Unauthenticated,
	"The key %s is public, so only an engine on loopback accepts it", DemoKey)

// refuseDemoKey makes every function refuse DemoKey. A folder or an emulator may hold the key from an
// engine that ran on loopback. The authenticators refuse it, because it does not arrive in headers alone:
// the console reads it from a form.
func (b *Backends) refuseDemoKey() {
	b.Auth.Refuse(DemoKey, errDemoKey)
	b.AuthSecured.Refuse(DemoKey, errDemoKey)
}
