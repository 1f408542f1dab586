package rowstream

import (
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// Tags of fields of google.bigtable.v2.MutateRowsResponse and of its entries.
const (
	tagWritten       = 1<<3 | uint64(protowire.BytesType)
	tagWrittenIndex  = 1<<3 | uint64(protowire.VarintType)
	tagWrittenStatus = 2<<3 | uint64(protowire.BytesType)
)

// decodeWritten decodes the answer to a request that writes many rows, if it says of each
// row that it was written and nothing else. Otherwise it returns false. The entries share
// memory, and one status.
func decodeWritten(b []byte, into *bigtablepb.MutateRowsResponse) bool {
	n := 0
	for rest := b; len(rest) > 0; n++ {
		f, after, err := next(rest)
		if err != nil || f.tag != tagWritten {
			return false
		}
		rest = after
	}
	entries, pointers, ok := make([]bigtablepb.MutateRowsResponse_Entry, n),
		make([]*bigtablepb.MutateRowsResponse_Entry, n), &status.Status{}
	for i := range entries {
		f, after, _ := next(b)
		b = after
		if !decodeEntry(f.bytes, &entries[i]) {
			return false
		}
		entries[i].Status = ok
		pointers[i] = &entries[i]
	}
	into.Entries = pointers
	return true
}

// decodeEntry decodes the entry of a row that was written: its index, and an empty status.
func decodeEntry(b []byte, into *bigtablepb.MutateRowsResponse_Entry) bool {
	written := false
	for len(b) > 0 {
		f, rest, err := next(b)
		switch {
		case err != nil:
			return false
		case f.tag == tagWrittenIndex:
			into.Index = int64(f.number)
		case f.tag == tagWrittenStatus && len(f.bytes) == 0:
			written = true
		default:
			return false
		}
		b = rest
	}
	return written
}
