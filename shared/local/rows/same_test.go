package rows_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/disk"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/rows"
)

// server is a Bigtable with one table of the families a, b and c.
type server struct {
	data  btpb.BigtableClient
	admin btapb.BigtableTableAdminClient
	table string
}

func connect(t testing.TB, addr string) (btpb.BigtableClient, btapb.BigtableTableAdminClient) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // no error matters at the end
	return btpb.NewBigtableClient(conn), btapb.NewBigtableTableAdminClient(conn)
}

func openDisk(t testing.TB, dir string) *disk.Disk {
	t.Helper()
	d, err := disk.Open(dir, rows.Join, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	return d
}

// stored starts a server on a folder and returns its address, and what stops both.
func stored(t testing.TB, dir string) (string, func()) {
	t.Helper()
	d := openDisk(t, dir)
	s, err := emulator.StartBigtable(d)
	must.Succeed(t, err)
	return s.Addr, func() {
		s.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// made makes the table of a server.
func made(t must.Test, data btpb.BigtableClient, admin btapb.BigtableTableAdminClient, id string) server {
	const parent = "projects/p/instances/i"
	s := server{data, admin, parent + "/tables/" + id}
	if _, err := admin.CreateTable(context.Background(), &btapb.CreateTableRequest{Parent: parent, TableId: id, Table: &btapb.Table{}}); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"a", "b", "c"} { // one by one, so that all servers agree on their order
		_, err := admin.ModifyColumnFamilies(context.Background(), &btapb.ModifyColumnFamiliesRequest{Name: s.table,
			Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{{Id: f, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{}}}}})
		must.Succeed(t, err)
	}
	return s
}

// read returns the cells of a read as text, one a line.
func (s server) read(req *btpb.ReadRowsRequest) string {
	req.TableName = s.table
	stream, err := s.data.ReadRows(context.Background(), req)
	var b strings.Builder
	var row, qualifier []byte
	var family string
	for err == nil {
		var resp *btpb.ReadRowsResponse
		if resp, err = stream.Recv(); err != nil {
			break
		}
		for _, c := range resp.Chunks {
			if len(c.RowKey) > 0 {
				row = c.RowKey
			}
			if c.FamilyName != nil {
				family = c.FamilyName.Value
			}
			if c.Qualifier != nil {
				qualifier = c.Qualifier.Value
			}
			fmt.Fprintf(&b, "%q %s:%q @%d %q %v\n", row, family, qualifier, c.TimestampMicros, c.Value, c.Labels)
		}
	}
	if !errors.Is(err, io.EOF) {
		fmt.Fprintf(&b, "error %v", status.Code(err))
	}
	return b.String()
}

// do makes a request that changes something, and returns the answer as text, without the
// status of an error: versions of the emulator differ there.
func (s server) do(op operation) string {
	ctx := context.Background()
	var answer any
	var err error
	switch op := op.(type) {
	case *btpb.MutateRowRequest:
		op.TableName = s.table
		_, err = s.data.MutateRow(ctx, op)
	case *btpb.CheckAndMutateRowRequest:
		op.TableName = s.table
		var resp *btpb.CheckAndMutateRowResponse
		resp, err = s.data.CheckAndMutateRow(ctx, op)
		answer = resp.GetPredicateMatched()
	case *btpb.ReadModifyWriteRowRequest:
		op.TableName = s.table
		var resp *btpb.ReadModifyWriteRowResponse
		resp, err = s.data.ReadModifyWriteRow(ctx, op)
		answer = cells(resp.GetRow())
	case *btapb.DropRowRangeRequest:
		op.Name = s.table
		_, err = s.admin.DropRowRange(ctx, op)
	}
	return fmt.Sprint(answer, err == nil)
}

// cells returns the cells of a row as text.
func cells(r *btpb.Row) string {
	var b strings.Builder
	for _, f := range r.GetFamilies() {
		for _, c := range f.Columns {
			for _, v := range c.Cells {
				fmt.Fprintf(&b, "%s:%q @%d %q\n", f.Name, c.Qualifier, v.TimestampMicros, v.Value)
			}
		}
	}
	return b.String()
}

type operation any

// Values of which the requests are made: few, so that they meet.
var (
	keys       = []string{"r", "r\x00", "r\x00\x01", "r1", "s", "\xff"}
	families   = []string{"a", "b", "c"}
	qualifiers = []string{"", "n", "q", "q\x00", "\xc3\xa9", "z.z"}
	values     = []string{"", "1", "v", "v\x00", "\xff", "w w"}
	times      = []int64{0, 1000, 2000, 5000, 9_000_000}
	// future is later than any clock, so that a read-modify-write keeps it.
	future int64 = 4_102_444_800_000_000
)

func one[T any](t *rapid.T, name string, from []T) T { return rapid.SampledFrom(from).Draw(t, name) }

func drawMutation(t *rapid.T) *btpb.Mutation {
	family, qualifier := one(t, "family", families), []byte(one(t, "qualifier", qualifiers))
	switch one(t, "mutation", []string{"set", "set", "set", "column", "times", "family", "row"}) {
	case "set":
		return setCell(family, qualifier, one(t, "time", times), one(t, "value", values))
	case "column":
		return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{FamilyName: family, ColumnQualifier: qualifier}}}
	case "times":
		times := rapid.SampledFrom([]*btpb.TimestampRange{{}, {StartTimestampMicros: 2000}, {EndTimestampMicros: 5000}, {StartTimestampMicros: 1000, EndTimestampMicros: 2000}})
		return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromColumn_{DeleteFromColumn: &btpb.Mutation_DeleteFromColumn{FamilyName: family, ColumnQualifier: qualifier,
			TimeRange: times.Draw(t, "times")}}}
	case "family":
		return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromFamily_{DeleteFromFamily: &btpb.Mutation_DeleteFromFamily{FamilyName: family}}}
	}
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}
}

