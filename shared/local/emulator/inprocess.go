package emulator

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// own holds the services of the servers of this process: host:port to *services.
var own sync.Map

// InProcess makes a client call the servers of this process directly, by the same addresses.
// A request then needs no connection, which takes most of the processor time of a small one.
// Messages are encoded and decoded all the same. A server that was started with options other
// than Guard and Around, a server of another process, and a method whose client sends a stream
// are reached over the connection.
//
// Pass these options after all others: interceptors that come later see no request. Nor does
// a handler of statistics (grpc.WithStatsHandler).
func InProcess() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(callUnary), grpc.WithChainStreamInterceptor(callStream)}
}

// InProcessClient is InProcess for a client of Google's libraries.
func InProcessClient() []option.ClientOption {
	var opts []option.ClientOption
	for _, dial := range InProcess() {
		opts = append(opts, option.WithGRPCDialOption(dial))
	}
	return opts
}

// Around returns the option of a Bigtable of this package that calls interceptors around each
// request, those of InProcess included. A nil unary calls nothing. A request of InProcess does
// not end before they have returned.
func Around(unary grpc.UnaryServerInterceptor, stream grpc.StreamServerInterceptor) grpc.ServerOption {
	if unary == nil {
		unary = func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return handle(ctx, req)
		}
	}
	return around{unary: unary, stream: stream}
}

type around struct {
	grpc.EmptyServerOption
	unary  grpc.UnaryServerInterceptor
	stream grpc.StreamServerInterceptor
}

// options are those of a server.
type options struct {
	known  []grpc.ServerOption // to gRPC
	around []around
	direct bool // clients of this process may call the server directly
}

func expand(opts []grpc.ServerOption) options {
	o := options{direct: true}
	for _, opt := range opts {
		switch opt := opt.(type) {
		case guard:
			o.known = append(o.known, opt.known()...)
		case around:
			o.known = append(o.known, grpc.ChainUnaryInterceptor(opt.unary), grpc.ChainStreamInterceptor(opt.stream))
			o.around = append(o.around, opt)
		default:
			o.known, o.direct = append(o.known, opt), false
		}
	}
	return o
}

// services are the methods of a server, by their full names.
type services struct {
	server  grpc.ServiceRegistrar // gets the services too; may be nil
	unary   map[string]unaryMethod
	streams map[string]streamMethod
	around  []around
	running sync.RWMutex  // each request holds it for reading
	ended   chan struct{} // closed when the server is stopped
}

type unaryMethod struct {
	service any
	handle  grpc.MethodHandler
}

type streamMethod struct {
	service any
	handle  grpc.StreamHandler
	info    *grpc.StreamServerInfo
}

var _ grpc.ServiceRegistrar = (*services)(nil)

func newServices(server grpc.ServiceRegistrar, around []around) *services {
	return &services{server: server, around: around, unary: map[string]unaryMethod{}, streams: map[string]streamMethod{},
		ended: make(chan struct{})}
}

// RegisterService adds a service.
func (s *services) RegisterService(desc *grpc.ServiceDesc, service any) {
	for _, m := range desc.Methods {
		s.unary["/"+desc.ServiceName+"/"+m.MethodName] = unaryMethod{service, m.Handler}
	}
	for _, d := range desc.Streams {
		if name := "/" + desc.ServiceName + "/" + d.StreamName; !d.ClientStreams {
			s.streams[name] = streamMethod{service, d.Handler, &grpc.StreamServerInfo{FullMethod: name, IsServerStream: true}}
		}
	}
	if s.server != nil {
		s.server.RegisterService(desc, service)
	}
}

// serve answers the clients of this process that call addr, until the function that it
// returns is called. That function ends all streams, and waits for all requests.
func (s *services) serve(addr string) (stop func()) {
	own.Store(addr, s)
	return sync.OnceFunc(func() {
		own.Delete(addr)
		close(s.ended)
		s.running.Lock()
		defer s.running.Unlock()
	})
}

// unaryInterceptor returns what is called around a request, or nil.
func (s *services) unaryInterceptor() grpc.UnaryServerInterceptor {
	if len(s.around) == 0 {
		return nil
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		for _, a := range slices.Backward(s.around) {
			inner := handle
			handle = func(ctx context.Context, req any) (any, error) { return a.unary(ctx, req, info, inner) }
		}
		return handle(ctx, req)
	}
}

// handler returns what answers a stream.
func (s *services) handler(m streamMethod) grpc.StreamHandler {
	handle := m.handle
	for _, a := range slices.Backward(s.around) {
		inner := handle
		handle = func(service any, stream grpc.ServerStream) error { return a.stream(service, stream, m.info, inner) }
	}
	return handle
}

// begin reports whether the server may answer a request. The caller then calls
// s.running.RUnlock.
func (s *services) begin() bool {
	s.running.RLock()
	select {
	case <-s.ended:
		s.running.RUnlock()
		return false
	default:
		return true
	}
}

// served returns the services at the address of a connection.
func served(conn *grpc.ClientConn) (*services, bool) {
	target := conn.Target()
	s, ok := own.Load(target[strings.LastIndexByte(target, '/')+1:])
	if !ok {
		return nil, false
	}
	return s.(*services), true
}

func callUnary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	s, ok := served(conn)
	if !ok {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	m, ok := s.unary[method]
	if !ok || !s.begin() {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	defer s.running.RUnlock()
	wire, answer, err := codecOf(opts), any(nil), ctx.Err()
	if err == nil {
		receive := func(into any) error { return carry(req, wire, into, codec) }
		answer, err = m.handle(m.service, serverContext(ctx), receive, s.unaryInterceptor())
	}
	if err == nil {
		err = carry(answer, codec, reply, wire)
	}
	err = clientError(err)
	finish(opts, err)
	return err
}

// codec is that of gRPC.
var codec = encoding.GetCodecV2(proto.Name)

// codecOf returns the codec of a client's call.
func codecOf(opts []grpc.CallOption) encoding.CodecV2 {
	for _, opt := range slices.Backward(opts) {
		if o, ok := opt.(grpc.ForceCodecV2CallOption); ok {
			return o.CodecV2
		}
	}
	return codec
}

// carry copies a message as a connection does.
func carry(from any, encode encoding.CodecV2, to any, decode encoding.CodecV2) error {
	encoded, err := encode.Marshal(from)
	if err != nil {
		return err
	}
	defer encoded.Free()
	return decode.Unmarshal(encoded, to)
}

// unvalued is the context of a client without its values, which no connection carries.
type unvalued struct{ context.Context }

func (unvalued) Value(any) any { return nil }

// serverContext returns the context that a server gets.
func serverContext(ctx context.Context) context.Context {
	headers, _ := metadata.FromOutgoingContext(ctx)
	return metadata.NewIncomingContext(unvalued{ctx}, headers)
}

// clientError returns an error of a server as its client sees it.
func clientError(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	return status.FromContextError(err).Err()
}

// finish tells a client that asked for it how its request ended.
func finish(opts []grpc.CallOption, err error) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	for _, opt := range opts {
		if o, ok := opt.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}
