package rowstream

import (
	"bytes"
	"testing"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/affinityengine/affinity/shared/local/must"
)

// FuzzParseChunk compares the fields of chunks with what the generated code reads.
func FuzzParseChunk(f *testing.F) {
	full, err := proto.Marshal(&bigtablepb.ReadRowsResponse_CellChunk{
		RowKey: []byte("key"), FamilyName: wrapperspb.String("f"), Qualifier: wrapperspb.Bytes([]byte("q")), TimestampMicros: -5,
		Labels: []string{"l"}, Value: []byte("value"), ValueSize: -7,
		RowStatus: &bigtablepb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true},
	})
	must.Succeed(f, err)
	f.Add(full)
	f.Add([]byte{})
	for i := range full {
		f.Add(full[i:])
		f.Add(full[:i])
		changed := bytes.Clone(full)
		changed[i] ^= 1 << (i % 8)
		f.Add(changed)
		f.Add(append(bytes.Clone(full), full[i:]...))
	}
	f.Add([]byte{18, 3, 10, 1, 'a', 18, 0, 26, 2, 16, 1, 64, 1, 72, 0}) // a family in two parts, an unknown field, a status twice
	f.Add([]byte{0xa0, 0xff, 0xff, 0xf0, 0x30, 0x30})                   // a field above the largest number
	f.Add([]byte{18, 6, 10, 1, 0x85, 10, 1, '0'})                       // a family that is not UTF-8, and then one that is
	f.Fuzz(func(t *testing.T, b []byte) {
		var want bigtablepb.ReadRowsResponse_CellChunk
		got, err := parseChunk(b)
		if failed := proto.Unmarshal(b, &want); (err == nil) != (failed == nil) {
			if got.labels && err == nil {
				return // labels are not looked at
			}
			t.Fatalf("%x: error %v, want %v", b, err, failed)
		}
		if err != nil {
			return
		}
		if string(got.key) != string(want.RowKey) || string(got.value) != string(want.Value) || got.time != want.TimestampMicros ||
			got.size != want.ValueSize || got.labels != (len(want.Labels) > 0) || got.reset != want.GetResetRow() || got.commit != want.GetCommitRow() ||
			got.hasFamily != (want.FamilyName != nil) || got.hasQualifier != (want.Qualifier != nil) ||
			string(got.family) != want.FamilyName.GetValue() || string(got.qualifier) != string(want.Qualifier.GetValue()) {
			t.Errorf("%x: %+v, want %v", b, got, &want)
		}
	})
}

// What a row or a message of hostile sizes makes the decoder reserve is bounded by what
// has arrived.
func TestHostileSize(t *testing.T) {
	b, err := proto.Marshal(&bigtablepb.ReadRowsResponse{Chunks: []*bigtablepb.ReadRowsResponse_CellChunk{{
		RowKey: []byte("a"), FamilyName: wrapperspb.String("f"), Qualifier: wrapperspb.Bytes(nil), ValueSize: 1<<31 - 1,
	}}})
	must.Succeed(t, err)
	d := &decoder{}
	if err := d.message(b); err != nil || cap(d.value) > maxReserve {
		t.Errorf("%d bytes reserved, %v", cap(d.value), err)
	}
}

func BenchmarkMessage(b *testing.B) {
	m := &bigtablepb.ReadRowsResponse{}
	for i := range 100 {
		m.Chunks = append(m.Chunks, &bigtablepb.ReadRowsResponse_CellChunk{
			RowKey: []byte{byte(i), 'k'}, FamilyName: wrapperspb.String("f"), Qualifier: wrapperspb.Bytes([]byte("q")), TimestampMicros: 1_700_000_000_000_000,
			Value: make([]byte, 300), RowStatus: &bigtablepb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true},
		})
	}
	message, err := proto.Marshal(m)
	must.Succeed(b, err)
	d := &decoder{to: Receiver{Row: func(*Row) error { return nil }}}
	b.SetBytes(int64(len(message)))
	b.ReportAllocs()
	for b.Loop() {
		d.last = d.last[:0]
		must.Succeed(b, d.message(message))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/row")
}
