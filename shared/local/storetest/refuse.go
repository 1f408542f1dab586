package storetest

import (
	"context"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Refuse makes Bigtable refuse requests that write certain rows of a table, however
// often they are sent. A request of several rows fails as a whole.
func Refuse(rows func(table, key string) bool) []grpc.DialOption {
	refuse := func(table string, key []byte) error {
		if rows(table[strings.LastIndexByte(table, '/')+1:], string(key)) {
			return status.Error(codes.InvalidArgument, "refused by the test")
		}
		return nil
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if m, ok := req.(*btpb.MutateRowRequest); ok {
				if err := refuse(m.GetTableName(), m.GetRowKey()); err != nil {
					return err
				}
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
			method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(ctx, desc, cc, method, opts...)
			return refusing{s, refuse}, err
		}),
	}
}

type refusing struct {
	grpc.ClientStream
	refuse func(table string, key []byte) error
}

func (r refusing) SendMsg(msg any) error {
	if m, ok := msg.(*btpb.MutateRowsRequest); ok {
		for _, e := range m.GetEntries() {
			if err := r.refuse(m.GetTableName(), e.GetRowKey()); err != nil {
				return err
			}
		}
	}
	return r.ClientStream.SendMsg(msg)
}
