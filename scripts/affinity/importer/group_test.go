package importer

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Lines come by their users, those of one in their order and bad ones first, also before an error;
// and none waits for more than a group.
func TestLinesComeByUser(t *testing.T) {
	damaged := errors.New("damaged")
	users, next := []string{"b", "a", "", "b", "a"}, 0
	memory := make([]byte, 1)
	read := byUser(func() (line, error) {
		if next == len(users) {
			return line{}, damaged
		}
		next++
		memory[0] = byte('0' + next)
		return line{number: next, text: memory, user: users[next-1]}, nil
	})
	var got []string
	for {
		l, err := read()
		if errors.Is(err, damaged) {
			break
		}
		got = append(got, l.user+string(l.text))
	}
	if diff := cmp.Diff([]string{"3", "a2", "a5", "b1", "b4"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if _, err := read(); !errors.Is(err, damaged) {
		t.Errorf("after the end: %v", err)
	}
	given := 0
	read = byUser(func() (line, error) {
		if given++; given > 2*groupLines {
			return line{}, io.EOF
		}
		return line{number: given}, nil
	})
	for i := 1; ; i++ {
		l, err := read()
		if errors.Is(err, io.EOF) {
			if i != 2*groupLines+1 {
				t.Errorf("%d lines", i-1)
			}
			return
		}
		if l.number != i || given > (i+groupLines-1)/groupLines*groupLines {
			t.Fatalf("line %d is %d, after %d were read", i, l.number, given)
		}
	}
}
