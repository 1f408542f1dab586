package vocabulary

import (
	"html"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// value is a value of a facet in its normal forms, each made of the one before.
type value struct {
	text      string
	objects   []int32
	unescaped string // without HTML entities
	composed  string // in the form NFKC: letters of one code point, and none for looks alone
	folded    string // without upper and lower case
	joined    string // without separators
	plain     string // without accents
	spaced    string // folded, without accents, with one space for separators
	letters   []rune // of plain
	digits    string // of plain, in order
	words     bool   // there is a letter
	target    bool   // an alias leads to it
}

// maxEscapes is how often a text may have been escaped.
const maxEscapes = 3

func newValue(fold cases.Caser, text string, objects []int32, target bool) value {
	v := value{text: text, objects: objects, unescaped: text, target: target}
	for range maxEscapes {
		v.unescaped = html.UnescapeString(v.unescaped)
	}
	if v.composed = v.unescaped; isASCII(v.unescaped) {
		v.folded = strings.ToLower(v.unescaped)
	} else {
		v.composed = norm.NFKC.String(v.unescaped)
		v.folded = norm.NFKC.String(fold.String(v.composed)) // folding may take letters apart
	}
	v.joined = join(v.folded)
	v.plain = unaccent(v.joined)
	v.spaced = unaccent(strings.Join(strings.FieldsFunc(v.folded, separates), " "))
	v.letters = []rune(v.plain)
	for _, r := range v.letters {
		switch {
		case unicode.IsDigit(r):
			v.digits += string(r)
		case unicode.IsLetter(r):
			v.words = true
		}
	}
	return v
}

func separates(r rune) bool { return strings.ContainsRune(" \t-‐–_.'’&", r) }

// join removes separators. Between two digits one stays, as a space: 1.5 is not 15.
func join(text string) string {
	var b strings.Builder
	letters := []rune(text)
	for i, r := range letters {
		switch {
		case !separates(r):
			b.WriteRune(r)
		case i > 0 && i+1 < len(letters) && unicode.IsDigit(letters[i-1]) && unicode.IsDigit(letters[i+1]):
			b.WriteRune(' ')
		}
	}
	return b.String()
}

// bases are Latin letters that no accent makes of another one. Languages count them as
// letters of their own, and catalogs lose them, too.
var bases = strings.NewReplacer("æ", "ae", "œ", "oe", "ø", "o", "đ", "d", "ħ", "h", "ł", "l", "ŧ", "t", "ı", "i")

// unaccent removes the accents of Latin letters. In other scripts a mark makes another
// letter: й is not и, and が is not か.
func unaccent(text string) string {
	if isASCII(text) {
		return text
	}
	var b strings.Builder
	latin := false
	for _, r := range norm.NFD.String(bases.Replace(text)) {
		if !unicode.Is(unicode.Mn, r) {
			latin = unicode.Is(unicode.Latin, r)
		} else if latin {
			continue
		}
		b.WriteRune(r)
	}
	return norm.NFC.String(b.String())
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
