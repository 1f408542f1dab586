package emulator

import (
	"fmt"
	"slices"

	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Bigtable is a Bigtable server in this process. It starts without tables and
// needs no instance.
type Bigtable struct {
	// Addr is the host:port the server listens on, for option.WithEndpoint or
	// BIGTABLE_EMULATOR_HOST.
	Addr   string
	server *bttest.Server
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
	return &Bigtable{Addr: server.Addr, server: server}, nil
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

// Close stops the server and discards its data.
func (b *Bigtable) Close() { b.server.Close() }
