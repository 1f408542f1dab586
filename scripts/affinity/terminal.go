package main

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// isTerminal tells whether a person reads what is written there.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colored tells whether colours may be written there: on a terminal, unless NO_COLOR says otherwise (https://no-color.org).
func colored(w io.Writer) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

// width is how many columns there are; 100 where nobody can say.
func width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 100
}

// printable makes text of others safe for a terminal: what is no visible character or space is shown as the replacement character.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// palette gives each facet a colour of its own, the same for its whole life. Without colours it changes nothing.
type palette struct {
	on    bool
	given map[string]int
}

func newPalette(on bool) *palette { return &palette{on: on, given: map[string]int{}} }

// Blue, green, yellow, magenta, cyan, red: readable on dark and on light.
var ansiColors = []string{"\x1b[34m", "\x1b[32m", "\x1b[33m", "\x1b[35m", "\x1b[36m", "\x1b[31m"}

func (p *palette) paint(facet, text string) string {
	if !p.on {
		return text
	}
	n, ok := p.given[facet]
	if !ok {
		n = len(p.given)
		p.given[facet] = n
	}
	return ansiColors[n%len(ansiColors)] + text + "\x1b[0m"
}

func (p *palette) bold(text string) string {
	if !p.on {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}
