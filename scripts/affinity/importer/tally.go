package importer

import (
	"fmt"
	"sync"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/event"
)

// Tally counts what became of the lines of files: of lines that are not blank, of rows of
// CSV, of objects of a list. A track call of many products counts once for each of its
// events. After an import without an error, Read is the sum of all others.
type Tally struct {
	Read     int `json:"read"`
	Imported int `json:"imported"` // each once
	// Equal lines are an event that another line is too, or an object whose objectID
	// another line has: they are one with it.
	Equal   int `json:"equal"`
	Skipped int `json:"skipped"` // without data, such as the first line of an export, or left out on request
	Refused int `json:"refused"`
}

func (t Tally) less(before Tally) Tally {
	return Tally{t.Read - before.Read, t.Imported - before.Imported, t.Equal - before.Equal,
		t.Skipped - before.Skipped, t.Refused - before.Refused}
}

// Text says what became of lines, whose name is that of one. equal says to what equal
// ones are equal.
func (t Tally) Text(line, imported, equal string) string {
	text := fmt.Sprintf("read %s: %d %s, ", cli.Count(t.Read, line), t.Imported, imported)
	if t.Equal > 0 {
		text += fmt.Sprintf("%d %s, ", t.Equal, equal)
	}
	if t.Skipped > 0 {
		text += fmt.Sprintf("%d skipped, ", t.Skipped)
	}
	text += fmt.Sprintf("%d refused", t.Refused)
	if unsent := t.NotSent(); unsent > 0 {
		text += fmt.Sprintf(", %d not sent", unsent)
	}
	return text
}

// NotSent counts the lines that were read before an error ended the import, and did not go
// in.
func (t Tally) NotSent() int { return t.Read - t.Imported - t.Equal - t.Skipped - t.Refused }

// maxBadLines is how many bad lines are printed one by one.
const maxBadLines = 20

// tally counts lines and prints the bad ones. It is safe for concurrent use.
type tally struct {
	mu    sync.Mutex
	count Tally
	all   bool // print all bad lines
	// printed counts the refused lines that are printed one by one, and those that would be.
	printed int
	kinds   map[string]*Kind // of the last file, by name
	// impossible counts the refused lines whose event has a time that no event can have.
	impossible int
}

// add adds counts.
func (t *tally) add(further Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.count
	c.Read, c.Imported, c.Equal, c.Skipped = c.Read+further.Read, c.Imported+further.Imported,
		c.Equal+further.Equal, c.Skipped+further.Skipped
	c.Refused += further.Refused
}

// once counts a line that was taken: as imported if it is new, else as equal.
func (t *tally) once(isNew bool) {
	if isNew {
		t.add(Tally{Imported: 1})
	} else {
		t.add(Tally{Equal: 1})
	}
}

// refuseLine refuses a line that is bad before an engine has seen it. printKinds prints those
// of kinds without a type.
func (t *tally) refuseLine(m *meter, src *Source, l line) {
	if l.kind == nil || !t.refuseKind(l.number, l.kind) {
		t.refuse(m, src, l.number, l.reason())
	}
}

// refuse counts a bad line and prints it through the running meter.
func (t *tally) refuse(m *meter, src *Source, number int, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count.Refused++
	if event.ImpossibleTime(reason) {
		t.impossible++
	}
	if event.InvalidToken(reason) {
		reason += " (--hash-tokens makes a token of any id)"
	}
	if t.printed++; t.all || t.printed <= maxBadLines {
		m.print("%s:%d: %s", src.name, number, cli.Printable(reason))
	}
}

func (t *tally) counts() Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// unreadable is the number of refused lines besides those with an impossible time.
func (t *tally) unreadable() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count.Refused - t.impossible
}

// shown says how many bad lines are printed, if these are not all.
func (t *tally) shown() string {
	if t.all {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.printed <= maxBadLines {
		return ""
	}
	return fmt.Sprintf(" (the first %d are shown above)", maxBadLines)
}

// BadLinesError counts the lines that were not imported.
type BadLinesError struct {
	Tally
	checked bool
	shown   string // how many are printed, if these are not all
}

// Error says whether other lines were imported.
func (e BadLinesError) Error() string {
	lines, not, did, others := cli.Count(e.Read, "line"), "did not go in", "went in", "did"
	if e.checked {
		not, did, others = "would not go in", "would go in", "would"
	}
	if e.Imported+e.Equal == 0 {
		return fmt.Sprintf("none of %s %s%s", lines, did, e.shown)
	}
	return fmt.Sprintf("%d of %s %s%s; all others %s", e.Refused, lines, not, e.shown, others)
}
