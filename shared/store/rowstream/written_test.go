package rowstream

import (
	"testing"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// FuzzDecodeWritten compares the answers that are decoded here with what the generated code
// reads.
func FuzzDecodeWritten(f *testing.F) {
	seed := func(want bool, entries ...*bigtablepb.MutateRowsResponse_Entry) {
		b, err := proto.Marshal(&bigtablepb.MutateRowsResponse{Entries: entries})
		if err != nil {
			f.Fatal(err)
		}
		if got := decodeWritten(b, &bigtablepb.MutateRowsResponse{}); got != want {
			f.Errorf("%v: decoded %t, want %t", entries, got, want)
		}
		for i := range b {
			f.Add(b[i:])
			f.Add(b[:i])
		}
		f.Add(b)
	}
	written := &status.Status{}
	seed(true, &bigtablepb.MutateRowsResponse_Entry{Status: written}, &bigtablepb.MutateRowsResponse_Entry{Index: 300, Status: written})
	seed(false, &bigtablepb.MutateRowsResponse_Entry{Status: written}, &bigtablepb.MutateRowsResponse_Entry{Index: 1, Status: &status.Status{Code: 3, Message: "no"}})
	seed(false, &bigtablepb.MutateRowsResponse_Entry{Index: 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, want bigtablepb.MutateRowsResponse
		if !decodeWritten(b, &got) {
			return // the generated code reads it
		}
		if err := proto.Unmarshal(b, &want); err != nil || !proto.Equal(&got, &want) {
			t.Errorf("%x: %v, want %v, %v", b, &got, &want, err)
		}
	})
}
