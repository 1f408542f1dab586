package measure

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/emulator"
)

// limited is a Bigtable that stops reading at a request's limit. The in-process
// one collects and sorts all rows of a range before it sends the first. A scan of
// a million users in steps of some hundred would read all later rows at each step.
// So limited ends the range where the limit is reached. It knows rows that began
// with a row transaction, as user rows do.
type limited struct {
	counter
	mu     sync.Mutex
	keys   map[string][]string // by table
	sorted map[string]bool
}

func startLimited() (*bttest.Server, *counter, error) {
	l := &limited{keys: map[string][]string{}, sorted: map[string]bool{}}
	s, err := bttest.NewServer("127.0.0.1:0", grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.UnaryInterceptor(l.unary), grpc.StreamInterceptor(l.stream))
	if err != nil {
		return nil, nil, fmt.Errorf("start the Bigtable stand-in: %w", err)
	}
	return s, &l.counter, nil
}

// unary counts the request and records the keys of new rows.
func (l *limited) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	l.request(req)
	if r, ok := req.(*bigtablepb.ReadModifyWriteRowRequest); ok {
		l.mu.Lock()
		keys := l.keys[r.TableName]
		n := len(keys)
		l.keys[r.TableName] = append(keys, string(r.RowKey))
		l.sorted[r.TableName] = n == 0 || l.sorted[r.TableName] && keys[n-1] < string(r.RowKey)
		l.mu.Unlock()
	}
	return handle(ctx, req)
}

func (l *limited) stream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	joined := emulator.JoinRows(s, func(r *bigtablepb.ReadRowsResponse) { l.answer(r) })
	if err := handle(srv, &limitedStream{joined, l}); err != nil {
		return err
	}
	return joined.Flush()
}

type limitedStream struct {
	*emulator.JoinedRows
	l *limited
}

// RecvMsg counts the request, and shortens the range of one with a limit.
func (s *limitedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	s.l.request(m)
	r, ok := m.(*bigtablepb.ReadRowsRequest)
	if !ok || r.RowsLimit == 0 || len(r.GetRows().GetRowRanges()) != 1 || len(r.Rows.RowKeys) > 0 {
		return nil
	}
	s.l.shorten(r.TableName, r.Rows.RowRanges[0], int(r.RowsLimit))
	return nil
}

func (l *limited) shorten(table string, r *bigtablepb.RowRange, limit int) {
	start, ok := r.StartKey.(*bigtablepb.RowRange_StartKeyClosed)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.sorted[table] {
		slices.Sort(l.keys[table])
		l.keys[table] = slices.Compact(l.keys[table])
		l.sorted[table] = true
	}
	keys := l.keys[table]
	from, _ := slices.BinarySearch(keys, string(start.StartKeyClosed))
	if from+limit >= len(keys) {
		return
	}
	end := keys[from+limit]
	if was, ok := r.EndKey.(*bigtablepb.RowRange_EndKeyOpen); ok && string(was.EndKeyOpen) > end {
		was.EndKeyOpen = []byte(end)
	}
}
