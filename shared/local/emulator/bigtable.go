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

// StartBigtable starts a server on a free port of 127.0.0.1. In a family that
// keeps one version, a write drops the superseded cells at once. In a family
// with an age, the server drops cells by the wall clock, whatever clock the
// caller uses. opts may hold interceptors, which see every request.
func StartBigtable(opts ...grpc.ServerOption) (*Bigtable, error) {
	v := &versions{single: map[familyName]bool{}}
	return serveBigtable(slices.Concat(opts, new(columns).options(), v.options()))
}

// StartPlainBigtable starts a server that collects superseded cells as Google's
// Bigtable does: some time after the write. About once a second it walks every
// row under a lock that reads wait for.
func StartPlainBigtable(opts ...grpc.ServerOption) (*Bigtable, error) {
	return serveBigtable(slices.Concat(opts, new(columns).options()))
}

func serveBigtable(opts []grpc.ServerOption) (*Bigtable, error) {
	opts = slices.Concat(opts, transport())
	server, err := bttest.NewServer("127.0.0.1:0", opts...)
	if err != nil {
		return nil, fmt.Errorf("start the Bigtable emulator: %w", err)
	}
	return &Bigtable{Addr: server.Addr, close: server.Close}, nil
}

// StartStoredBigtable starts a server on a free port of 127.0.0.1 that keeps its tables
// in a folder; see package rows. The caller closes the folder after the server.
func StartStoredBigtable(d *disk.Disk, opts ...grpc.ServerOption) (*Bigtable, error) {
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

// Close stops the server. What StartStoredBigtable keeps stays in its folder; all other
// data is discarded.
func (b *Bigtable) Close() { b.close() }
