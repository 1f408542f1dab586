package auth

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/affinityengine/affinity/shared/config"
)

// Hosts maps each customer's own host to the one app that it serves. Every other
// host serves all apps.
type Hosts map[string]string

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

// serves reports whether a host, with or without a port, serves an app.
func (h Hosts) serves(host, app string) bool {
	only, ok := h[hostName(host)]
	return !ok || only == app
}

// hostName returns the name of a host, without the port, as Hosts has it.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
