package rows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/affinityengine/affinity/shared/local/must"
)

// start starts a server with a table.
func start(t *testing.T) server {
	t.Helper()
	addr, stop := stored(t, t.TempDir())
	t.Cleanup(stop)
	data, admin := connect(t, addr)
	return made(t, data, admin, "t")
}

func (s server) set(t *testing.T, row, family, qualifier string, at int64, value string) {
	t.Helper()
	_, err := s.data.MutateRow(context.Background(), &btpb.MutateRowRequest{TableName: s.table, RowKey: []byte(row),
		Mutations: []*btpb.Mutation{setCell(family, []byte(qualifier), at, value)}})
	must.Succeed(t, err)
}

func (s server) modify(t *testing.T, mods ...*btapb.ModifyColumnFamiliesRequest_Modification) {
	t.Helper()
	if _, err := s.admin.ModifyColumnFamilies(context.Background(), &btapb.ModifyColumnFamiliesRequest{Name: s.table, Modifications: mods}); err != nil {
		t.Fatal(err)
	}
}

func (s server) wants(t *testing.T, when, want string) {
	t.Helper()
	if got := s.read(&btpb.ReadRowsRequest{}); got != want {
		t.Errorf("%s the table holds\n%s, want\n%s", when, got, want)
	}
}

func TestRestartKeepsTablesAndRows(t *testing.T) {
	dir := t.TempDir()
	addr, stop := stored(t, dir)
	data, admin := connect(t, addr)
	s := made(t, data, admin, "t")
	s.set(t, "r\x00", "b", "q", 2000, "v")
	s.modify(t, updated("b", versions(7)))
	stop()

	addr, stop = stored(t, dir)
	t.Cleanup(stop)
	data, admin = connect(t, addr)
	s = server{data, admin, s.table}
	s.wants(t, "after a restart", `"r\x00" b:"q" @2000 "v" []`+"\n")
	table, err := admin.GetTable(t.Context(), &btapb.GetTableRequest{Name: s.table})
	if err != nil || len(table.GetColumnFamilies()) != 3 || table.GetColumnFamilies()["b"].GetGcRule().GetMaxNumVersions() != 7 {
		t.Errorf("after a restart the table is %v, %v", table, err)
	}
	// A new table must not take the rows of an old one.
	other := made(t, data, admin, "other")
	other.wants(t, "a new table after a restart:", "")
}

func updated(family string, rule *btapb.GcRule) *btapb.ModifyColumnFamiliesRequest_Modification {
	return &btapb.ModifyColumnFamiliesRequest_Modification{Id: family, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Update{Update: &btapb.ColumnFamily{GcRule: rule}}}
}

func versions(n int32) *btapb.GcRule {
	return &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: n}}
}

func age(d time.Duration) *btapb.GcRule {
	return &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(d)}}
}

func TestWritesCollectSupersededCells(t *testing.T) {
	hour := time.Now().Add(-time.Hour).UnixMilli() * 1000
	both := []*btapb.GcRule{versions(1), age(2 * time.Hour)}
	for name, test := range map[string]struct {
		rule *btapb.GcRule
		kept []int64 // of the cells of now, an hour ago and 1970
	}{
		"no rule":      {nil, []int64{hour + 1000, hour, 1000}},
		"versions":     {versions(2), []int64{hour + 1000, hour}},
		"age":          {age(2 * time.Hour), []int64{hour + 1000, hour}},
		"union":        {&btapb.GcRule{Rule: &btapb.GcRule_Union_{Union: &btapb.GcRule_Union{Rules: both}}}, []int64{hour + 1000}},
		"intersection": {&btapb.GcRule{Rule: &btapb.GcRule_Intersection_{Intersection: &btapb.GcRule_Intersection{Rules: both}}}, []int64{hour + 1000, hour}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.modify(t, updated("a", test.rule))
			for _, at := range []int64{1000, hour, hour + 1000} {
				s.set(t, "r", "a", "q", at, "v")
			}
			var want strings.Builder
			for _, at := range test.kept {
				fmt.Fprintf(&want, "\"r\" a:\"q\" @%d \"v\" []\n", at)
			}
			s.wants(t, "after three writes", want.String())
		})
	}
}

func TestDroppedFamilyLosesItsCells(t *testing.T) {
	s := start(t)
	s.set(t, "r", "a", "q", 1000, "stays")
	s.set(t, "r", "b", "q", 1000, "goes")
	s.modify(t, &btapb.ModifyColumnFamiliesRequest_Modification{Id: "b", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}},
		&btapb.ModifyColumnFamiliesRequest_Modification{Id: "b", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{}}})
	s.wants(t, "with a new family of the name", `"r" a:"q" @1000 "stays" []`+"\n")
}