func setCell(family string, qualifier []byte, at int64, value string) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{FamilyName: family, ColumnQualifier: qualifier, TimestampMicros: at, Value: []byte(value)}}}
}

func drawMutations(t *rapid.T) []*btpb.Mutation {
	var all []*btpb.Mutation
	for range rapid.IntRange(1, 4).Draw(t, "mutations") {
		all = append(all, drawMutation(t))
	}
	return all
}

func drawFilter(t *rapid.T, depth int) *btpb.RowFilter {
	kinds := []string{"pass", "block", "family", "qualifier", "columns", "values", "times", "latest", "row", "value"}
	if depth > 0 {
		kinds = append(kinds, "chain", "chain", "interleave", "condition")
	}
	sub := func() *btpb.RowFilter { return drawFilter(t, depth-1) }
	switch one(t, "filter", kinds) {
	case "pass":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
	case "block":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_BlockAllFilter{BlockAllFilter: true}}
	case "family":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_FamilyNameRegexFilter{FamilyNameRegexFilter: one(t, "pattern", []string{"a", "a|b", ".*", "x"})}}
	case "qualifier":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnQualifierRegexFilter{ColumnQualifierRegexFilter: []byte(one(t, "pattern", []string{"q", "q|n", `z\.z`, "z.z", "\xc3\xa9", `\C*`, ".*"}))}}
	case "columns":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: &btpb.ColumnRange{FamilyName: one(t, "family", families),
			StartQualifier: &btpb.ColumnRange_StartQualifierOpen{StartQualifierOpen: []byte(one(t, "from", qualifiers))},
			EndQualifier:   &btpb.ColumnRange_EndQualifierClosed{EndQualifierClosed: []byte(one(t, "to", qualifiers))}}}}
	case "values":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: &btpb.ValueRange{
			StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: []byte(one(t, "from", values))},
			EndValue:   &btpb.ValueRange_EndValueOpen{EndValueOpen: []byte(one(t, "to", values))}}}}
	case "times":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: &btpb.TimestampRange{StartTimestampMicros: one(t, "from", times), EndTimestampMicros: one(t, "to", times)}}}
	case "latest":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: int32(rapid.IntRange(1, 2).Draw(t, "versions"))}}
	case "row":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_RowKeyRegexFilter{RowKeyRegexFilter: []byte(one(t, "pattern", []string{"r.*", "s", `r\C*`}))}}
	case "value":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(one(t, "pattern", []string{"v", "v.*", "1|w w", "\xff"}))}}
	case "chain":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: []*btpb.RowFilter{sub(), sub()}}}}
	case "interleave":
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: []*btpb.RowFilter{sub(), sub()}}}}
	}
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Condition_{Condition: &btpb.RowFilter_Condition{PredicateFilter: sub(), TrueFilter: sub(), FalseFilter: sub()}}}
}

