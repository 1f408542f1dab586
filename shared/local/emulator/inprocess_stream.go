package emulator

import (
	"context"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// ahead is how many answers of a stream a server gives before it waits for the client. Those
// of package rows have 256 KiB, so that they fill the window of a connection.
const ahead = window / (256 << 10)

func callStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, ok := served(conn)
	if !ok {
		return open(ctx, desc, conn, method, opts...)
	}
	m, ok := s.streams[method]
	if !ok {
		return open(ctx, desc, conn, method, opts...)
	}
	if err := ctx.Err(); err != nil {
		return nil, clientError(err)
	}
	return &clientStream{ctx: ctx, services: s, method: m, opts: opts, wire: codecOf(opts),
		answers: make(chan mem.BufferSlice, ahead)}, nil
}

// clientStream is a stream as its client sees it. The server answers from CloseSend on.
type clientStream struct {
	ctx      context.Context
	services *services
	method   streamMethod
	opts     []grpc.CallOption
	wire     encoding.CodecV2
	request  mem.BufferSlice
	answers  chan mem.BufferSlice // closed at the end
	err      error                // that of the server, set before answers is closed
	finished bool
}

var _ grpc.ClientStream = (*clientStream)(nil)

func (c *clientStream) Header() (metadata.MD, error) { return nil, nil }
func (c *clientStream) Trailer() metadata.MD         { return nil }
func (c *clientStream) Context() context.Context     { return c.ctx }

func (c *clientStream) SendMsg(msg any) error {
	var err error
	c.request, err = c.wire.Marshal(msg)
	return err
}

func (c *clientStream) CloseSend() error {
	if !c.services.begin() {
		c.err = status.Error(codes.Unavailable, "the server was stopped")
		close(c.answers)
		return nil
	}
	run(func() {
		defer c.services.running.RUnlock()
		c.err = c.services.handler(c.method)(c.method.service, &serverStream{clientStream: c, ctx: serverContext(c.ctx)})
		close(c.answers)
	})
	return nil
}

func (c *clientStream) RecvMsg(msg any) error {
	var err error
	select {
	case answer, ok := <-c.answers:
		if ok {
			defer answer.Free()
			return c.wire.Unmarshal(answer, msg)
		}
		if err = c.err; err == nil {
			err = io.EOF
		}
	case <-c.ctx.Done():
		err = c.ctx.Err()
	}
	err = clientError(err)
	if !c.finished {
		c.finished = true
		finish(c.opts, err)
	}
	return err
}

// serverStream is a stream as its server sees it.
type serverStream struct {
	*clientStream
	ctx context.Context
}

var _ grpc.ServerStream = (*serverStream)(nil)

func (s *serverStream) Context() context.Context     { return s.ctx }
func (s *serverStream) SetHeader(metadata.MD) error  { return nil }
func (s *serverStream) SendHeader(metadata.MD) error { return nil }
func (s *serverStream) SetTrailer(metadata.MD)       {}

func (s *serverStream) RecvMsg(msg any) error {
	if s.request == nil {
		return io.EOF
	}
	defer func() { s.request.Free(); s.request = nil }()
	return codec.Unmarshal(s.request, msg)
}

func (s *serverStream) SendMsg(msg any) error {
	answer, err := codec.Marshal(msg)
	if err != nil {
		return err
	}
	select {
	case s.answers <- answer:
		return nil
	case <-s.services.ended:
		return status.Error(codes.Unavailable, "the server was stopped")
	case <-s.ctx.Done():
		return clientError(s.ctx.Err())
	}
}

// idle is how many goroutines of run wait for work, and work leads to them.
var (
	idle atomic.Int32
	work = make(chan func())
)

// run calls f in another goroutine, which serves again: a new one would grow its stack.
func run(f func()) {
	select {
	case work <- f:
	default:
		go func() {
			for {
				f()
				if idle.Add(1) > workers {
					idle.Add(-1)
					return
				}
				f = <-work
				idle.Add(-1)
			}
		}()
	}
}
