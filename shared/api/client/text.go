package client

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/fault"
)

// textBuffer is the size of the buffers of Text, in bytes.
const textBuffer = 64 << 10

// formats are the first bytes of files that people take for text.
var formats = []struct{ begin, what string }{
	{"PK\x03\x04", "a zip archive or an Excel workbook: unpack it, or save the sheet as CSV UTF-8"},
	{"BZh", "packed by bzip2: `bunzip2 -c FILE` unpacks it"},
	{"\xfd7zXZ", "packed by xz: `xz -dc FILE` unpacks it"},
	{"\x28\xb5\x2f\xfd", "packed by zstd: `zstd -dc FILE` unpacks it"},
	{"7z\xbc\xaf\x27", "a 7z archive: unpack it"},
	{"Rar!\x1a", "a rar archive: unpack it"},
	{"PAR1\x15", "a Parquet file: export it as CSV or as JSON lines"},
	{"Obj\x01", "an Avro file: export it as JSON lines"},
	{"\xd0\xcf\x11\xe0", "an Excel workbook: save the sheet as CSV UTF-8"},
	{"\xff\xfe\x00\x00", "in UTF-32: `iconv -f UTF-32 -t UTF-8 FILE` converts it"},
	{"\x00\x00\xfe\xff", "in UTF-32: `iconv -f UTF-32 -t UTF-8 FILE` converts it"},
}

// Text reads the text of a file as UTF-8, without a byte order mark. It unpacks gzip, and
// converts UTF-16 that begins with a mark. All other bytes stay as they are. The error is
// a *fault.Error for a file of another format, such as a zip archive.
func Text(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, textBuffer)
	if magic, err := in.Peek(2); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReaderSize(unpacked, textBuffer)
	}
	head, _ := in.Peek(5) // the next read returns any error again
	for _, f := range formats {
		if bytes.HasPrefix(head, []byte(f.begin)) {
			return nil, fault.New(fault.Malformed, "the file is %s", f.what)
		}
	}
	mark, order := 0, binary.ByteOrder(nil)
	switch {
	case bytes.HasPrefix(head, []byte("\ufeff")):
		mark = 3
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		mark, order = 2, binary.LittleEndian
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		mark, order = 2, binary.BigEndian
	case len(head) >= 4 && (head[0] == 0) != (head[1] == 0) && (head[2] == 0) != (head[3] == 0):
		return nil, fault.New(fault.Malformed, "the file is in UTF-16 without a byte order mark: `iconv -f %s -t "+
			"UTF-8 FILE` converts it",
			map[bool]string{true: "UTF-16BE", false: "UTF-16LE"}[head[0] == 0])
	}
	_, _ = in.Discard(mark) // these bytes were peeked
	if order != nil {
		in = bufio.NewReaderSize(&utf16Reader{in, order}, textBuffer)
	}
	return in, nil
}

// utf16Reader converts UTF-16 to UTF-8. What is not a character becomes a byte that is not
// UTF-8, so that nobody takes it for text.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
}

const broken = 0xff

// Read converts what has arrived, and waits only if that is nothing.
func (u *utf16Reader) Read(p []byte) (int, error) {
	out := p[:0]
	for cap(out)-len(out) >= utf8.UTFMax && (len(out) == 0 || u.in.Buffered() >= 4) {
		pair, err := u.in.Peek(2)
		if len(pair) == 1 && errors.Is(err, io.EOF) {
			_, _ = u.in.Discard(1)
			return len(append(out, broken)), nil
		}
		if err != nil {
			return len(out), err
		}
		char, size := rune(u.order.Uint16(pair)), 2
		if utf16.IsSurrogate(char) {
			first := char
			char = -1
			if pair, _ = u.in.Peek(4); len(pair) == 4 {
				if both := utf16.DecodeRune(first, rune(u.order.Uint16(pair[2:]))); both != utf8.RuneError {
					char, size = both, 4
				}
			}
		}
		_, _ = u.in.Discard(size) // these bytes were peeked
		if char < 0 {
			out = append(out, broken)
		} else {
			out = utf8.AppendRune(out, char)
		}
	}
	return len(out), nil
}
