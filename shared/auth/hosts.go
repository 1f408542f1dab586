package auth

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

// Hosts are the customers' hosts, each with the one app that it serves. Any other
// host serves every app.
type Hosts map[string]string

// UnmarshalText reads them as the deployment gives them: a JSON object of host and
// app id.
func (h *Hosts) UnmarshalText(text []byte) error {
	var given map[string]string
	if err := json.Unmarshal(text, &given); err != nil {
		return fmt.Errorf("customers' hosts: want a JSON object of host and app id: %w", err)
	}
	hosts := make(Hosts, len(given))
	for host, app := range given {
		if host == "" || !ValidAppID(app) {
			return fmt.Errorf("customers' hosts: %q serves app %q: want a host name and an app id", host, app)
		}
		hosts[strings.ToLower(host)] = app
	}
	*h = hosts
	return nil
}

// serves tells whether a request to a host, with or without a port, may be for an
// app.
func (h Hosts) serves(host, app string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	only, ok := h[strings.ToLower(strings.TrimSuffix(host, "."))]
	return !ok || only == app
}
