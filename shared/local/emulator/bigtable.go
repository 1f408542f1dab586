package emulator

import (
	"fmt"
	"net"
	"slices"

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
	server := grpc.NewServer(slices.Concat(opts, transport(), []grpc.ServerOption{grpc.WaitForHandlers(true)})...)
	if err := rows.Register(server, d); err != nil {
		return nil, fmt.Errorf("start the Bigtable emulator: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the Bigtable emulator: %w", err)
	}
	// Serve returns when Close stops the server.
	go func() { _ = server.Serve(listener) }()
	return &Bigtable{Addr: listener.Addr().String(), close: server.Stop}, nil
}

// StartBttest starts the server of Google's client library, for tests: it judges what
// StartBigtable answers. All data is in memory. It collects superseded cells as Google's
// Bigtable does, some time after the write: about once a second it walks every row under a
// lock that reads wait for.
func StartBttest(opts ...grpc.ServerOption) (*Bigtable, error) {
	server, err := bttest.NewServer("127.0.0.1:0", slices.Concat(opts, new(columns).options(), transport())...)
	if err != nil {
		return nil, fmt.Errorf("start the Bigtable emulator: %w", err)
	}
	return &Bigtable{Addr: server.Addr, close: server.Close}, nil
}

// Conn returns a connection for option.WithGRPCConn. The caller closes it. It
// accepts rows as large as the server sends, which a client's default limit
// would refuse.
func (b *Bigtable) Conn() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(b.Addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxRPC), grpc.MaxCallSendMsgSize(maxRPC)))
	if err != nil {
		return nil, fmt.Errorf("connect to the Bigtable emulator at %s: %w", b.Addr, err)
	}
	return conn, nil
}

// Close stops the server.
func (b *Bigtable) Close() { b.close() }
