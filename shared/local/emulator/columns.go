package emulator

import (
	"context"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// columns keeps writes away from the rows that a read is looking at. A read of
// bttest copies its row but shares the row's list of column names, which a write
// changes in place: the read would then miss a column, or name another's.
//
// Reads share the lock, and a read gives it up while it sends, so that no request
// waits for a client that reads slowly.
type columns struct{ mu sync.RWMutex }

func (c *columns) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (any, error) {
	switch req.(type) {
	case *btpb.MutateRowRequest, *btpb.CheckAndMutateRowRequest, *btpb.ReadModifyWriteRowRequest:
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	return handle(ctx, req)
}

func (c *columns) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler) error {
	s := &columnStream{ServerStream: stream}
	switch info.FullMethod {
	case btpb.Bigtable_ReadRows_FullMethodName:
		s.lock = c.mu.RLocker()
	case btpb.Bigtable_MutateRows_FullMethodName:
		s.lock = &c.mu
	default:
		return handle(srv, stream)
	}
	defer s.release()
	return handle(srv, s)
}

// columnStream holds its lock from the request on, except while it sends an answer.
type columnStream struct {
	grpc.ServerStream
	lock sync.Locker
	held bool
}

func (s *columnStream) RecvMsg(msg any) error {
	err := s.ServerStream.RecvMsg(msg)
	if err == nil {
		s.acquire()
	}
	return err
}

func (s *columnStream) SendMsg(msg any) error {
	s.release()
	defer s.acquire()
	return s.ServerStream.SendMsg(msg)
}

func (s *columnStream) acquire() {
	if !s.held {
		s.lock.Lock()
		s.held = true
	}
}

func (s *columnStream) release() {
	if s.held {
		s.lock.Unlock()
		s.held = false
	}
}
