package where

import (
	"strconv"
	"strings"
)

type kind int

const (
	ended kind = iota
	word       // an attribute, a value, a number, or a word of the language
	colon
	sign // of a comparison
	opened
	closed
)

type token struct {
	kind   kind
	text   string
	quoted bool
	at     int // byte of its start, from 1
}

// is reports whether the token is a word of the language. Words are upper case, so that
// values may be and, or, not and to.
func (t token) is(text string) bool { return t.kind == word && !t.quoted && t.text == text }

func (t token) reserved() bool { return t.is("AND") || t.is("OR") || t.is("NOT") || t.is("TO") }

func (t token) unexpected(want string) error {
	if t.kind == ended {
		return invalid("where ends at byte %d: want %s", t.at, want)
	}
	return invalid("where at byte %d: want %s, got %s", t.at, want, strconv.Quote(shortened(t.text)))
}

func shortened(s string) string {
	const most = 40
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

const spaces = " \t\r\n"

// split splits text into tokens. The last one is the end.
func split(text string) ([]token, error) {
	var all []token
	for i := 0; i < len(text); {
		rest, t := text[i:], token{at: i + 1}
		size, value := 1, len(all) > 0 && all[len(all)-1].kind == colon
		switch c := text[i]; {
		case strings.IndexByte(spaces, c) >= 0:
			i++
			continue
		case value && strings.IndexByte("()\"", c) < 0:
			// A value may hold colons and signs, such as https://a.example or <50.
			size = ends(rest, "")
			t.kind, t.text = word, rest[:size]
		case c == '(':
			t.kind, t.text = opened, "("
		case c == ')':
			t.kind, t.text = closed, ")"
		case c == ':':
			t.kind, t.text = colon, ":"
		case strings.IndexByte("<>=!", c) >= 0:
			t.kind, t.text = sign, rest[:1]
			if len(rest) > 1 && rest[1] == '=' && c != '=' {
				t.text, size = rest[:2], 2
			}
			if t.text == "!" {
				return nil, token{word, t.text, false, t.at}.unexpected("one of < <= = != >= >")
			}
		case c == '"':
			unquoted, n, ok := unquote(rest)
			if !ok {
				return nil, invalid("where at byte %d: the quoted text has no end: add a %s", t.at, `"`)
			}
			t, size = token{word, unquoted, true, t.at}, n
		default:
			size = ends(rest, ":<>=!")
			t.kind, t.text = word, rest[:size]
		}
		all = append(all, t)
		i += size
	}
	return append(all, token{at: len(text) + 1}), nil
}

// ends returns the length of a word, which signs end too.
func ends(s, signs string) int {
	if n := strings.IndexAny(s, spaces+"()\""+signs); n >= 0 {
		return n
	}
	return len(s)
}

// unquote reads a text in double quotes at the start of s, and returns how many bytes it
// takes.
func unquote(s string) (text string, size int, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i + 1, true
		case c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, false
}
