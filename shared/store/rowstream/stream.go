package rowstream

import (
	"context"
	"errors"
	"fmt"
	"io"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of requests
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
)

type decoderKey struct{}

// intercept is the interceptor of streams that a client must have for Read to decode
// answers in place. It leaves all other requests alone.
func intercept(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	d, ok := ctx.Value(decoderKey{}).(*decoder)
	if !ok || method != bigtablepb.Bigtable_ReadRows_FullMethodName {
		return open(ctx, desc, cc, method, opts...)
	}
	if failed := d.take(opts); failed != nil {
		return failed, nil
	}
	opts = append(opts[:len(opts):len(opts)], grpc.ForceCodecV2(codec{}))
	d.record.opened(ctx, desc, open, opts)
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &stream{ClientStream: s, decoder: d}, nil
}

// stream is one attempt to read the rows of a decoder.
type stream struct {
	grpc.ClientStream
	decoder *decoder
	ended   error
	named   bool // the last row, to the library
	left    bool // before the end of the answer
}

// SendMsg sends the request. The library does not know which rows have arrived, so
// that the limit of an attempt after the first is set here.
func (s *stream) SendMsg(m any) error {
	if req, ok := m.(*bigtablepb.ReadRowsRequest); ok {
		s.decoder.begin()
		s.decoder.record.requested(req)
		if req.RowsLimit > 0 {
			s.decoder.limit = req.RowsLimit
			req.RowsLimit -= s.decoder.rows
		}
	}
	return s.ClientStream.SendMsg(m)
}

// RecvMsg reads the answer to its end. After an error it names the last row first, and
// returns the error when it is called again.
func (s *stream) RecvMsg(m any) error {
	res, ok := m.(*bigtablepb.ReadRowsResponse)
	if !ok {
		return s.ClientStream.RecvMsg(m)
	}
	if s.ended == nil {
		s.ended = s.receive()
	}
	if s.named || errors.Is(s.ended, io.EOF) || len(s.decoder.last) == 0 {
		return s.ended
	}
	s.named = true
	res.Reset()
	res.LastScannedRowKey = s.decoder.last
	return nil
}

// receive passes on all rows of the answer. It returns io.EOF after the last one, or
// after one that its receiver did not want.
func (s *stream) receive() error {
	d := s.decoder
	for {
		var f frame
		switch err := s.ClientStream.RecvMsg(&f); {
		case err == nil:
		case errors.Is(err, io.EOF):
			return d.end()
		case d.limit > 0 && d.rows >= d.limit:
			return io.EOF // all rows have arrived
		default:
			return err
		}
		err := d.read(f.data)
		if d.stopped != nil {
			s.left = true // the library cancels the request
			return io.EOF
		}
		if err != nil {
			s.left = true
			return fmt.Errorf("read the rows of an answer: %w", err)
		}
	}
}

// Trailer returns the trailer of an answer that has been read to its end.
func (s *stream) Trailer() metadata.MD {
	if s.left {
		return nil // gRPC may still be writing it
	}
	return s.ClientStream.Trailer()
}

// frame is a message as gRPC received it.
type frame struct{ data mem.BufferSlice }

// codec leaves answers as they are. It encodes requests as gRPC does by default.
type codec struct{}

var defaultCodec = encoding.GetCodecV2(codec{}.Name())

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(encoded); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return defaultCodec.Marshal(v)
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return defaultCodec.Unmarshal(data, v)
	}
	data.Ref()
	f.data = data
	return nil
}
