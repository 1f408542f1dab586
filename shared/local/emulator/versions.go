package emulator

import (
	"context"
	"sync"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// versions drops superseded cells when a newer cell is written. It replaces the
// garbage collection of bttest, which walks every row once a second under a lock
// that every read waits for.
//
// It applies to families whose policy keeps one version. bttest never sees that
// policy. A write with its own time drops the older cells of its column in the same
// mutation. A write with the server's time leaves the older cells to the next
// read-modify-write of the column, which drops every cell older than its own. So a
// column never loses its newest cell.
type versions struct {
	mu     sync.RWMutex
	single map[familyName]bool
}

type familyName struct{ table, family string }

func (v *versions) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(v.unary), grpc.ChainStreamInterceptor(v.stream)}
}

func (v *versions) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (any, error) {
	switch r := req.(type) {
	case *btapb.ModifyColumnFamiliesRequest:
		v.adopt(r)
	case *btpb.MutateRowRequest:
		r.Mutations = v.rewrite(r.TableName, r.Mutations)
	case *btpb.CheckAndMutateRowRequest:
		r.TrueMutations = v.rewrite(r.TableName, r.TrueMutations)
		r.FalseMutations = v.rewrite(r.TableName, r.FalseMutations)
	}
	resp, err := handle(ctx, req)
	if r, ok := req.(*btpb.ReadModifyWriteRowRequest); ok && err == nil {
		err = v.collect(ctx, info.Server.(btpb.BigtableServer), r, resp.(*btpb.ReadModifyWriteRowResponse))
	}
	return resp, err
}

func (v *versions) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
	handle grpc.StreamHandler) error {
	return handle(srv, rewriteStream{stream, v})
}

// rewriteStream rewrites the requests that the server receives.
type rewriteStream struct {
	grpc.ServerStream
	v *versions
}

func (s rewriteStream) RecvMsg(msg any) error {
	err := s.ServerStream.RecvMsg(msg)
	if r, ok := msg.(*btpb.MutateRowsRequest); ok && err == nil {
		for _, e := range r.Entries {
			e.Mutations = s.v.rewrite(r.TableName, e.Mutations)
		}
	}
	return err
}

// adopt records the families that keep one version of a cell, and removes that
// policy from the request.
func (v *versions) adopt(r *btapb.ModifyColumnFamiliesRequest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, mod := range r.Modifications {
		family := mod.GetCreate()
		if family == nil {
			family = mod.GetUpdate()
		}
		name := familyName{r.Name, mod.Id}
		delete(v.single, name)
		if family.GetGcRule().GetMaxNumVersions() == 1 {
			v.single[name], family.GcRule = true, nil
		}
	}
}

func (v *versions) keepsOne(table, family string) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.single[familyName{table, family}]
}

// rewrite returns mutations that also drop what they supersede.
func (v *versions) rewrite(table string, muts []*btpb.Mutation) []*btpb.Mutation {
	rewritten := append(make([]*btpb.Mutation, 0, 2*len(muts)), muts...)
	for _, m := range muts {
		set := m.GetSetCell()
		if set == nil || !v.keepsOne(table, set.FamilyName) {
			continue
		}
		// bttest cuts times to the millisecond; a range that ends at 0 has no end.
		if end := set.TimestampMicros - set.TimestampMicros%1000; end > 0 {
			rewritten = append(rewritten, deleteOlder(set.FamilyName, set.ColumnQualifier, end))
		}
	}
	return rewritten
}

// olderCells is a mutation with its parts. Almost every write has some, so they are
// allocated at once.
type olderCells struct {
	mutation btpb.Mutation
	of       btpb.Mutation_DeleteFromColumn_
	column   btpb.Mutation_DeleteFromColumn
	times    btpb.TimestampRange
}

func deleteOlder(family string, qualifier []byte, end int64) *btpb.Mutation {
	var d olderCells
	d.times.EndTimestampMicros = end
	d.column.FamilyName, d.column.ColumnQualifier, d.column.TimeRange = family, qualifier, &d.times
	d.of.DeleteFromColumn = &d.column
	d.mutation.Mutation = &d.of
	return &d.mutation
}

// collect drops the cells that a read-modify-write has superseded.
func (v *versions) collect(ctx context.Context, server btpb.BigtableServer, req *btpb.ReadModifyWriteRowRequest,
	resp *btpb.ReadModifyWriteRowResponse) error {
	m := &btpb.MutateRowRequest{TableName: req.TableName, RowKey: req.RowKey}
	for _, f := range resp.Row.GetFamilies() {
		if !v.keepsOne(req.TableName, f.Name) {
			continue
		}
		for _, c := range f.Columns {
			if end := c.Cells[0].TimestampMicros; end > 0 {
				m.Mutations = append(m.Mutations, deleteOlder(f.Name, c.Qualifier, end))
			}
		}
	}
	if len(m.Mutations) == 0 {
		return nil
	}
	_, err := server.MutateRow(ctx, m)
	return err
}
