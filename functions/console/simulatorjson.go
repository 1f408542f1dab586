package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

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
