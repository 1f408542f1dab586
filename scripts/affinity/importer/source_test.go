package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSourceLineNumbers(t *testing.T) {
	t.Parallel()
	s := NewSource("x", strings.NewReader("\n a \n\n\nb\r\n"+strings.Repeat("c", 100_000)+"\n\nd"), -1)
	if text, err := s.First(); err != nil || string(text) != "a" {
		t.Errorf("the first line is %q, %v", text, err)
	}
	var got []string
	for {
		l, err := s.next()
		if err != nil {
			got = append(got, err.Error())
			break
		}
		got = append(got, fmt.Sprintf("%d %.3s %d", l.number, l.text, len(l.text)))
	}
	if want := []string{"2 a 1", "5 b 1", "6 ccc 100000", "8 d 1", "EOF"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}
