package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/wire"
)

const format = 3

// What is written is read again, one part after the other.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unsigned, signed := rapid.Uint64().Draw(t, "unsigned"), rapid.Int64().Draw(t, "signed")
		text, float := rapid.String().Draw(t, "text"), math.Abs(rapid.Float64().Draw(t, "float"))
		previous := rapid.StringMatching(`a{0,4}b{0,4}`).Draw(t, "previous")
		next := rapid.StringMatching(`a{0,4}b{0,4}`).Draw(t, "next")
		before := rapid.SliceOf(rapid.Byte()).Draw(t, "before")

		b := append(bytes.Clone(before), format)
		b = binary.AppendVarint(binary.AppendUvarint(b, unsigned), signed)
		b = wire.AppendFloat(wire.AppendText(b, text), float)
		b = wire.Seal(wire.AppendNext(append(b, 7), previous, next), len(before))

		r, err := wire.Unseal(b[len(before):], format)
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Unsigned(); n != unsigned {
			t.Errorf("%d, want %d", n, unsigned)
		}
		if n := r.Signed(); n != signed {
			t.Errorf("%d, want %d", n, signed)
		}
		if s := r.Text(); string(s) != text {
			t.Errorf("%q, want %q", s, text)
		}
		if f := r.Float(); f != float {
			t.Errorf("%v, want %v", f, float)
		}
		if n := r.Byte(); n != 7 {
			t.Errorf("byte %d, want 7", n)
		}
		if s := r.NextText(nil, []byte(previous), r.Unsigned()); string(s) != next {
			t.Errorf("%q, want %q after %q", s, next, previous)
		}
		if err := r.End(); err != nil {
			t.Error(err)
		}
		if r.Byte(); r.End() == nil {
			t.Error("a byte behind the end")
		}
	})
}

// Whatever the bytes are, a reader stays within them and returns zeros after the first fault.
func FuzzReader(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0x80}, []byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add(bytes.Repeat([]byte{0xff}, 12), []byte{0, 0, 1})
	f.Fuzz(func(t *testing.T, b, calls []byte) {
		r := wire.Reader{B: b}
		for _, call := range calls {
			damaged, at := r.Damaged, r.Next
			var zero bool
			switch call % 8 {
			case 0:
				zero = r.Unsigned() == 0
			case 1:
				zero = r.Signed() == 0
			case 2:
				n := r.Number()
				if zero = n == 0; n < 0 {
					t.Errorf("number %d", n)
				}
			case 3:
				each := 1 + int(call>>4)
				n := r.Size(each)
				if zero = n == 0; n*each > len(b)-r.Next {
					t.Errorf("%d items of %d bytes with %d left", n, each, len(b)-r.Next)
				}
			case 4:
				zero = len(r.Take(int(call>>3)-2)) == 0
			case 5:
				zero = len(r.Text()) == 0
			case 6:
				v := r.Float()
				if zero = v == 0; !(v >= 0 && v <= math.MaxFloat64) {
					t.Errorf("float %v", v)
				}
			case 7:
				zero = len(r.NextText(nil, []byte("previous"), uint64(call>>3))) <= 8
			}
			if r.Next < at || r.Next > len(b) || damaged && (!r.Damaged || !zero) {
				t.Fatalf("call %d: offset %d of %d, damaged %v", call%8, r.Next, len(b), r.Damaged)
			}
		}
	})
}

// A cell that is cut or changed is damaged, and one of another format is newer.
func TestSeal(t *testing.T) {
	b := wire.Seal([]byte{format, 1, 2, 3}, 0)
	for i := range b {
		for _, wrong := range [][]byte{b[:i], append(bytes.Clone(b[:i]), append([]byte{b[i] ^ 1}, b[i+1:]...)...)} {
			if _, err := wire.Unseal(wrong, format); !errors.Is(err, wire.ErrDamaged) {
				t.Errorf("%x: %v", wrong, err)
			}
		}
	}
	if _, err := wire.Unseal(b, format+1); !errors.Is(err, wire.ErrNewer) || errors.Is(err, wire.ErrDamaged) {
		t.Errorf("another format: %v", err)
	}
}
