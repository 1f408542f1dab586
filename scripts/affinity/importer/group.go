package importer

import (
	"bytes"
	"slices"
	"strings"
)

// groupLines and groupBytes bound the lines that are put in order by their users at a time.
const (
	groupLines = 250_000
	groupBytes = 64 << 20
)

// byUser returns the lines that next returns, some thousand at a time by their users: those
// without one come first, and those of one user stay in their order. Files are in the order of
// times, and the engine does something for each user of a request.
func byUser(next func() (line, error)) func() (line, error) {
	var lines []line
	var ended error
	return func() (line, error) {
		for size := 0; len(lines) == 0 && ended == nil; {
			for len(lines) < groupLines && size < groupBytes && ended == nil {
				var l line
				if l, ended = next(); ended == nil {
					l.text = bytes.Clone(l.text) // the source uses its memory again
					lines, size = append(lines, l), size+len(l.text)
				}
			}
			slices.SortStableFunc(lines, func(a, b line) int { return strings.Compare(a.user, b.user) })
		}
		if len(lines) == 0 {
			return line{}, ended
		}
		l := lines[0]
		lines[0] = line{}
		lines = lines[1:]
		return l, nil
	}
}
