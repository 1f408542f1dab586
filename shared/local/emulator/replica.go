package emulator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Replicated is a Bigtable of two clusters: the primary, which is written, and a replica
// that lags behind it for as long as a test wants. Reads of rows through the serving app
// profile go to the replica, and all other requests to the primary.
//
// Each write of a row leaves a change: the cells that the row has after it. The changes
// of a row reach the replica in their order, those of different rows in any order. So
// the replica has a row as the primary had it at some time. Requests of administrators,
// as one that drops rows, first make all changes reach the replica, and then change both
// clusters.
type Replicated struct {
	*Bigtable
	serving string
	replica *Bigtable
	conn    *grpc.ClientConn // to the replica
	data    btpb.BigtableClient

	mu      sync.Mutex // held from a write on until its changes are known
	changes map[Row][]*btpb.MutateRowRequest
	waiting []Row // by their oldest change
}

// Row names a row of a table, whose name is complete:
// projects/P/instances/I/tables/T.
type Row struct{ Table, Key string }

// StartReplicated starts both clusters. serving is the name of the serving app profile.
// opts may hold interceptors, which see the requests that the primary answers.
func StartReplicated(serving string, opts ...grpc.ServerOption) (*Replicated, error) {
	replica, err := StartBttest()
	if err != nil {
		return nil, err
	}
	r := &Replicated{serving: serving, replica: replica, changes: map[Row][]*btpb.MutateRowRequest{}}
	if r.conn, err = replica.Conn(InProcess()...); err != nil {
		replica.Close()
		return nil, err
	}
	r.data = btpb.NewBigtableClient(r.conn)
	r.Bigtable, err = StartBttest(slices.Concat([]grpc.ServerOption{Around(r.unary, r.stream)}, opts)...)
	if err != nil {
		return nil, errors.Join(err, r.closeReplica())
	}
	return r, nil
}

// Close stops both clusters.
func (r *Replicated) Close() {
	r.Bigtable.Close()
	_ = r.closeReplica()
}

func (r *Replicated) closeReplica() error {
	defer r.replica.Close()
	return r.conn.Close()
}

// Waiting returns the rows whose changes have not all reached the replica: the row whose
// change has waited longest is first.
func (r *Replicated) Waiting() []Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.waiting)
}

// Replicate makes the oldest change of a row that waits reach the replica. It does
// nothing for a row without such a change.
func (r *Replicated) Replicate(ctx context.Context, row Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replicate(ctx, row)
}

// CatchUp makes all changes reach the replica.
func (r *Replicated) CatchUp(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.catchUp(ctx)
}

func (r *Replicated) catchUp(ctx context.Context) error {
	for len(r.waiting) > 0 {
		if err := r.replicate(ctx, r.waiting[0]); err != nil {
			return err
		}
	}
	return nil
}

func (r *Replicated) replicate(ctx context.Context, row Row) error {
	changes := r.changes[row]
	if len(changes) == 0 {
		return nil
	}
	if _, err := r.data.MutateRow(ctx, changes[0]); err != nil {
		return fmt.Errorf("replicate row %q of %s: %w", row.Key, row.Table, err)
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(w Row) bool { return w == row })
	if changes = changes[1:]; len(changes) == 0 {
		delete(r.changes, row)
		return nil
	}
	r.changes[row] = changes
	r.waiting = append(r.waiting, row)
	return nil
}

func (r *Replicated) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (any, error) {
	var row Row
	switch m := req.(type) {
	case *btpb.MutateRowRequest:
		row = Row{m.TableName, string(m.RowKey)}
	case *btpb.CheckAndMutateRowRequest:
		row = Row{m.TableName, string(m.RowKey)}
	case *btpb.ReadModifyWriteRowRequest:
		row = Row{m.TableName, string(m.RowKey)}
	case *btapb.CreateTableRequest, *btapb.DeleteTableRequest, *btapb.ModifyColumnFamiliesRequest,
		*btapb.DropRowRangeRequest:
		return r.administer(ctx, req.(proto.Message), info.FullMethod, handle)
	default:
		return handle(ctx, req)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	answer, err := handle(ctx, req)
	return answer, errors.Join(err, r.changed(ctx, info.Server, row))
}

// administer makes a request of an administrator in both clusters.
func (r *Replicated) administer(ctx context.Context, req proto.Message, method string,
	handle grpc.UnaryHandler) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.catchUp(ctx); err != nil {
		return nil, err
	}
	same := proto.Clone(req) // the primary may change its own
	answer, err := handle(ctx, req)
	if err != nil {
		return nil, err
	}
	copied := answer.(proto.Message).ProtoReflect().New().Interface()
	if err := r.conn.Invoke(ctx, method, same, copied); err != nil {
		return nil, fmt.Errorf("%s in the replica: %w", method[strings.LastIndexByte(method, '/')+1:], err)
	}
	return answer, nil
}

func (r *Replicated) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handle grpc.StreamHandler) error {
	switch info.FullMethod {
	case btpb.Bigtable_ReadRows_FullMethodName:
		req := &btpb.ReadRowsRequest{}
		if err := stream.RecvMsg(req); err != nil {
			return err
		}
		if req.AppProfileId == r.serving {
			return r.readReplica(stream, req)
		}
		return handle(srv, &received{stream, req})
	case btpb.Bigtable_MutateRows_FullMethodName:
		req := &btpb.MutateRowsRequest{}
		if err := stream.RecvMsg(req); err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		var rows []Row // the server may change the request
		for _, e := range req.Entries {
			rows = append(rows, Row{req.TableName, string(e.RowKey)})
		}
		err := handle(srv, &received{stream, req})
		return errors.Join(err, r.changed(stream.Context(), srv, rows...))
	}
	return handle(srv, stream)
}

// readReplica answers a read from the replica.
func (r *Replicated) readReplica(to grpc.ServerStream, req *btpb.ReadRowsRequest) error {
	from, err := r.data.ReadRows(to.Context(), req)
	if err != nil {
		return err
	}
	return relay(from, to)
}

// changed adds the changes that rows have had in the primary. Its caller holds the lock.
func (r *Replicated) changed(ctx context.Context, primary any, rows ...Row) error {
	for _, row := range rows {
		copied := &copiedRow{ctx: ctx, change: &btpb.MutateRowRequest{TableName: row.Table, RowKey: []byte(row.Key),
			Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}}}}
		only := &btpb.RowSet{RowKeys: [][]byte{[]byte(row.Key)}}
		if err := primary.(btpb.BigtableServer).ReadRows(&btpb.ReadRowsRequest{TableName: row.Table, Rows: only},
			copied); err != nil {
			return fmt.Errorf("copy row %q of %s: %w", row.Key, row.Table, err)
		}
		if r.changes[row] = append(r.changes[row], copied.change); len(r.changes[row]) == 1 {
			r.waiting = append(r.waiting, row)
		}
	}
	return nil
}
