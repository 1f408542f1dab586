package rowstream

import (
	"math/rand/v2"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/affinityengine/affinity/shared/local/must"
)

func set(family, column string, at int64, value []byte) *bigtablepb.Mutation {
	return &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_SetCell_{SetCell: &bigtablepb.Mutation_SetCell{
		FamilyName: family, ColumnQualifier: []byte(column), TimestampMicros: at, Value: value,
	}}}
}

// A request reads as it was, and only rows of set cells are encoded here.
func TestEncodeRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		req := &bigtablepb.MutateRowsRequest{TableName: "t", AppProfileId: strings.Repeat("p", n%3)}
		own := true
		for range rnd.IntN(6) {
			e := &bigtablepb.MutateRowsRequest_Entry{RowKey: make([]byte, rnd.IntN(300))}
			for range rnd.IntN(5) {
				e.Mutations = append(e.Mutations, set(strings.Repeat("f", rnd.IntN(2)), strings.Repeat("c", rnd.IntN(3)),
					[]int64{-1, 0, 1, 1 << 50}[rnd.IntN(4)], make([]byte, []int{0, 1, 127, 128, 20_000}[rnd.IntN(5)])))
			}
			switch rnd.IntN(20) {
			case 0:
				e.Idempotency, own = &bigtablepb.Idempotency{Token: []byte("i")}, false
			case 1:
				e.Mutations, own = append(e.Mutations, &bigtablepb.Mutation{Mutation: &bigtablepb.Mutation_DeleteFromRow_{}}), false
			case 2:
				e.Mutations, own = append(e.Mutations, &bigtablepb.Mutation{}), false
			}
			req.Entries = append(req.Entries, e)
		}
		if _, ok := encodeRows(req); ok != own {
			t.Errorf("request %d is encoded here: %v, want %v", n, ok, own)
		}
		data, err := writeCodec{}.Marshal(req)
		must.Succeed(t, err)
		var got bigtablepb.MutateRowsRequest
		must.Succeed(t, proto.Unmarshal(data.Materialize(), &got))
		data.Free()
		if !proto.Equal(req, &got) {
			t.Fatalf("request %d reads as %v, want %v", n, &got, req)
		}
	}
}

func BenchmarkEncodeRows(b *testing.B) {
	req := &bigtablepb.MutateRowsRequest{TableName: "projects/p/instances/i/tables/users"}
	for range 256 {
		req.Entries = append(req.Entries, &bigtablepb.MutateRowsRequest_Entry{RowKey: make([]byte, 20), Mutations: []*bigtablepb.Mutation{
			set("p", "p", 1000, make([]byte, 300)), set("p", "s", 1000, make([]byte, 30)), set("p", "n", 1000, nil), set("u", "v", -1, make([]byte, 8)),
		}})
	}
	for name, marshal := range map[string]func(any) (mem.BufferSlice, error){"own": writeCodec{}.Marshal, "default": defaultCodec.Marshal} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				data, err := marshal(req)
				must.Succeed(b, err)
				data.Free()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/row")
		})
	}
}
