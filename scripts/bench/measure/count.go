package measure

import (
	"context"
	"sync/atomic"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// Counts are what a server has answered so far.
type Counts struct {
	Requests    int64 `json:"requests"`
	RowsRead    int64 `json:"rowsRead"`    // rows sent to clients
	RowsWritten int64 `json:"rowsWritten"` // rows that clients sent mutations of, applied or not
	// CPUSeconds is the processor time of the server's process.
	CPUSeconds float64 `json:"cpuSeconds"`
	// PeakBytes is the most memory that the server's process has had.
	PeakBytes int64 `json:"peakBytes"`
}

func (c Counts) minus(d Counts) Counts {
	return Counts{c.Requests - d.Requests, c.RowsRead - d.RowsRead, c.RowsWritten - d.RowsWritten,
		c.CPUSeconds - d.CPUSeconds, c.PeakBytes}
}

// counter counts requests and rows where the server receives and sends them, so that
// a client that reads or retries in another way is counted alike.
type counter struct{ requests, read, written atomic.Int64 }

func (c *counter) counts() (Counts, error) {
	cpu, err := cpuTime()
	return Counts{Requests: c.requests.Load(), RowsRead: c.read.Load(), RowsWritten: c.written.Load(),
		CPUSeconds: cpu.Seconds(), PeakBytes: peakMemory()}, err
}

func (c *counter) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	c.request(req)
	return handle(ctx, req)
}

func (c *counter) stream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(srv, countedStream{s, c})
}

type countedStream struct {
	grpc.ServerStream
	c *counter
}

func (s countedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.c.request(m)
	}
	return err
}

func (s countedStream) SendMsg(m any) error {
	s.c.answer(m)
	return s.ServerStream.SendMsg(m)
}

// request counts a request and the rows that it writes.
func (c *counter) request(message any) {
	switch r := message.(type) {
	case *bigtablepb.ReadRowsRequest:
	case *bigtablepb.MutateRowRequest, *bigtablepb.CheckAndMutateRowRequest, *bigtablepb.ReadModifyWriteRowRequest:
		c.written.Add(1)
	case *bigtablepb.MutateRowsRequest:
		c.written.Add(int64(len(r.Entries)))
	default: // administration
		return
	}
	c.requests.Add(1)
}

// answer counts the rows that end in a part of an answer.
func (c *counter) answer(message any) {
	r, ok := message.(*bigtablepb.ReadRowsResponse)
	if !ok {
		return
	}
	n := int64(0)
	for _, chunk := range r.Chunks {
		if chunk.GetCommitRow() {
			n++
		}
	}
	c.read.Add(n)
}
