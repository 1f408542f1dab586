package fault

import (
	"bytes"
	"unicode/utf8"
)

// NotUTF8 returns "" for text that is UTF-8, and otherwise a clause that says in which
// encoding the text probably is, and how to convert it. There are few clauses, and none
// holds data of a client, so refusals can be counted by them.
func NotUTF8(text []byte) string {
	if utf8.Valid(text) {
		return ""
	}
	return guess(text)
}

// converts says how a file in an encoding of the program iconv is converted.
func converts(encoding string) string {
	return "it is probably " + encoding + ", which `iconv -f " + encoding + " -t UTF-8 FILE` converts"
}

const damaged = "a character is damaged or cut off"

// guess guesses from the bytes above ASCII and how they stand together.
func guess(text []byte) string {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) ||
		bytes.IndexByte(text, 0) >= 0 {
		return converts("UTF-16")
	}
	if shiftJIS(text) {
		return converts("SHIFT_JIS")
	}
	whole, broken := 0, 0 // bytes
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case size > 1:
			whole += size
		case r == utf8.RuneError:
			broken++
		}
		rest = rest[size:]
	}
	runs, high, even, asian := 0, 0, true, true
	for i := 0; i < len(text); i++ {
		n := 0
		for ; i < len(text) && text[i] >= utf8.RuneSelf; i, n = i+1, n+1 {
			asian = asian && text[i] > 0xa0
		}
		if n > 0 {
			runs, high, even = runs+1, high+n, even && n%2 == 0
		}
	}
	switch {
	case whole > broken:
		return damaged
	case even && asian: // two bytes a character
		return "it is probably GB18030, BIG5, EUC-KR or EUC-JP, which `iconv -f ENCODING -t UTF-8 FILE` converts"
	case whole == broken:
		return damaged
	case high >= 3*runs: // whole words
		return converts("WINDOWS-1251")
	}
	return converts("WINDOWS-1252") // letters with accents within words
}

// shiftJIS reports whether the bytes above ASCII are characters of Shift_JIS, of which
// one at least is of the two rows of kana.
func shiftJIS(text []byte) bool {
	kana := false
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case b < utf8.RuneSelf, b >= 0xa1 && b <= 0xdf:
		case b == 0x80 || b == 0xa0 || b > 0xfc || i+1 == len(text) || text[i+1] < 0x40 || text[i+1] == 0x7f ||
			text[i+1] > 0xfc:
			return false
		default:
			kana = kana || b == 0x82 || b == 0x83
			i++
		}
	}
	return kana
}
