package store

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/store/rowstream"
)

// meter counts the rows of each app that requests write and answers hold, and their
// bytes, in one place for everything that the store does. It reads the app from the
// row's key.
type meter struct{ counter atomic.Pointer[usage.Counter] }

// CountIn makes the store count rows and bytes of apps.
func (s *Store) CountIn(c *usage.Counter) {
	s.meter.counter.Store(c)
	all, _ := s.Regions()
	for _, at := range all {
		at.CountIn(c)
	}
}

// options are those of a client whose connections are conns.
func (m *meter) options(conns *rowstream.Conns) []option.ClientOption {
	return []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithChainStreamInterceptor(conns.Stream, rowstream.InterceptWrites, m.stream)),
		option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(conns.Unary, m.unary)),
	}
}

// received returns a function that counts rows which no stream has counted, because
// nothing but the receiver decodes them, and one that must be called after the last.
func (m *meter) received() (count func(key []byte, bytes int), end func()) {
	c := m.counter.Load()
	if c == nil {
		return nil, func() {}
	}
	t := &tally{counter: c}
	return t.received, t.report
}

func (m *meter) unary(ctx context.Context, method string, req, resp any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if err := inTime(ctx); err != nil {
		return err
	}
	if c := m.counter.Load(); c != nil {
		t := tally{counter: c}
		t.request(req)
		t.report()
	}
	return invoke(ctx, method, req, resp, cc, opts...)
}

func (m *meter) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := inTime(ctx); err != nil {
		return nil, err
	}
	stream, err := streamer(ctx, desc, cc, method, opts...)
	c := m.counter.Load()
	if err != nil || c == nil {
		return stream, err
	}
	return &meteredStream{ClientStream: stream, tally: tally{counter: c}}, nil
}

// inTime refuses a request to Bigtable whose work is over. Each attempt of a request comes
// here.
func inTime(ctx context.Context) error {
	if err := deadline.Check(ctx, time.Now()); err != nil {
		return status.Error(codes.Canceled, err.Error()) // which the client does not try again
	}
	return nil
}

// meteredStream counts what a stream sends and receives.
type meteredStream struct {
	grpc.ClientStream
	tally tally
	own   bool // the table of usage, which does not count itself
}

func (s *meteredStream) SendMsg(msg any) error {
	if r, ok := msg.(*bigtablepb.ReadRowsRequest); ok {
		s.own = ownTable(r.TableName)
	}
	s.tally.request(msg)
	s.tally.report()
	return s.ClientStream.SendMsg(msg)
}

func (s *meteredStream) RecvMsg(msg any) error {
	err := s.ClientStream.RecvMsg(msg)
	if r, ok := msg.(*bigtablepb.ReadRowsResponse); ok && err == nil && !s.own {
		for _, chunk := range r.Chunks {
			if len(chunk.RowKey) > 0 { // at least in the first chunk of a row
				s.tally.of(chunk.RowKey)
			}
			if chunk.GetCommitRow() {
				s.tally.counts.Rows++
			}
			s.tally.counts.Bytes += int64(len(chunk.RowKey) + len(chunk.Qualifier.GetValue()) + len(chunk.Value))
		}
		s.tally.report()
	}
	return err
}

// ownTable reports whether the full name is that of the table of usage, in any set of tables.
func ownTable(name string) bool {
	_, table, _ := strings.Cut(name, "/tables/")
	table, _, _ = strings.Cut(table, ".")
	return table == TableUsage
}

// tally adds up the rows of one app that follow each other.
type tally struct {
	counter *usage.Counter
	app     string
	counts  usage.Counts
}

// of makes what follows count for the app of a row's key.
func (t *tally) of(key []byte) {
	app, _, _ := bytes.Cut(key, comma)
	if string(app) != t.app {
		t.report()
		t.app = string(app)
	}
}

var comma = []byte{','}

// reportEvery is the number of received rows after which a tally reports them.
const reportEvery = 1000

func (t *tally) received(key []byte, bytes int) {
	t.of(key)
	t.counts.Rows++
	if t.counts.Bytes += int64(bytes); t.counts.Rows == reportEvery {
		t.report()
	}
}

func (t *tally) report() {
	if t.counts != (usage.Counts{}) {
		t.counter.Add(t.app, t.counts)
		t.counts = usage.Counts{}
	}
}

// request counts the rows that a request writes.
func (t *tally) request(msg any) {
	switch r := msg.(type) {
	case *bigtablepb.MutateRowRequest:
		if !ownTable(r.TableName) {
			t.write(r.RowKey, r.Mutations)
		}
	case *bigtablepb.MutateRowsRequest:
		for _, e := range r.Entries {
			t.write(e.RowKey, e.Mutations)
		}
	case *bigtablepb.CheckAndMutateRowRequest:
		t.write(r.RowKey, r.TrueMutations)
		t.counts.Bytes += size(r.FalseMutations)
	case *bigtablepb.ReadModifyWriteRowRequest:
		if ownTable(r.TableName) {
			return
		}
		t.write(r.RowKey, nil)
		for _, rule := range r.Rules {
			t.counts.Bytes += int64(len(rule.ColumnQualifier) + len(rule.GetAppendValue()))
		}
	}
}

func (t *tally) write(key []byte, mutations []*bigtablepb.Mutation) {
	t.of(key)
	t.counts.Rows++
	t.counts.Bytes += int64(len(key)) + size(mutations)
}

// size is the number of bytes of the columns and values that mutations write.
func size(mutations []*bigtablepb.Mutation) int64 {
	n := 0
	for _, m := range mutations {
		if set := m.GetSetCell(); set != nil {
			n += len(set.ColumnQualifier) + len(set.Value)
		}
	}
	return int64(n)
}
