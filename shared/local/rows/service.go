package rows

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/affinityengine/affinity/shared/local/disk"
)

// service answers the two APIs.
type service struct {
	btpb.UnimplementedBigtableServer
	tables *tables
	locks  *locks
}

// admin is a service too. Both APIs have methods of the same names.
type admin struct {
	btapb.UnimplementedBigtableTableAdminServer
	*tables
}

// Register makes a gRPC server answer from the tables of a folder.
func Register(server grpc.ServiceRegistrar, d *disk.Disk) error {
	opened, err := openTables(d)
	if err != nil {
		return err
	}
	btpb.RegisterBigtableServer(server, &service{tables: opened, locks: &locks{seed: maphash.MakeSeed()}})
	btapb.RegisterBigtableTableAdminServer(server, admin{tables: opened})
	return nil
}

// PingAndWarm does nothing.
func (s *service) PingAndWarm(context.Context, *btpb.PingAndWarmRequest) (*btpb.PingAndWarmResponse, error) {
	return &btpb.PingAndWarmResponse{}, nil
}

// CreateTable makes a table.
func (a admin) CreateTable(_ context.Context, req *btapb.CreateTableRequest) (*btapb.Table, error) {
	if req.GetTable().GetGranularity() == btapb.Table_MICROS {
		return nil, status.Error(codes.Unimplemented, "the local Bigtable keeps times to the millisecond")
	}
	t, err := a.create(req.GetParent()+"/tables/"+req.GetTableId(), req.GetTable().GetColumnFamilies())
	if err != nil {
		return nil, err
	}
	return t.described(), nil
}

func (t *table) described() *btapb.Table {
	families := map[string]*btapb.ColumnFamily{}
	for _, f := range t.Families {
		families[f.Name] = &btapb.ColumnFamily{GcRule: f.rule}
	}
	return &btapb.Table{Name: t.Name, ColumnFamilies: families, Granularity: btapb.Table_MILLIS}
}

// ListTables names the tables of an instance.
func (a admin) ListTables(_ context.Context, req *btapb.ListTablesRequest) (*btapb.ListTablesResponse, error) {
	resp := &btapb.ListTablesResponse{}
	for _, name := range a.named(req.GetParent() + "/tables/") {
		resp.Tables = append(resp.Tables, &btapb.Table{Name: name})
	}
	return resp, nil
}

// GetTable describes a table.
func (a admin) GetTable(_ context.Context, req *btapb.GetTableRequest) (*btapb.Table, error) {
	t, err := a.find(req.GetName())
	if err != nil {
		return nil, err
	}
	t.change.RLock()
	defer t.change.RUnlock()
	return t.described(), nil
}

// DeleteTable deletes a table with its rows.
func (a admin) DeleteTable(_ context.Context, req *btapb.DeleteTableRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, a.drop(req.GetName())
}

// ModifyColumnFamilies adds, changes and drops families: all of a request, or none.
func (a admin) ModifyColumnFamilies(_ context.Context, req *btapb.ModifyColumnFamiliesRequest) (*btapb.Table, error) {
	t, err := a.find(req.GetName())
	if err != nil {
		return nil, err
	}
	t.change.Lock()
	defer t.change.Unlock()
	to := *t
	to.Families = slices.Clone(t.Families)
	var dropped []*family
	for _, m := range req.GetModifications() {
		if err := to.modify(m, &dropped); err != nil {
			return nil, err
		}
	}
	b := a.disk.NewBatch()
	if err := errors.Join(t.deleteFamilies(a.disk, b, dropped), a.store(b, &to)); err != nil {
		return nil, err
	}
	t.Families, t.LastFamily = to.Families, to.LastFamily
	return t.described(), nil
}

func (t *table) modify(m *btapb.ModifyColumnFamiliesRequest_Modification, dropped *[]*family) error {
	if create := m.GetCreate(); create != nil {
		return t.add(m.GetId(), create)
	}
	i := slices.IndexFunc(t.Families, func(f *family) bool { return f.Name == m.GetId() })
	if i < 0 {
		return fmt.Errorf("no such family %q", m.GetId())
	}
	if m.GetDrop() {
		*dropped = append(*dropped, t.Families[i])
		t.Families = slices.Delete(t.Families, i, i+1)
		return nil
	}
	changed := *t.Families[i]
	t.Families[i] = &changed
	return changed.setRule(m.GetUpdate().GetGcRule())
}

// deleteFamilies deletes all cells of families. It reads the keys of the whole table.
func (t *table) deleteFamilies(d *disk.Disk, b disk.Batch, families []*family) error {
	if len(families) == 0 {
		return nil
	}
	only := &table{ID: t.ID, Families: families}
	v := d.View()
	err := only.scan(v, interval{}, func(key []byte, _ []cell) error {
		for _, f := range families {
			b.Delete(f.key(t.row(key)))
		}
		return nil
	})
	return errors.Join(err, fault(v.Close()))
}

// DropRowRange deletes all rows of a table, or those whose keys begin with a prefix.
func (a admin) DropRowRange(_ context.Context, req *btapb.DropRowRangeRequest) (*emptypb.Empty, error) {
	t, err := a.find(req.GetName())
	if err != nil {
		return nil, err
	}
	prefix := t.prefix()
	if !req.GetDeleteAllDataFromTable() {
		if len(req.GetRowKeyPrefix()) == 0 {
			return nil, invalid("missing row key prefix")
		}
		part := disk.AppendPart(nil, req.GetRowKeyPrefix())
		prefix = append(prefix, part[:len(part)-2]...) // without the mark of the end
	}
	t.change.Lock()
	defer t.change.Unlock()
	b := a.disk.NewBatch()
	b.DeleteRange(prefix, disk.After(prefix))
	return &emptypb.Empty{}, fault(a.disk.Commit(b))
}

// GenerateConsistencyToken returns a token: there is one copy of every table.
func (a admin) GenerateConsistencyToken(_ context.Context,
	req *btapb.GenerateConsistencyTokenRequest) (*btapb.GenerateConsistencyTokenResponse, error) {
	_, err := a.find(req.GetName())
	return &btapb.GenerateConsistencyTokenResponse{ConsistencyToken: "TokenFor-" + req.GetName()}, err
}

// CheckConsistency reports that all copies of a table are the same.
func (a admin) CheckConsistency(_ context.Context,
	req *btapb.CheckConsistencyRequest) (*btapb.CheckConsistencyResponse, error) {
	_, err := a.find(req.GetName())
	return &btapb.CheckConsistencyResponse{Consistent: true}, err
}
