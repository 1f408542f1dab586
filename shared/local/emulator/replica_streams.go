package emulator

import (
	"context"
	"errors"
	"io"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// received is a stream whose only request was received before.
type received struct {
	grpc.ServerStream
	req proto.Message // nil: the handler has it
}

func (s *received) RecvMsg(msg any) error {
	if s.req == nil {
		return io.EOF
	}
	proto.Merge(msg.(proto.Message), s.req)
	s.req = nil
	return nil
}

// relay sends the answer of one server as that of another.
func relay(from btpb.Bigtable_ReadRowsClient, to grpc.ServerStream) error {
	for {
		switch answer, err := from.Recv(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		default:
			if err := to.SendMsg(answer); err != nil {
				return err
			}
		}
	}
}

// copiedRow receives the cells of a row of bttest, and adds them to a change of that row.
// bttest sends each cell in one chunk, with its family and its column.
type copiedRow struct {
	grpc.ServerStream // nil: a read of one row only sends
	ctx               context.Context
	change            *btpb.MutateRowRequest
}

func (c *copiedRow) Context() context.Context { return c.ctx }

func (c *copiedRow) Send(answer *btpb.ReadRowsResponse) error {
	for _, chunk := range answer.Chunks {
		c.change.Mutations = append(c.change.Mutations,
			&btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
				FamilyName: chunk.FamilyName.GetValue(), ColumnQualifier: chunk.Qualifier.GetValue(),
				TimestampMicros: chunk.TimestampMicros, Value: chunk.Value}}})
	}
	return nil
}
