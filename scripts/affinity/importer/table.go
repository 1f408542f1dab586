package importer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// shape says how the rows of a table, and objects of JSON, become what the engine takes.
type shape interface {
	// layout returns what separates the columns of a table, 0 if that is not known, and
	// whether a column of a name is expected.
	layout() (delimiter byte, known func(name string) bool)
	// table returns a function that returns the next row of a table, whose columns have
	// these names. The error is a columnsError.
	table(r *rows, names []string) (func() (line, error), error)
	// prepare prepares for objects of JSON. The error is a columnsError.
	prepare() error
	// convert returns what the engine takes for an object of JSON: one text or several. The
	// error says what is wrong with the object, or is errSkipped.
	convert(object []byte) ([][]byte, error)
}

// errSkipped is for what is left out on request.
var errSkipped = errors.New("left out on request")

// columnsError says what is wrong with the names of columns, or with a path.
type columnsError string

// Error is the reason.
func (e columnsError) Error() string { return string(e) }

// openTable reads the line of names of a table, and returns a function that returns its next
// row.
func openTable(in *bufio.Reader, s shape) (func() (line, error), error) {
	delimiter, known := s.layout()
	r := &rows{lines: physical{in: in}, delimiter: delimiter}
	err := r.sniff(known)
	var head row
	if err == nil {
		head, err = r.next()
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, columnsError("the line of names is missing")
	case err != nil:
		return nil, fmt.Errorf("read the names of the columns: %w", err)
	case head.fault != "" || head.tooLong:
		return nil, columnsError("the line of names cannot be read: " + firstOf(head.fault, "it is too long"))
	}
	names := make([]string, len(head.cells))
	for i := range names {
		names[i] = strings.TrimSpace(head.cells[i])
	}
	r.width = len(names)
	return s.table(r, names)
}

// columns finds the columns of fields: those that are mapped to a field, else those that
// have one of its names.
func columns(names, fields []string, mapped map[string]string,
	named func(name, field string) bool) (map[string]int, error) {
	found := map[string]int{}
	for _, field := range fields {
		column, given := mapped[field]
		at := slices.IndexFunc(names, func(name string) bool {
			return given && name == column || !given && named(name, field)
		})
		if given && at < 0 {
			return nil, columnsError(fmt.Sprintf("--map %s=%s: %s", field, column, listed(names)))
		}
		if at >= 0 {
			found[field] = at
		}
	}
	return found, nil
}

// listed says which columns there are.
func listed(names []string) string {
	const most, longest = 40, 60
	shown := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		if len(name) > longest {
			name = name[:longest] + "..."
		}
		shown = append(shown, name)
	}
	text := "the columns are " + strings.Join(shown, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(names) == 1 {
		text = "the only column is " + shown[0] + ": --delimiter says what separates columns; JSON begins with { or ["
	}
	return text
}

// words are parts of names that columns of a field often have.
var words = map[string][]string{
	"userToken": {"user", "visitor", "customer", "client", "member", "account", "person"},
	"objectIDs": {"sku", "product_id", "item_id", "product", "item", "article", "content"},
	"objectID":  {"sku", "product_id", "item_id", "article", "artikel", "id"},
	"eventType": {"type", "action", "event"},
}

// missing says that no column holds a field, and which one may.
func missing(what, field string, names []string) error {
	likely := "COLUMN"
	for _, word := range words[field] {
		at := slices.IndexFunc(names, func(name string) bool {
			name = strings.ToLower(name)
			return strings.Contains(name, word) && !strings.Contains(name, "time")
		})
		if at >= 0 && len(names) > 1 {
			likely = names[at]
			break
		}
	}
	return columnsError(fmt.Sprintf("no column holds %s: name one with --map %s; %s", what, cli.ShellWord(field+"="+likely),
		listed(names)))
}
