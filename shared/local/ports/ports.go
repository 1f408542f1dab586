// Package ports finds ports for programs that tests and tools start, stop and start again on the
// same port.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are free below the range from which the kernel takes the port of a server that asks for
// any, and those of connections. From that range, another server could get the port while the
// program is down. See ip_local_port_range in ip(7) of Linux, whose lowest is 32,768.
const (
	lowest  = 10_000
	highest = 30_000
	tries   = 100
)

// Free returns a loopback address with a port on which nothing listens.
func Free() (string, error) {
	var last error
	for range tries {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(highest-lowest)))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		last = errors.Join(errors.New("find a free port"), err)
	}
	return "", fmt.Errorf("after %d tries: %w", tries, last)
}
