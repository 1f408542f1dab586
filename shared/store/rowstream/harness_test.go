package rowstream_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/api/option"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

type (
	chunk   = bigtablepb.ReadRowsResponse_CellChunk
	message = bigtablepb.ReadRowsResponse
)

// attempt is the answer to one request: messages, and how it ends.
type attempt struct {
	messages []*message
	end      error
	trailer  metadata.MD
}

// fake is a Bigtable that gives prepared answers. Behind the last of them it ends
// every request without rows.
type fake struct {
	bigtablepb.UnimplementedBigtableServer
	mu       sync.Mutex
	attempts []attempt
	requests []*bigtablepb.ReadRowsRequest
	headers  []metadata.MD
	before   func(*bigtablepb.ReadRowsRequest) // nil: nothing happens before an answer
}

func (f *fake) ReadRows(req *bigtablepb.ReadRowsRequest, stream bigtablepb.Bigtable_ReadRowsServer) error {
	f.mu.Lock()
	var a attempt
	if n := len(f.requests); n < len(f.attempts) {
		a = f.attempts[n]
	}
	header, _ := metadata.FromIncomingContext(stream.Context())
	f.requests, f.headers = append(f.requests, req), append(f.headers, header)
	before := f.before
	f.mu.Unlock()
	if before != nil {
		before(req)
	}
	stream.SetTrailer(a.trailer)
	for _, m := range a.messages {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return a.end
}

// again is an error after which the library tries again at once.
func again() error {
	s, err := status.New(codes.Unavailable, "broken by the test").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(0)})
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// clients are two clients of a fake: one decodes in place, and one is the library's.
type clients struct {
	*fake
	own, library *bigtable.Client
	conns        *rowstream.Conns // of own
	conn         *grpc.ClientConn // the only one of own
	streams      atomic.Int64     // that own has opened and not ended
}

func start(t testing.TB) *clients {
	t.Helper()
	listener, server := bufconn.Listen(1<<20), grpc.NewServer()
	c := &clients{fake: &fake{}, conns: rowstream.NewConns()}
	bigtablepb.RegisterBigtableServer(server, c.fake)
	go func() { _ = server.Serve(listener) }() // until the test ends
	t.Cleanup(server.Stop)
	open := func(opts ...grpc.DialOption) (*bigtable.Client, *grpc.ClientConn) {
		conn, err := grpc.NewClient("passthrough:///fake", append(opts,
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		must.Succeed(t, err)
		client, err := bigtable.NewClientWithConfig(t.Context(), "p", "i",
			bigtable.ClientConfig{AppProfile: "batch", MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
		must.Succeed(t, err)
		t.Cleanup(func() { conn.Close() })
		return client, conn
	}
	c.own, c.conn = open(grpc.WithChainStreamInterceptor(c.count, c.conns.Stream), grpc.WithChainUnaryInterceptor(c.conns.Unary))
	c.library, _ = open(grpc.WithChainStreamInterceptor(c.count))
	return c
}

// count counts the streams that the library opens, as its pool of connections does, and
// says when an attempt begins, as its own interceptor does.
func (c *clients) count(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	c.streams.Add(1)
	ctx = metadata.AppendToOutgoingContext(ctx, "bigtable-client-attempt-epoch-usec", "1")
	return open(ctx, desc, cc, method, append(opts, grpc.OnFinish(func(error) { c.streams.Add(-1) }))...)
}

// row and cell are copies of what a read passes on.
type row struct {
	Key   string
	Cells []cell
}

type cell struct {
	Family, Qualifier string
	Time              int64
	Value             string
}

// outcome is all that one read has shown.
type outcome struct {
	Rows     []row
	Err      error
	Requests []*bigtablepb.ReadRowsRequest
}

var errStop = errors.New("stopped by the test")

// read reads through a client from prepared answers. It stops after some rows, unless
// stop is 0.
func (c *clients) read(ctx context.Context, client *bigtable.Client, set bigtable.RowSet, stop int, attempts []attempt, opts ...bigtable.ReadOption) outcome {
	return c.outcome(stop, attempts, func(to rowstream.Receiver) error {
		return rowstream.Read(ctx, client.Open("t"), set, to, opts...)
	})
}

// outcome is that of a read from prepared answers.
func (c *clients) outcome(stop int, attempts []attempt, read func(rowstream.Receiver) error) outcome {
	c.mu.Lock()
	c.attempts, c.requests, c.headers = attempts, nil, nil
	c.mu.Unlock()
	var got outcome
	got.Err = read(rowstream.Receiver{Row: func(r *rowstream.Row) error {
		kept := row{Key: string(r.Key)}
		for _, c := range r.Cells {
			kept.Cells = append(kept.Cells, cell{string(c.Family), string(c.Qualifier), c.Time, string(c.Value)})
		}
		// The library forgets how families follow each other.
		slices.SortStableFunc(kept.Cells, func(a, b cell) int { return strings.Compare(a.Family, b.Family) })
		if got.Rows = append(got.Rows, kept); len(got.Rows) == stop {
			return errStop
		}
		return nil
	}})
	c.mu.Lock()
	defer c.mu.Unlock()
	got.Requests = c.requests
	return got
}

// first returns a chunk that begins a row, with a whole value.
func first(key, family, qualifier, value string) *chunk {
	return &chunk{RowKey: []byte(key), FamilyName: wrapperspb.String(family), Qualifier: wrapperspb.Bytes([]byte(qualifier)),
		TimestampMicros: 1000, Value: []byte(value)}
}

func committed(c *chunk) *chunk {
	c.RowStatus = &bigtablepb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
	return c
}

func reset() *chunk {
	return &chunk{RowStatus: &bigtablepb.ReadRowsResponse_CellChunk_ResetRow{ResetRow: true}}
}

// whole is a row of one cell in one chunk.
func whole(key string) *chunk { return committed(first(key, "f", "q", "v"+key)) }

func of(chunks ...*chunk) *message { return &message{Chunks: chunks} }

func keys(rows []row) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Key)
	}
	return strings.Join(all, " ")
}
