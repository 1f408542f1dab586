package auth

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/affinityengine/affinity/shared/app/config"
)

// Hosts maps each customer's own host to the app that it serves. A host binds both
// ways: it serves no other app, and no other host serves that app. Otherwise a
// client could avoid the rate limit and the instances of a customer's host.
type Hosts map[string]string

// CustomerHeader says by which host a request came: the app whose own host it is,
// or AnyCustomer. The load balancer sets it, whatever a client sends. The Host
// header would say it too, but a proxy on the way may replace that one.
const CustomerHeader = "X-Affinity-Customer"

// AnyCustomer is the CustomerHeader of a host that serves all apps without a host
// of their own.
const AnyCustomer = "-"

// UnmarshalText decodes the form that the deployment sets: a JSON object of host
// and app id.
func (h *Hosts) UnmarshalText(text []byte) error {
	var given map[string]string
	if err := json.Unmarshal(text, &given); err != nil {
		return fmt.Errorf("customers' hosts: want a JSON object of host and app id: %w", err)
	}
	hosts := make(Hosts, len(given))
	for host, app := range given {
		if host == "" || !config.ValidAppID(app) {
			return fmt.Errorf("customers' hosts: %q serves app %q: want a host name and an app id", host, app)
		}
		hosts[strings.ToLower(host)] = app
	}
	*h = hosts
	return nil
}

// Has reports whether a host, with or without a port, is a customer's own.
func (h Hosts) Has(host string) bool {
	_, ok := h[hostName(host)]
	return ok
}

// Of returns the CustomerHeader of a host, with or without a port.
func (h Hosts) Of(host string) string {
	if app, ok := h[hostName(host)]; ok {
		return app
	}
	return AnyCustomer
}

// For returns the host of an app's own; "" if it has none.
func (h Hosts) For(app string) string {
	for host, a := range h { // a few hundred at most: the load balancer has a limit of hosts
		if a == app {
			return host
		}
	}
	return ""
}

// check returns nil if a request with that CustomerHeader may be about the app.
// Without the header nothing may: then the request avoided the load balancer, or the
// load balancer is older than this engine.
func (h Hosts) check(customer, app string) error {
	switch {
	case len(h) == 0 || customer == app:
		return nil
	case customer == "":
		return ErrNoCustomer
	case customer != AnyCustomer || h.For(app) != "":
		return ErrHost
	}
	return nil
}

// hostName returns the name of a host, without the port, as Hosts has it.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
