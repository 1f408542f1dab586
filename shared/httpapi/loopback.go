package httpapi

import (
	"net"
	"net/url"
	"strings"
)

// Loopback reports whether a host names this machine: localhost or an address of
// loopback, with any port or none.
func Loopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	if strings.EqualFold(strings.TrimSuffix(name, "."), "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}
