package rowstream

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Tags of fields: the number and the wire type.
const (
	// Of google.bigtable.v2.ReadRowsResponse.
	tagChunk       = 1<<3 | uint64(protowire.BytesType)
	tagLastScanned = 2<<3 | uint64(protowire.BytesType)
	// Of its CellChunk.
	tagRowKey    = 1<<3 | uint64(protowire.BytesType)
	tagFamily    = 2<<3 | uint64(protowire.BytesType)
	tagQualifier = 3<<3 | uint64(protowire.BytesType)
	tagTime      = 4<<3 | uint64(protowire.VarintType)
	tagLabel     = 5<<3 | uint64(protowire.BytesType)
	tagValue     = 6<<3 | uint64(protowire.BytesType)
	tagValueSize = 7<<3 | uint64(protowire.VarintType)
	tagReset     = 8<<3 | uint64(protowire.VarintType)
	tagCommit    = 9<<3 | uint64(protowire.VarintType)
	// Of google.protobuf.StringValue and BytesValue.
	tagWrapped = 1<<3 | uint64(protowire.BytesType)
)

// field is one field of a message.
type field struct {
	tag    uint64
	bytes  []byte
	number uint64 // of a varint
}

// next returns the first field of b, and what follows it.
func next(b []byte) (f field, rest []byte, err error) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return f, nil, protowire.ParseError(n)
	}
	if number > protowire.MaxValidNumber {
		return f, nil, fmt.Errorf("field number %d", number)
	}
	b, f.tag = b[n:], protowire.EncodeTag(number, kind)
	switch kind {
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(b)
	case protowire.VarintType:
		f.number, n = protowire.ConsumeVarint(b)
	default:
		n = protowire.ConsumeFieldValue(number, kind, b)
	}
	if n < 0 {
		return f, nil, protowire.ParseError(n)
	}
	return f, b[n:], nil
}

// chunk is a cell, or a part of one.
type chunk struct {
	key, family, qualifier, value []byte
	// Whether the chunk names a family and a qualifier, which may be empty.
	hasFamily, hasQualifier bool
	time                    int64 // microseconds
	size                    int32 // of the whole value, if this is a part and not the last
	labels, reset, commit   bool
}

// parseChunk reads a chunk. Its bytes alias b.
func parseChunk(b []byte) (c chunk, err error) {
	for len(b) > 0 {
		var f field
		if f, b, err = next(b); err != nil {
			return c, err
		}
		switch f.tag {
		case tagRowKey:
			c.key = f.bytes
		case tagFamily:
			c.hasFamily = true
			c.family, err = unwrap(f.bytes, c.family, utf8.Valid)
		case tagQualifier:
			c.hasQualifier = true
			c.qualifier, err = unwrap(f.bytes, c.qualifier, anyBytes)
		case tagTime:
			c.time = int64(f.number)
		case tagLabel:
			c.labels = true
		case tagValue:
			c.value = f.bytes
		case tagValueSize:
			c.size = int32(f.number)
		case tagReset: // one of the two
			c.reset, c.commit = f.number != 0, false
		case tagCommit:
			c.reset, c.commit = false, f.number != 0
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// unwrap returns the value of a wrapper. Several wrappers in one field count as one,
// so that value is that of the one before. Each must be valid.
func unwrap(b, value []byte, valid func([]byte) bool) ([]byte, error) {
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return nil, err
		}
		if b = rest; f.tag == tagWrapped {
			if value = f.bytes; !valid(value) {
				return nil, fmt.Errorf("%q is not UTF-8", value)
			}
		}
	}
	return value, nil
}

func anyBytes([]byte) bool { return true }
