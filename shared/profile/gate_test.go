package profile_test

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// verdict is what becomes of a request to Bigtable.
type verdict int

const (
	proceed verdict = iota
	crash           // the process dies before the request is sent
	lose            // the request is carried out, its answer does not arrive
)

// actor is one process at work. It stops before each of its requests until the
// scheduler lets it go on, so that a test decides how processes interleave.
type actor struct {
	name    string
	arrived chan string // the request's method
	before  string      // the request it stands before; empty: ended (of a stage)
	verdict chan verdict
	ended   chan struct{}
	err     error
}

type actorKey struct{}

// onlooker is in the context of a process that is never stopped and whose writes
// are refused: it sees what a client would see and changes nothing.
type onlooker struct{}

func newActor(name string) *actor {
	return &actor{name: name, arrived: make(chan string), verdict: make(chan verdict), ended: make(chan struct{})}
}

// run lets the actor work until its first request.
func (a *actor) run(do func(context.Context) error) {
	go func() {
		defer close(a.ended)
		a.err = do(context.WithValue(context.Background(), actorKey{}, a))
	}()
}

func (a *actor) wait(method string) verdict {
	a.arrived <- method[strings.LastIndexByte(method, '/')+1:]
	return <-a.verdict
}

var errCrash = status.Error(codes.FailedPrecondition, "crashed by the test")

func gateUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if _, ok := ctx.Value(actorKey{}).(onlooker); ok {
		return errCrash
	}
	a, ok := ctx.Value(actorKey{}).(*actor)
	if !ok {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	switch a.wait(method) {
	case crash:
		return errCrash
	case lose:
		if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
			return err
		}
		// Row transactions are tried again by the store; anything else ends here,
		// like a process that dies after its request.
		if strings.HasSuffix(method, "/ReadModifyWriteRow") || strings.HasSuffix(method, "/CheckAndMutateRow") {
			return status.Error(codes.Unavailable, "answer lost by the test")
		}
		return errCrash
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func gateStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if _, ok := ctx.Value(actorKey{}).(onlooker); ok && !strings.HasSuffix(method, "/ReadRows") {
		return nil, errCrash
	}
	a, ok := ctx.Value(actorKey{}).(*actor)
	if !ok {
		return open(ctx, desc, cc, method, opts...)
	}
	v := a.wait(method)
	if v == crash {
		return nil, errCrash
	}
	stream, err := open(ctx, desc, cc, method, opts...)
	if v == lose && err == nil {
		return mute{stream}, nil
	}
	return stream, err
}

// mute is a stream whose request is carried out and whose answer is lost.
type mute struct{ grpc.ClientStream }

func (m mute) RecvMsg(msg any) error {
	if err := m.ClientStream.RecvMsg(msg); err != nil {
		return err
	}
	return errCrash
}

func grpcCode(err error) codes.Code {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Code()
	}
	return codes.Unknown
}
