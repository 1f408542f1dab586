package emulator

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// joinBytes is how many bytes of rows a message has at least, unless the answer ends.
// Bigtable sends chunks of many rows in a message; the in-process server sends each row in
// its own, and a client then mostly measures gRPC.
const joinBytes = 32 << 10

// JoinedRows is the stream of an answer that sends rows together with others, and all
// other messages as they are. A benchmark puts it around the streams of a server.
type JoinedRows struct {
	grpc.ServerStream
	sent    func(*btpb.ReadRowsResponse)
	waiting btpb.ReadRowsResponse // the rows that are not sent yet
	bytes   int                   // of waiting
}

// JoinRows returns a stream that sends to s. It calls sent with each message of rows
// before it sends it. The caller must call Flush at the end of the answer.
func JoinRows(s grpc.ServerStream, sent func(*btpb.ReadRowsResponse)) *JoinedRows {
	return &JoinedRows{ServerStream: s, sent: sent}
}

// SendMsg sends a message, or keeps its rows until there are more.
func (s *JoinedRows) SendMsg(m any) error {
	r, ok := m.(*btpb.ReadRowsResponse)
	if !ok || len(r.Chunks) == 0 {
		if err := s.Flush(); err != nil {
			return err
		}
		return s.ServerStream.SendMsg(m)
	}
	s.waiting.Chunks = append(s.waiting.Chunks, r.Chunks...)
	for _, c := range r.Chunks {
		s.bytes += len(c.RowKey) + len(c.Value)
	}
	if s.bytes < joinBytes {
		return nil
	}
	return s.Flush()
}

// Flush sends the rows that wait.
func (s *JoinedRows) Flush() error {
	if len(s.waiting.Chunks) == 0 {
		return nil
	}
	s.sent(&s.waiting)
	err := s.ServerStream.SendMsg(&s.waiting)
	s.waiting.Reset()
	s.bytes = 0
	return err
}