func drawRows(t *rapid.T) *btpb.RowSet {
	set := &btpb.RowSet{}
	for range rapid.IntRange(0, 3).Draw(t, "keys") {
		set.RowKeys = append(set.RowKeys, []byte(one(t, "key", keys)))
	}
	for range rapid.IntRange(0, 2).Draw(t, "ranges") {
		from, to := one(t, "from", keys), one(t, "to", keys)
		r := &btpb.RowRange{StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(from)}}
		if rapid.Bool().Draw(t, "open") {
			r.StartKey = &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte(from)}
		}
		switch one(t, "end", []string{"none", "open", "closed"}) {
		case "open":
			r.EndKey = &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(to)}
		case "closed":
			r.EndKey = &btpb.RowRange_EndKeyClosed{EndKeyClosed: []byte(to)}
		}
		set.RowRanges = append(set.RowRanges, r)
	}
	return set
}

func drawOperations(t *rapid.T) []operation {
	key := []byte(one(t, "key", keys))
	switch one(t, "operation", []string{"mutate", "mutate", "mutate", "check", "modify", "drop"}) {
	case "mutate":
		return []operation{&btpb.MutateRowRequest{RowKey: key, Mutations: drawMutations(t)}}
	case "check":
		return []operation{&btpb.CheckAndMutateRowRequest{RowKey: key, PredicateFilter: drawFilter(t, 1), TrueMutations: drawMutations(t), FalseMutations: drawMutations(t)}}
	case "drop":
		return []operation{&btapb.DropRowRangeRequest{Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte(one(t, "prefix", []string{"r", "r\x00", "s"}))}}}
	}
	// A column that holds a cell of the future: the time of a new one would differ.
	family, qualifier := one(t, "family", families), []byte("n")
	rule := &btpb.ReadModifyWriteRule{FamilyName: family, ColumnQualifier: qualifier, Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte("x")}}
	value := one(t, "value", values)
	if rapid.Bool().Draw(t, "increment") {
		rule.Rule, value = &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: -3}, one(t, "number", []string{"\x00\x00\x00\x00\x00\x00\x00\x01", "short"})
	}
	return []operation{
		&btpb.MutateRowRequest{RowKey: key, Mutations: []*btpb.Mutation{setCell(family, qualifier, future, value)}},
		&btpb.ReadModifyWriteRowRequest{RowKey: key, Rules: []*btpb.ReadModifyWriteRule{rule}},
	}
}

// same checks that a server answers as the one at addr does.
func same(t *testing.T, addr string) {
	ours, stop := stored(t, t.TempDir())
	t.Cleanup(stop)
	data, admin := connect(t, ours)
	otherData, otherAdmin := connect(t, addr)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		id := fmt.Sprint("t", n)
		have, want := made(t, data, admin, id), made(t, otherData, otherAdmin, id)
		for range rapid.IntRange(1, 12).Draw(t, "operations") {
			for _, op := range drawOperations(t) {
				if diff := cmp.Diff(want.do(op), have.do(op)); diff != "" {
					t.Fatalf("%v (-want +got):\n%s", op, diff)
				}
			}
		}
		for range 4 {
			rows, filter := drawRows(t), drawFilter(t, 2)
			read := func() *btpb.ReadRowsRequest { return &btpb.ReadRowsRequest{Rows: rows, Filter: filter} }
			if diff := cmp.Diff(want.read(read()), have.read(read())); diff != "" {
				t.Fatalf("%v (-want +got):\n%s", read(), diff)
			}
		}
		if diff := cmp.Diff(want.read(&btpb.ReadRowsRequest{RowsLimit: 2}), have.read(&btpb.ReadRowsRequest{RowsLimit: 2})); diff != "" {
			t.Fatalf("two rows (-want +got):\n%s", diff)
		}
	})
}

func TestAnswersAsTheServerInMemory(t *testing.T) {
	s, err := emulator.StartBttest()
	must.Succeed(t, err)
	t.Cleanup(s.Close)
	same(t, s.Addr)
}

func TestAnswersAsTheOfficialEmulator(t *testing.T) {
	same(t, gcloudtest.Bigtable(t))
}
