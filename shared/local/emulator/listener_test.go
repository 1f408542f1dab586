package emulator_test

import (
	"context"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

// TestDial: a server answers clients with Dial without the network, and other clients over
// it. After its end it answers neither.
func TestDial(t *testing.T) {
	for name, start := range map[string]func(...grpc.ServerOption) (*emulator.Bigtable, error){
		"in process": func(opts ...grpc.ServerOption) (*emulator.Bigtable, error) {
			return emulator.StartBigtable(storetest.Disk(t), opts...)
		},
		"deployed": emulator.StartBttest,
	} {
		t.Run(name, func(t *testing.T) {
			var network string
			server, err := start(grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
				handle grpc.UnaryHandler) (any, error) {
				from, _ := peer.FromContext(ctx)
				network = from.Addr.Network()
				return handle(ctx, req)
			}))
			must.Succeed(t, err)
			ask := func(dial ...grpc.DialOption) codes.Code {
				conn, err := grpc.NewClient(server.Addr, append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
				must.Succeed(t, err)
				defer conn.Close()
				_, err = btpb.NewBigtableClient(conn).MutateRow(t.Context(), &btpb.MutateRowRequest{})
				return status.Code(err)
			}
			if code := ask(); code == codes.Unavailable || network != "tcp" {
				t.Errorf("a usual client gets %v over %q", code, network)
			}
			if code := ask(emulator.Dial()); code == codes.Unavailable || network != "bufconn" {
				t.Errorf("a client with Dial gets %v over %q", code, network)
			}
			server.Close()
			if usual, inside := ask(), ask(emulator.Dial()); usual != codes.Unavailable || inside != codes.Unavailable {
				t.Errorf("after the end clients get %v, and with Dial %v", usual, inside)
			}
		})
	}
}
