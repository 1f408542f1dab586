package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// plainArg is what a shell takes as it is.
var plainArg = regexp.MustCompile(`^[A-Za-z0-9_=/+.:,@-]+$`)

// shellArg quotes a text for a command line that a page shows: characters that nobody can see,
// or that change the direction of others, are written with escapes.
func shellArg(text string) string {
	if plainArg.MatchString(text) {
		return text
	}
	hidden := func(c rune) bool { return c == utf8.RuneError || c != ' ' && !unicode.IsPrint(c) }
	if !strings.ContainsFunc(text, hidden) {
		return quoted(text)
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range text {
		switch {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(c))
		case !hidden(c):
			b.WriteRune(c)
		case c > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, c)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String() + "'"
}

// userArg is a token as the last argument of a command.
func userArg(token string) string {
	if strings.HasPrefix(token, "-") {
		return "-- " + shellArg(token)
	}
	return shellArg(token)
}

// readable indents JSON, and escapes what nobody can see in it.
func readable(raw []byte) (string, error) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, raw, "", "  "); err != nil {
		return "", fmt.Errorf("indent: %w", err)
	}
	return visibleJSON(indented.String()), nil
}

// span writes a half-life: "7 days", "12 hours".
func span(halfLife string) string {
	h, err := strategy.ParseHalfLife(halfLife)
	if err != nil {
		return halfLife
	}
	ms := h.Millis()
	for _, unit := range []struct {
		ms   float64
		name string
	}{{24 * 3_600_000, "day"}, {3_600_000, "hour"}, {60_000, "minute"}} {
		n := ms / unit.ms
		if n >= 1 && n == float64(int64(n)) {
			return plural(int(n), unit.name)
		}
	}
	return halfLife
}

// plural counts things whose plural ends with an s.
func plural[N int | int64](n N, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return number(n) + " " + of + "s"
}

// factor writes a number of 0 to 1 as people compare decays.
func factor(x float64) string {
	if x > 0 && x < 0.001 {
		return "< 0.001"
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

func init() {
	functions["span"] = span
	functions["plural"] = pluralOf
	functions["factor"] = factor
}

// pluralOf is plural for templates, whose counts are of either type.
func pluralOf(n any, of string) (string, error) {
	switch n := n.(type) {
	case int:
		return plural(n, of), nil
	case int64:
		return plural(n, of), nil
	}
	return "", fmt.Errorf("%v is no count", n)
}

// jsonText writes a value as JSON of one line, in characters that are seen as they are.
func jsonText(value any) string { return writeJSON(value, "") }

// jsonLines is jsonText with indented lines.
func jsonLines(value any) string { return writeJSON(value, "  ") }

func writeJSON(value any, indent string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the template escapes, and people copy the text
	e.SetIndent("", indent)
	if err := e.Encode(value); err != nil {
		return "" // the values are answers of the engine
	}
	return visibleJSON(strings.TrimSuffix(b.String(), "\n"))
}

// visibleJSON escapes the characters of a JSON text that are invisible or change the direction
// of others. They are all within strings, so the text keeps its meaning.
func visibleJSON(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\n' || c == ' ' || unicode.IsPrint(c):
			b.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}
