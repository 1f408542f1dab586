// Package emulator runs the Google Cloud services that Affinity uses in this
// process: Bigtable (package rows), Pub/Sub (pstest), a Bridge that pushes a
// subscription's messages over HTTP, and Cloud Tasks. The local stack and the
// tests need neither a network nor credentials. Each server listens on a free
// port of 127.0.0.1. Use the service's own client library with the address,
// insecure credentials and option.WithoutAuthentication. Every process of the
// machine can reach the port. So a server that is started with Guard asks for a
// token, which WithToken sends. The package holds no product logic. No other
// package knows the quirks of bttest and pstest.
//
// A server keeps its data on a Disk, which is a folder or in memory (package disk). Close in
// reverse order: a Bridge before its client, a client before its server.
package emulator

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"
)

// maxRPC is the size of the largest gRPC message that a server accepts or
// sends, in bytes. gRPC's default of 4 MB is less than a bulk write to Bigtable
// or Pub/Sub's largest publish request.
const maxRPC = 256 << 20

// window is how many bytes a client may send ahead on a stream or a connection. With a
// window that grows by itself gRPC pings the client for each request, to measure.
const window = 4 << 20

// workers is how many goroutines of a server answer one request after the other. A new
// goroutine for each request would grow its stack each time.
const workers = 16

// transport returns the options of all servers.
func transport() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.MaxRecvMsgSize(maxRPC), grpc.MaxSendMsgSize(maxRPC),
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window), grpc.NumStreamWorkers(workers)}
}

// signal wakes any number of waiting goroutines. The zero value is ready.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that the next broadcast closes. Call it before reading
// the state that may change.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// broadcast wakes all waiting goroutines.
func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// await calls done after every broadcast and returns nil when it reports true.
// If ctx ends first, it returns an error that contains what.
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