// A family that a later filter of a chain leaves out counts for the ones before it.
func TestFiltersSeeWhatTheFirstOnePasses(t *testing.T) {
	s := start(t)
	s.set(t, "r", "a", "q", 1000, "first")
	s.set(t, "r", "b", "q", 1000, "second")
	first := &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerRowLimitFilter{CellsPerRowLimitFilter: 1}}
	of := func(family string) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: &btpb.ColumnRange{FamilyName: family}}}
	}
	chain := func(f ...*btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: f}}}
	}
	either := func(f ...*btpb.RowFilter) *btpb.RowFilter {
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: f}}}
	}
	const a, b = `"r" a:"q" @1000 "first" []` + "\n", `"r" b:"q" @1000 "second" []` + "\n"
	for _, c := range []struct {
		name   string
		filter *btpb.RowFilter
		want   string
	}{
		{"a family", of("b"), b}, {"the first cell, of a family", chain(first, of("b")), ""}, {"the first cell of a family", chain(of("b"), first), b},
		{"two families", either(of("b"), of("a")), a + b}, {"the first cell, or a family", either(of("b"), first), a + b}, {"no family", of("x"), ""},
	} {
		for _, rows := range []*btpb.RowSet{nil, {RowKeys: [][]byte{[]byte("r")}}} {
			if got := s.read(&btpb.ReadRowsRequest{Rows: rows, Filter: c.filter}); got != c.want {
				t.Errorf("%s of %v: %q, want %q", c.name, rows, got, c.want)
			}
		}
	}
}

func TestDeletedTableLosesItsRows(t *testing.T) {
	s := start(t)
	s.set(t, "r", "a", "q", 1000, "v")
	if _, err := s.admin.DeleteTable(t.Context(), &btapb.DeleteTableRequest{Name: s.table}); err != nil {
		t.Fatal(err)
	}
	if got := s.read(&btpb.ReadRowsRequest{}); got != "error NotFound" {
		t.Errorf("a read of a deleted table: %q", got)
	}
	made(t, s.data, s.admin, "t").wants(t, "a new table of the name:", "")
}

// Each row of a request of several stands for itself, with all of its mutations or none.
func TestRowsOfARequestFailAlone(t *testing.T) {
	s := start(t)
	stream, err := s.data.MutateRows(t.Context(), &btpb.MutateRowsRequest{TableName: s.table, Entries: []*btpb.MutateRowsRequest_Entry{
		{RowKey: []byte("bad"), Mutations: []*btpb.Mutation{setCell("a", nil, 1000, "v"), setCell("x", nil, 1000, "v")}},
		{RowKey: []byte("good"), Mutations: []*btpb.Mutation{setCell("a", nil, 1000, "1")}},
		{RowKey: []byte("good"), Mutations: []*btpb.Mutation{setCell("a", nil, 2000, "2")}},
	}})
	must.Succeed(t, err)
	resp, err := stream.Recv()
	must.Succeed(t, err)
	for i, want := range []codes.Code{codes.Internal, codes.OK, codes.OK} {
		if got := codes.Code(resp.GetEntries()[i].GetStatus().GetCode()); got != want {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
	s.wants(t, "then", `"good" a:"" @2000 "2" []`+"\n"+`"good" a:"" @1000 "1" []`+"\n")
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	s := start(t)
	for name, f := range map[string]*btpb.RowFilter{
		"pattern":  {Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: []byte("(")}},
		"versions": {Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{}},
		"chain":    {Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{}}},
		"label":    {Filter: &btpb.RowFilter_ApplyLabelTransformer{ApplyLabelTransformer: "A"}},
	} {
		if got := s.read(&btpb.ReadRowsRequest{Filter: f}); got != "error InvalidArgument" {
			t.Errorf("filter %s: %q", name, got)
		}
	}
	inverted := &btpb.RowSet{RowRanges: []*btpb.RowRange{{StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte("b")}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte("a")}}}}
	if got := s.read(&btpb.ReadRowsRequest{Rows: inverted}); got != "error InvalidArgument" {
		t.Errorf("inverted range: %q", got)
	}
	if got := s.read(&btpb.ReadRowsRequest{Reversed: true}); got != "error Unimplemented" {
		t.Errorf("reverse order: %q", got)
	}
	_, err := s.data.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: s.table, RowKey: []byte("r"), Mutations: []*btpb.Mutation{setCell("a", nil, 1, "v")}})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a time between milliseconds: %v", err)
	}
}

func TestSamplesEndWithTheLastRowAndTheEnd(t *testing.T) {
	s := start(t)
	for i := range 300 {
		s.set(t, fmt.Sprintf("r%03d", i), "a", "q", 1000, "1234")
	}
	stream, err := s.data.SampleRowKeys(t.Context(), &btpb.SampleRowKeysRequest{TableName: s.table})
	var samples []string
	for err == nil {
		var resp *btpb.SampleRowKeysResponse
		if resp, err = stream.Recv(); err == nil {
			samples = append(samples, fmt.Sprint(string(resp.GetRowKey()), " ", resp.GetOffsetBytes()))
		}
	}
	if n := len(samples); n < 2 || samples[n-2] != "r299 1196" || samples[n-1] != " 1200" {
		t.Errorf("samples %v, want r299 behind 1196 bytes and the end behind 1200", samples)
	}
}
