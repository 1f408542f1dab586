package profile_test

import (
	"context"
	"errors"
	"strings"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/store"
)

// verdict is what the gate does with a request to Bigtable.
type verdict int

const (
	proceed verdict = iota
	crash           // the process dies before the request is sent
	lose            // the request is executed, its answer does not arrive
)

// actor is a process. It stops before each request until the test lets it
// continue, so that the test decides how processes interleave.
type actor struct {
	name    string
	arrived chan string // the request's method
	before  string      // the request it stands before; empty: it has ended
	verdict chan verdict
	ended   chan struct{}
	err     error
	after   func() // is called when the test sees that it has ended; may be nil
}

type actorKey struct{}

// onlooker marks the context of a process that never stops and whose writes are
// refused. It sees what a client would see, and changes nothing.
type onlooker struct{}

func newActor(name string) *actor {
	return &actor{name: name, arrived: make(chan string), verdict: make(chan verdict), ended: make(chan struct{})}
}

// run starts the actor, which stops before its first request.
func (a *actor) run(do func(context.Context) error) {
	go func() {
		defer close(a.ended)
		a.err = do(context.WithValue(context.Background(), actorKey{}, a))
	}()
}

// drive lets the actor run to its end. verdictOf says what becomes of its n-th request, from 0 on; requests that it
// makes at once come one after the other.
func (a *actor) drive(verdictOf func(n int) verdict) {
	for n := 0; ; n++ {
		select {
		case <-a.arrived:
			a.verdict <- verdictOf(n)
		case <-a.ended:
			return
		}
	}
}

// dying is the verdict on the requests of a process that dies after so many of them.
func dying(after int) func(int) verdict {
	return func(n int) verdict {
		if n < after {
			return proceed
		}
		return crash
	}
}

func (a *actor) wait(method string) verdict {
	a.arrived <- method[strings.LastIndexByte(method, '/')+1:]
	return <-a.verdict
}

var errCrash = status.Error(codes.FailedPrecondition, "crashed by the test")

// nameOf returns the method of a request. That of an entry of the list of changes has a
// name of its own, because it runs beside others.
func nameOf(method string, req any) string {
	if m, ok := req.(*bigtablepb.MutateRowRequest); ok && strings.HasSuffix(m.TableName, "/"+store.TableChanges) {
		return entryRequest
	}
	return method
}

const entryRequest = "list the user"

// gates let actors stop before each request of a store.
func gates() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(gateUnary), grpc.WithChainStreamInterceptor(gateStream)}
}

func gateUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if _, ok := ctx.Value(actorKey{}).(onlooker); ok {
		return errCrash
	}
	a, ok := ctx.Value(actorKey{}).(*actor)
	if !ok {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	switch a.wait(nameOf(method, req)) {
	case crash:
		return errCrash
	case lose:
		if err := invoke(ctx, method, req, reply, cc, opts...); err != nil {
			return err
		}
		// The store retries row transactions. Any other request ends its
		// process here.
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

// mute is a stream whose request is executed and whose answer is lost.
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
