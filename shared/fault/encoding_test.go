package fault_test

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/fault"
)

func TestEncodingIsGuessed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"brand:Café":                         "",
		"":                                   "",
		"brand:Caf\xe9":                      "WINDOWS-1252",
		"brand:r\xe9sum\xe9, \x80 9":         "WINDOWS-1252",
		"\x93Gr\xf6\xdfe\x94":                "WINDOWS-1252",
		"title:\x83V\x83\x83\x83c":           "SHIFT_JIS",
		"\x8a\x94\x8e\xae\x82\xcc\x89\xef":   "SHIFT_JIS",
		"\xca\xf0\xe0\xf1\xed\xee\xe5":       "WINDOWS-1251",
		"\xba\xec\xc9\xab":                   "GB18030",
		"\xff\xfee\x00v\x00":                 "UTF-16",
		"\xfe\xff\x00e\x00v":                 "UTF-16",
		"Café, Caf\xc3":                      "damaged or cut off",
		"caf\xc3\xa9 \xe2\x82":               "damaged or cut off",
		"\x80":                               "WINDOWS-1252",
		strings.Repeat("a", 10_000) + "\xff": "WINDOWS-1252",
	} {
		got := fault.NotUTF8([]byte(text))
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
}
