package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// IsTerminalInput reports whether a person can type into r.
func IsTerminalInput(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colored reports whether w may receive colors: it is a terminal and NO_COLOR
// is not set (https://no-color.org).
func Colored(w io.Writer) bool { return IsTerminal(w) && os.Getenv("NO_COLOR") == "" }

// Width is how many columns w shows, 100 if that is unknown.
func Width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 100
}

// Printable makes foreign text safe for a terminal: it replaces control
// characters and other invisible ones by the replacement character.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Table prints a table: a header, whose cells are separated by tabs, and a row of
// cells for each item.
func Table[T any](out io.Writer, header string, items []T, cells func(T) []any) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, header)
	for _, item := range items {
		for i, cell := range cells(item) {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, Printable(fmt.Sprint(cell)))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// Count is a number with its noun: "1 user", "2 users". The plural ends in s.
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ShellWord returns a text as a word of a command line of a shell.
func ShellWord(text string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-+=.,:/@%", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
