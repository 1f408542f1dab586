package rowstream

import (
	"context"
	"sync"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// InterceptWrites is an interceptor of streams with which a client encodes requests that
// write many rows, and decodes their answers, with less work. The encoded requests are the same.
func InterceptWrites(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method == bigtablepb.Bigtable_MutateRows_FullMethodName {
		opts = append(opts[:len(opts):len(opts)], grpc.ForceCodecV2(writeCodec{}))
	}
	return open(ctx, desc, cc, method, opts...)
}

// writeCodec is gRPC's default codec, but for rows of which a request only sets cells, and
// for answers that all rows were written.
type writeCodec struct{}

func (writeCodec) Name() string { return codec{}.Name() }

func (writeCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if res, ok := v.(*bigtablepb.MutateRowsResponse); ok && len(data) == 1 && decodeWritten(data[0].ReadOnlyData(), res) {
		return nil
	}
	return defaultCodec.Unmarshal(data, v)
}

func (writeCodec) Marshal(v any) (mem.BufferSlice, error) {
	if req, ok := v.(*bigtablepb.MutateRowsRequest); ok {
		if data, ok := encodeRows(req); ok {
			return data, nil
		}
	}
	return defaultCodec.Marshal(v)
}

// buffers reuses the buffers of requests. gRPC's pool clears a buffer of 1 MB for each
// request of more than 32 KB; here all bytes are overwritten.
type buffers struct{ pool sync.Pool }

var requests = &buffers{}

// Get returns a buffer of a length, with any content.
func (p *buffers) Get(length int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= length {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length)
	return &b
}

// maxReused is the largest buffer that is kept. The store sends requests of 1 MB, and of
// one row if it is larger.
const maxReused = 2 << 20

// Put takes a buffer back.
func (p *buffers) Put(b *[]byte) {
	if cap(*b) <= maxReused {
		p.pool.Put(b)
	}
}

// Tags of fields of a request, of its entries, of their mutations, and of the cells that
// these set. A tag with the length or the number after it has one byte.
const (
	tagEntry     = 2<<3 | byte(protowire.BytesType)
	tagEntryKey  = 1<<3 | byte(protowire.BytesType)
	tagMutation  = 2<<3 | byte(protowire.BytesType)
	tagSetCell   = 1<<3 | byte(protowire.BytesType)
	tagSetFamily = 1<<3 | byte(protowire.BytesType)
	tagSetColumn = 2<<3 | byte(protowire.BytesType)
	tagSetTime   = 3<<3 | byte(protowire.VarintType)
	tagSetValue  = 4<<3 | byte(protowire.BytesType)
)

// encodeRows encodes a request. It returns false if the request does more than set
// cells.
func encodeRows(req *bigtablepb.MutateRowsRequest) (mem.BufferSlice, bool) {
	rest, err := proto.Marshal(&bigtablepb.MutateRowsRequest{
		TableName: req.TableName, AuthorizedViewName: req.AuthorizedViewName, AppProfileId: req.AppProfileId,
	})
	size := len(rest)
	for _, e := range req.Entries {
		n, ok := entrySize(e)
		if !ok || err != nil {
			return nil, false
		}
		size += 1 + protowire.SizeBytes(n)
	}
	buffer := requests.Get(size)
	b := append((*buffer)[:0], rest...)
	for _, e := range req.Entries {
		n, _ := entrySize(e)
		b = appendLength(b, tagEntry, n)
		b = appendBytes(b, tagEntryKey, e.RowKey)
		for _, m := range e.Mutations {
			cell := m.GetSetCell()
			n := cellSize(cell)
			b = appendLength(b, tagMutation, 1+protowire.SizeBytes(n))
			b = appendLength(b, tagSetCell, n)
			b = appendCell(b, cell)
		}
	}
	*buffer = b
	return mem.BufferSlice{mem.NewBuffer(buffer, requests)}, true
}

// entrySize returns the encoded size of a row without its length. It returns false if
// more than cells are set.
func entrySize(e *bigtablepb.MutateRowsRequest_Entry) (int, bool) {
	if e.GetIdempotency() != nil {
		return 0, false
	}
	n := bytesSize(len(e.GetRowKey()))
	for _, m := range e.GetMutations() {
		set, ok := m.GetMutation().(*bigtablepb.Mutation_SetCell_)
		if !ok || set.SetCell == nil {
			return 0, false
		}
		n += 1 + protowire.SizeBytes(1+protowire.SizeBytes(cellSize(set.SetCell)))
	}
	return n, true
}

func cellSize(c *bigtablepb.Mutation_SetCell) int {
	n := bytesSize(len(c.FamilyName)) + bytesSize(len(c.ColumnQualifier)) + bytesSize(len(c.Value))
	if c.TimestampMicros != 0 {
		n += 1 + protowire.SizeVarint(uint64(c.TimestampMicros))
	}
	return n
}

func appendCell(b []byte, c *bigtablepb.Mutation_SetCell) []byte {
	if len(c.FamilyName) > 0 {
		b = append(appendLength(b, tagSetFamily, len(c.FamilyName)), c.FamilyName...)
	}
	b = appendBytes(b, tagSetColumn, c.ColumnQualifier)
	if c.TimestampMicros != 0 {
		b = protowire.AppendVarint(append(b, tagSetTime), uint64(c.TimestampMicros))
	}
	return appendBytes(b, tagSetValue, c.Value)
}

// bytesSize is the size of a field of n bytes. An empty one is left out.
func bytesSize(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + protowire.SizeBytes(n)
}

func appendBytes(b []byte, tag byte, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return append(appendLength(b, tag, len(v)), v...)
}

func appendLength(b []byte, tag byte, n int) []byte {
	return protowire.AppendVarint(append(b, tag), uint64(n))
}
