package httpapi

import (
	"net"
	"net/url"
	"strings"
)

// Loopback reports whether a host names this machine: localhost or an address of
// loopback, with any port or none. The port does not count, because a forwarded
// port has another number on the client's side.
func Loopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	if strings.EqualFold(strings.TrimSuffix(name, "."), "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}
