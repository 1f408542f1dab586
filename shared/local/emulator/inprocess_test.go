package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

const table = "projects/p/instances/i/tables/t"

// inProcess calls test with both kinds of servers, which have a table, and a client of
// InProcess. connected says how many requests have come over a connection.
func inProcess(t *testing.T, test func(t *testing.T, server *emulator.Bigtable, client btpb.BigtableClient, connected *int)) {
	for name, start := range map[string]func(...grpc.ServerOption) (*emulator.Bigtable, error){
		"local": func(opts ...grpc.ServerOption) (*emulator.Bigtable, error) {
			return emulator.StartBigtable(storetest.Disk(t), opts...)
		},
		"deployed": emulator.StartBttest,
	} {
		t.Run(name, func(t *testing.T) {
			var connected int
			count := func(ctx context.Context) {
				if _, ok := peer.FromContext(ctx); ok {
					connected++
				}
			}
			server, err := start(emulator.Guard("secret"), emulator.Around(
				func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
					count(ctx)
					return handle(ctx, req)
				}, func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
					count(stream.Context())
					return handle(srv, stream)
				}))
			must.Succeed(t, err)
			t.Cleanup(server.Close)
			conn, err := server.Conn(append([]grpc.DialOption{emulator.WithToken("secret")}, emulator.InProcess()...)...)
			must.Succeed(t, err)
			must.CloseAtEnd(t, conn)
			_, err = btapb.NewBigtableTableAdminClient(conn).CreateTable(t.Context(), &btapb.CreateTableRequest{
				Parent: "projects/p/instances/i", TableId: "t",
				Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}}})
			must.Succeed(t, err)
			connected = 0
			test(t, server, btpb.NewBigtableClient(conn), &connected)
		})
	}
}

func write(t *testing.T, client btpb.BigtableClient, key, value string) {
	t.Helper()
	_, err := client.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: table, RowKey: []byte(key), Mutations: []*btpb.Mutation{
		{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: "f", ColumnQualifier: []byte("c"), Value: []byte(value)}}}}})
	must.Succeed(t, err)
}

// read returns how many rows a read receives, and its end.
func read(ctx context.Context, client btpb.BigtableClient, table string) (int, error) {
	stream, err := client.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: table})
	for rows := 0; ; {
		var answer *btpb.ReadRowsResponse
		if err == nil {
			answer, err = stream.Recv()
		}
		if err != nil {
			return rows, err
		}
		for _, c := range answer.Chunks {
			if c.GetCommitRow() {
				rows++
			}
		}
	}
}

// TestInProcess: requests of InProcess are answered as over a connection, and need none. Those
// of other clients still come over it.
func TestInProcess(t *testing.T) {
	inProcess(t, func(t *testing.T, server *emulator.Bigtable, client btpb.BigtableClient, connected *int) {
		const rows = 1000 // more than a stream holds
		for i := range rows {
			write(t, client, fmt.Sprintf("%04d", i), strings.Repeat("v", 10*i))
		}
		if n, err := read(t.Context(), client, table); n != rows || !errors.Is(err, io.EOF) {
			t.Errorf("read %d rows of %d: %v", n, rows, err)
		}
		if _, err := read(t.Context(), client, table+"x"); status.Code(err) != codes.NotFound {
			t.Errorf("an unknown table is read: %v", err)
		}
		_, err := client.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: table + "x", RowKey: []byte("r"),
			Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}}})
		if status.Code(err) != codes.NotFound {
			t.Errorf("an unknown table is written: %v", err)
		}
		if *connected != 0 {
			t.Errorf("%d requests came over a connection", *connected)
		}
		conn, err := server.Conn(emulator.WithToken("secret"))
		must.Succeed(t, err)
		must.CloseAtEnd(t, conn)
		if n, _ := read(t.Context(), btpb.NewBigtableClient(conn), table); n != rows || *connected != 1 {
			t.Errorf("another client reads %d rows in %d requests over a connection", n, *connected)
		}
	})
}

// TestInProcessEnds: a request whose context ends does, and so does one of a server that is
// stopped. The server waits for those that it answers.
func TestInProcessEnds(t *testing.T) {
	inProcess(t, func(t *testing.T, server *emulator.Bigtable, client btpb.BigtableClient, _ *int) {
		for i := range 200 { // more than a stream holds
			write(t, client, fmt.Sprint(i), strings.Repeat("v", 64<<10))
		}
		ctx, cancel := context.WithCancel(t.Context())
		canceled, err := client.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: table})
		must.Succeed(t, err)
		cancel()
		for err == nil {
			_, err = canceled.Recv()
		}
		if status.Code(err) != codes.Canceled {
			t.Errorf("a read whose context ended: %v", err)
		}
		_, err = client.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: []byte("r")})
		if status.Code(err) != codes.Canceled {
			t.Errorf("a write whose context ended: %v", err)
		}
		left, err := client.ReadRows(t.Context(), &btpb.ReadRowsRequest{TableName: table})
		must.Succeed(t, err)
		_, err = left.Recv()
		must.Succeed(t, err)
		server.Close() // returns though nobody receives the rest
		for err == nil {
			_, err = left.Recv()
		}
		if status.Code(err) != codes.Unavailable {
			t.Errorf("a read of a server that is stopped: %v", err)
		}
		if _, err := read(t.Context(), client, table); status.Code(err) != codes.Unavailable {
			t.Errorf("a read after the end of the server: %v", err)
		}
	})
}
