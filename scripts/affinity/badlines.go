package main

import (
	"fmt"
	"sync"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// badLinesShown is how many bad lines of an import are shown one by one.
const badLinesShown = 20

// badLines collects the lines of an import that did not go in. It is safe for concurrent use.
type badLines struct {
	mu    sync.Mutex
	count int
}

// add reports one, through the meter that is running.
func (b *badLines) add(m *meter, src *source, number int, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	if b.count <= badLinesShown {
		m.say("%s:%d: %s", src.name, number, cli.Printable(reason))
	}
}

// err is what the import ends with: a badLinesError when there were any.
func (b *badLines) err() error {
	if b.count == 0 {
		return nil
	}
	return badLinesError{count: b.count}
}

// badLinesError: the import went in, but for these many lines.
type badLinesError struct{ count int }

// ExitCode tells this end of a command apart from a failure.
func (e badLinesError) ExitCode() int { return exitLines }

func (e badLinesError) Error() string {
	if e.count > badLinesShown {
		return fmt.Sprintf("%d lines did not go in (the first %d are shown above); all others did", e.count, badLinesShown)
	}
	return fmt.Sprintf("%d lines did not go in; all others did", e.count)
}
