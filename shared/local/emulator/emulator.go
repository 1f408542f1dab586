// Package emulator holds in-process stand-ins for the Google Cloud services that the product runs on, so that the local
// stack and the tests need neither a network nor credentials: Bigtable (bttest), Pub/Sub (pstest), a Bridge that pushes
// a subscription's messages over HTTP as a push subscription does, and Cloud Tasks. Each server listens on a free port
// of 127.0.0.1 and is reached through the service's own client library, given the address, insecure credentials and
// option.WithoutAuthentication. They hold no product logic and are the only place that knows the stand-ins' quirks.
//
// All data lives in memory and ends with the stand-in. Close them in the reverse order of their making: a Bridge before
// its client, clients before servers.
package emulator

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// maxRPC is the largest gRPC message that the stand-ins take or send, in bytes. gRPC's own default of 4 MB is below a
// bulk write to Bigtable and below Pub/Sub's largest publish request.
const maxRPC = 256 << 20

// signal tells any number of waiting goroutines that something has changed. The zero value is ready.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that the next broadcast closes. Take it before looking at what may change.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// broadcast wakes all who wait.
func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// await returns nil once done reports true, asking again after every broadcast, and an error that names what was
// awaited when ctx ends first.
func (s *signal) await(ctx context.Context, what string, done func() bool) error {
	for {
		changed := s.next()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		}
	}
}

// sleep waits for d and reports whether ctx was still alive at its end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
