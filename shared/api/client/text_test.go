package client_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/api/client"
)

// inUTF16 encodes text with a byte order mark.
func inUTF16(order binary.AppendByteOrder, text string) string {
	encoded := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(text)) {
		encoded = order.AppendUint16(encoded, unit)
	}
	return string(encoded)
}

func gzipped(text string) string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.WriteString(w, text) // a buffer takes everything
	_ = w.Close()
	return packed.String()
}

func TestTextIsReadInAnyForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Filter(func(s string) bool { return !strings.HasPrefix(s, "\ufeff") && !strings.Contains(s, "\x00") }).Draw(t, "text")
		for form, file := range map[string]string{
			"plain": "a" + want, "marked": "\ufeff" + "a" + want, "gzip": gzipped("a" + want), "gzip of UTF-16": gzipped(inUTF16(binary.LittleEndian, "a"+want)),
			"UTF-16LE": inUTF16(binary.LittleEndian, "a"+want), "UTF-16BE": inUTF16(binary.BigEndian, "a"+want),
		} {
			in, err := client.Text(iotest.OneByteReader(strings.NewReader(file)))
			if err != nil {
				t.Fatalf("%s of %q: %v", form, want, err)
			}
			got, err := io.ReadAll(in)
			if err != nil || string(got) != "a"+want {
				t.Fatalf("%s of %q: %q, %v", form, want, got, err)
			}
		}
	})
}

// A file of UTF-16 that is damaged holds bytes that are not UTF-8 where it is, and no others.
func TestDamagedUTF16IsNotText(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"\xff\xfea\x00b":                   "a\xff",
		"\xff\xfe\x00\xd8a\x00":            "\xffa",
		"\xff\xfe\x00\xdca\x00":            "\xffa",
		"\xff\xfe\x3d\xd8\x3d\xd8\x00\xde": "\xff\U0001f600",
		"\xff\xfe\x3d\xd8":                 "\xff",
		"\xff\xfe\xfd\xff":                 "\ufffd",
		"\xff\xfe":                         "",
	} {
		in, err := client.Text(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(in); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v, want %q", file, got, err, want)
		}
	}
}

func TestOtherFormatsAreNamed(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"PK\x03\x04rest": "zip archive", "BZh91AY": "bunzip2 -c", "\xfd7zXZ\x00": "xz -dc", "\x28\xb5\x2f\xfd\x04": "zstd -dc",
		"PAR1\x15\x04": "Parquet", "e\x00v\x00e\x00": "iconv -f UTF-16LE", "\x00e\x00v\x00e": "iconv -f UTF-16BE", "\xff\xfe\x00\x00e\x00\x00\x00": "UTF-32",
	} {
		for _, file := range []string{file, gzipped(file)} {
			if _, err := client.Text(strings.NewReader(file)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.8q: %v, want %q", file, err, want)
			}
		}
	}
	for _, file := range []string{"", "a", "PK", "BZ,x\n", "PAR1,PAR2\n"} {
		if _, err := client.Text(strings.NewReader(file)); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}
