package rowstream

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Point reads single rows of a table. It records how the library asks for one: its
// request, headers and options. It then asks for others in the same way on the library's
// connections, with another key. The library takes over from an attempt that fails, as
// if it had made the attempt itself: it decides whether and when to try again, follows
// the server's routing cookies, and returns the error. It is safe for concurrent use.
type Point struct {
	conns *Conns
	table *bigtable.Table
	opts  []bigtable.ReadOption
	call  atomic.Pointer[call]
}

// NewPoint returns a Point of a table of the client whose connections are conns.
func NewPoint(conns *Conns, table *bigtable.Table, opts ...bigtable.ReadOption) *Point {
	return &Point{conns: conns, table: table, opts: append(opts[:len(opts):len(opts)], bigtable.LimitRows(1))}
}

// Read reads a row, as Table.ReadRow does. It does not call to.Row if the row does not
// exist. It returns the error of to.Row or of the read.
func (p *Point) Read(ctx context.Context, key string, to Receiver) error {
	d := &decoder{to: to, limit: 1}
	recorded := p.call.Load()
	if recorded == nil {
		d.record = &call{}
		err := p.throughLibrary(ctx, key, d)
		if err == nil && d.record.request != nil {
			p.call.Store(d.record)
		}
		return err
	}
	cc := p.conns.pick()
	if cc == nil {
		return p.throughLibrary(ctx, key, d)
	}
	s, err := recorded.begin(ctx, cc, key)
	if err != nil { // nothing was asked: the library may have closed the connection
		return p.throughLibrary(ctx, key, d)
	}
	attempt := &stream{ClientStream: s, decoder: d}
	attempt.ended = attempt.receive()
	attempt.drain()
	if errors.Is(attempt.ended, io.EOF) {
		return d.stopped
	}
	d.failed = &failedStream{attempt}
	return p.throughLibrary(ctx, key, d)
}

func (p *Point) throughLibrary(ctx context.Context, key string, d *decoder) error {
	return read(ctx, p.table, bigtable.SingleRow(key), d, p.opts...)
}

// call is how the library asks for a row.
type call struct {
	open    grpc.Streamer // the interceptors that are left, and gRPC
	desc    *grpc.StreamDesc
	opts    []grpc.CallOption
	headers metadata.MD // without the time of the attempt
	request []byte      // encoded, without the key
}

// attemptTime is the header of the time at which an attempt begins, in microseconds
// since 1970. The library sets it at every attempt.
const attemptTime = "bigtable-client-attempt-epoch-usec"

// opened records a stream that the library opens: the first, because the headers of
// later ones answer those of the attempt before.
func (c *call) opened(ctx context.Context, desc *grpc.StreamDesc, open grpc.Streamer, opts []grpc.CallOption) {
	if c == nil || c.open != nil {
		return
	}
	c.open, c.desc, c.opts = open, desc, nil
	c.headers, _ = metadata.FromOutgoingContext(ctx) // a copy
	delete(c.headers, attemptTime)
	for _, o := range opts {
		if _, counts := o.(grpc.OnFinishCallOption); !counts { // the streams of one connection
			c.opts = append(c.opts, o)
		}
	}
}

// Fields of google.bigtable.v2.ReadRowsRequest and of its RowSet.
const (
	fieldRows   = 2
	fieldRowKey = 1
)

// requested records the request of the stream.
func (c *call) requested(req *bigtablepb.ReadRowsRequest) {
	if c == nil || c.request != nil {
		return
	}
	rows := req.Rows
	req.Rows = nil
	c.request, _ = proto.Marshal(req) // nil if the library cannot send the request either
	req.Rows = rows
}

// begin sends the request for another row on a connection.
func (c *call) begin(ctx context.Context, cc *grpc.ClientConn, key string) (grpc.ClientStream, error) {
	ctx = metadata.AppendToOutgoingContext(metadata.NewOutgoingContext(ctx, c.headers),
		attemptTime, strconv.FormatInt(time.Now().UnixMicro(), 10))
	s, err := c.open(ctx, c.desc, cc, bigtablepb.Bigtable_ReadRows_FullMethodName, c.opts...)
	if err != nil {
		return nil, err
	}
	rows := protowire.SizeTag(fieldRowKey) + protowire.SizeBytes(len(key))
	b := make([]byte, 0, len(c.request)+protowire.SizeTag(fieldRows)+protowire.SizeBytes(rows))
	b = protowire.AppendTag(append(b, c.request...), fieldRows, protowire.BytesType)
	b = protowire.AppendTag(protowire.AppendVarint(b, uint64(rows)), fieldRowKey, protowire.BytesType)
	// After an error, which is io.EOF, the stream says why when it receives.
	if err := s.SendMsg(encoded(protowire.AppendString(b, key))); err == nil {
		_ = s.CloseSend() // never fails
	}
	return s, nil
}

// drain receives what is left of an answer. The library would cancel the request.
func (s *stream) drain() {
	for err := error(nil); s.left && err == nil; {
		var f frame
		if err = s.ClientStream.RecvMsg(&f); err == nil {
			f.data.Free()
		}
	}
}

// encoded is a request in its encoding.
type encoded []byte

// failedStream shows the library an attempt that has failed.
type failedStream struct{ *stream }

// take passes the attempt to the library in place of a stream that it opens, if there is
// one. What counts the streams of a connection learns that this one has ended.
func (d *decoder) take(opts []grpc.CallOption) grpc.ClientStream {
	s := d.failed
	if d.failed = nil; s == nil {
		return nil
	}
	for _, o := range opts {
		if counts, ok := o.(grpc.OnFinishCallOption); ok {
			counts.OnFinish(nil)
		}
	}
	return s
}

func (s *failedStream) SendMsg(any) error { return nil }
func (s *failedStream) CloseSend() error  { return nil }
