package importer

import (
	"fmt"
	"sync"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// maxBadLines is how many bad lines are printed one by one.
const maxBadLines = 20

// badLines counts the lines that were not imported. It is safe for concurrent
// use.
type badLines struct {
	mu    sync.Mutex
	count int
}

// add counts a line and prints it through the running meter.
func (b *badLines) add(m *meter, src *Source, number int, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	if b.count <= maxBadLines {
		m.print("%s:%d: %s", src.name, number, cli.Printable(reason))
	}
}

// BadLinesError is the number of lines that were not imported. All others were.
type BadLinesError int

// Error counts the lines and says that all others were imported.
func (e BadLinesError) Error() string {
	text := cli.Count(int(e), "line") + " did not go in"
	if e > maxBadLines {
		text += fmt.Sprintf(" (the first %d are shown above)", maxBadLines)
	}
	return text + "; all others did"
}
