package httpapi

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

// sizes are bodies around the sizes of the parts that they are read in.
var sizes = []int{0, 1, 4<<10 - 1, 4 << 10, 4<<10 + 1, ahead - 1, ahead, ahead + 1, 3*ahead + 7}

func TestBodyArrivesInAnyPieces(t *testing.T) {
	for _, size := range sizes {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i * 31 >> 3)
		}
		for name, in := range map[string]func(io.Reader) io.Reader{
			"whole":           func(r io.Reader) io.Reader { return r },
			"byte by byte":    iotest.OneByteReader,
			"halves":          iotest.HalfReader,
			"end with data":   iotest.DataErrReader,
			"short with ends": func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.HalfReader(r)) },
		} {
			for _, claimed := range []int{-1, 0, size / 3, size, 10 * size} {
				got, err := readArriving(t.Context(), in(bytes.NewReader(want)), int64(claimed), int64(size))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes, %s, %d claimed: read %d, %v", size, name, claimed, len(got), err)
				}
				if size == 0 {
					continue
				}
				if _, err := readArriving(t.Context(), in(bytes.NewReader(want)), int64(claimed), int64(size-1)); err != errTooLarge {
					t.Errorf("%d bytes, %s, %d claimed, a limit one below: %v", size, name, claimed, err)
				}
			}
		}
	}
}

// silent is a client that announced a large body, sends some of it, and nothing
// more. It records the largest memory that waits for bytes.
type silent struct {
	sends, waiting int
}

func (s *silent) Read(p []byte) (int, error) {
	n := min(s.sends, len(p))
	s.sends -= n
	s.waiting = max(s.waiting, len(p)-n)
	if n == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return n, nil
}

func TestClaimedLengthTakesNoMemory(t *testing.T) {
	for _, sends := range []int{0, 150, ahead, 5*ahead + 1} {
		s := &silent{sends: sends}
		if _, err := readArriving(t.Context(), s, 8<<20, 8<<20); err == nil {
			t.Error("a body that is cut short is read")
		}
		if s.waiting > ahead {
			t.Errorf("%d bytes sent of 8 MiB: %d bytes of memory wait for more, want at most %d", sends, s.waiting, ahead)
		}
	}
}

func BenchmarkReadBody(b *testing.B) {
	body := make([]byte, 2_000_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readArriving(b.Context(), bytes.NewReader(body), int64(len(body)), int64(len(body))); err != nil {
			b.Fatal(err)
		}
	}
}
