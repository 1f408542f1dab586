package rowstream

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// Conns are the connections of one client, as its interceptors have seen them. The
// library opens, warms and replaces them. It is safe for concurrent use.
type Conns struct {
	seen atomic.Pointer[[]*grpc.ClientConn] // immutable
	mu   sync.Mutex                         // of a change
	next atomic.Uint32
}

// NewConns returns the connections of a client whose interceptors are Unary and Stream.
func NewConns() *Conns {
	c := &Conns{}
	c.seen.Store(new([]*grpc.ClientConn))
	return c
}

// Unary is an interceptor of calls that sees their connections. The library warms
// each of its connections with such a call.
func (c *Conns) Unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c.see(cc)
	return invoke(ctx, method, req, reply, cc, opts...)
}

// Stream is intercept, and sees the connections of streams.
func (c *Conns) Stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c.see(cc)
	return intercept(ctx, desc, cc, method, open, opts...)
}

func (c *Conns) see(cc *grpc.ClientConn) {
	if !slices.Contains(*c.seen.Load(), cc) {
		c.change(func(seen []*grpc.ClientConn) []*grpc.ClientConn { return append(seen, cc) })
	}
}

// change replaces the list by that of fn, without duplicates and closed connections.
func (c *Conns) change(fn func(copied []*grpc.ClientConn) []*grpc.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kept []*grpc.ClientConn
	for _, cc := range fn(slices.Clone(*c.seen.Load())) {
		if cc.GetState() != connectivity.Shutdown && !slices.Contains(kept, cc) {
			kept = append(kept, cc)
		}
	}
	c.seen.Store(&kept)
}

// pick returns the connections that are ready in turn, or nil if none is.
func (c *Conns) pick() *grpc.ClientConn {
	seen := *c.seen.Load()
	for range seen {
		cc := seen[int(c.next.Add(1))%len(seen)]
		switch cc.GetState() {
		case connectivity.Ready:
			return cc
		case connectivity.Shutdown: // the library has replaced it
			c.change(func(copied []*grpc.ClientConn) []*grpc.ClientConn { return copied })
		}
	}
	return nil
}
