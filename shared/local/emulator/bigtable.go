package emulator

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/rows"
)

// Bigtable is a Bigtable server in this process. It starts without tables and
// needs no instance.
type Bigtable struct {
	// Addr is the host:port the server listens on, for option.WithEndpoint or
	// BIGTABLE_EMULATOR_HOST.
	Addr  string
	close func()
}

// StartBigtable starts a server on a free port of 127.0.0.1 that keeps its tables on d;
// see package rows. opts may hold interceptors, which see every request. The caller closes
// d after the server.
func StartBigtable(d *disk.Disk, opts ...grpc.ServerOption) (*Bigtable, error) {
	o := expand(opts)
	server := grpc.NewServer(slices.Concat(o.known, transport(), []grpc.ServerOption{grpc.WaitForHandlers(true)})...)
	inProcess := newServices(server, o.around)
	if err := rows.Register(inProcess, d); err != nil {
		return nil, fmt.Errorf("start the Bigtable emulator: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the Bigtable emulator: %w", err)
	}
	// Serve returns when Close stops the server.
	go func() { _ = server.Serve(listener) }()
	b := &Bigtable{Addr: listener.Addr().String(), close: server.Stop}
	if o.direct {
		b.answerInProcess(inProcess)
	}
	return b, nil
}

// StartBttest starts the server of Google's client library, for tests: it judges what
// StartBigtable answers. All data is in memory. It collects superseded cells as Google's
// Bigtable does, some time after the write: about once a second it walks every row under a
// lock that reads wait for.
func StartBttest(opts ...grpc.ServerOption) (*Bigtable, error) {
	fake, columns := new(fake), new(columns)
	o := expand(append(opts[:len(opts):len(opts)], Around(columns.unary, columns.stream)))
	server, err := bttest.NewServer("127.0.0.1:0", slices.Concat([]grpc.ServerOption{
		grpc.ChainUnaryInterceptor(fake.unary)}, o.known, transport())...)
	if err != nil {
		return nil, fmt.Errorf("start the Bigtable emulator: %w", err)
	}
	b := &Bigtable{Addr: server.Addr, close: server.Close}
	if !o.direct {
		return b, nil
	}
	inProcess, err := fake.services(b, o.around)
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("start the Bigtable emulator: %w", err)
	}
	b.answerInProcess(inProcess)
	return b, nil
}

// answerInProcess makes the server answer clients of InProcess until it is closed.
func (b *Bigtable) answerInProcess(s *services) {
	stop, end := s.serve(b.Addr), b.close
	b.close = func() { stop(); end() }
}

// fake is the service of bttest, which the package hides from all but interceptors.
type fake struct {
	found   sync.Once // each client that connects may ask again
	service any
}

func (f *fake) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if _, ok := req.(*btpb.PingAndWarmRequest); !ok {
		return handle(ctx, req)
	}
	f.found.Do(func() { f.service = info.Server })
	return &btpb.PingAndWarmResponse{}, nil
}

// services asks the server for its service.
func (f *fake) services(b *Bigtable, around []around) (*services, error) {
	conn, err := b.Conn()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := btpb.NewBigtableClient(conn).PingAndWarm(context.Background(), &btpb.PingAndWarmRequest{}); err != nil {
		return nil, err
	}
	s := newServices(nil, around)
	btpb.RegisterBigtableServer(s, f.service.(btpb.BigtableServer))
	btapb.RegisterBigtableTableAdminServer(s, f.service.(btapb.BigtableTableAdminServer))
	return s, nil
}

// Conn returns a connection for option.WithGRPCConn. The caller closes it. It
// accepts rows as large as the server sends, which a client's default limit
// would refuse.
func (b *Bigtable) Conn(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(b.Addr, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxRPC), grpc.MaxCallSendMsgSize(maxRPC))}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to the Bigtable emulator at %s: %w", b.Addr, err)
	}
	return conn, nil
}

// Close stops the server.
func (b *Bigtable) Close() { b.close() }
