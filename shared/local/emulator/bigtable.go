package emulator

import (
	"fmt"

	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Bigtable is a Bigtable server in this process. It starts empty: making tables is the store's business, and there are
// no instances to make. Its garbage collection follows the wall clock, so a family with an age loses old cells whatever
// clock the caller uses.
type Bigtable struct {
	// Addr is the host:port the server listens on, for option.WithEndpoint or BIGTABLE_EMULATOR_HOST.
	Addr   string
	server *bttest.Server
}

// StartBigtable starts a server. Options add to its own, such as interceptors, which see every request. The error says
// why no port of 127.0.0.1 could be had.
func StartBigtable(opts ...grpc.ServerOption) (*Bigtable, error) {
	server, err := bttest.NewServer("127.0.0.1:0", append(opts, grpc.MaxRecvMsgSize(maxRPC), grpc.MaxSendMsgSize(maxRPC))...)
	if err != nil {
		return nil, fmt.Errorf("start the Bigtable stand-in: %w", err)
	}
	return &Bigtable{Addr: server.Addr, server: server}, nil
}

// Conn returns a connection for option.WithGRPCConn, which the caller closes. It takes rows as large as the server
// sends, where a client's own default would refuse them.
func (b *Bigtable) Conn() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(b.Addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxRPC), grpc.MaxCallSendMsgSize(maxRPC)))
	if err != nil {
		return nil, fmt.Errorf("connect to the Bigtable stand-in at %s: %w", b.Addr, err)
	}
	return conn, nil
}

// Close stops the server and drops its data.
func (b *Bigtable) Close() { b.server.Close() }
