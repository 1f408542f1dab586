package event

import (
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Operator stands between the facet and the value of a filter. It is the only
// one so far: events name facet values, never ranges of numbers.
const Operator = ":"

// Filter is a facet with one of its values, such as brand:Apple.
type Filter struct{ Facet, Value string }

// ParseFilter reads a filter as clients send it. Some encode the whole of it,
// colon included (brand%3AApple), some only its parts (discount:10%25), some
// nothing: so it is percent-decoded once and then split at the first colon. One
// that cannot be decoded to UTF-8 is taken as it stands. An error says that a
// facet or value is missing or that the filter is longer than 2,048 bytes.
func ParseFilter(s string) (Filter, error) {
	f, fault := parseFilter(s)
	if fault != "" {
		return Filter{}, errors.New("read a filter: " + fault)
	}
	return f, nil
}

// parseFilter answers with the message of the fault it found, if any.
func parseFilter(s string) (f Filter, fault string) {
	if strings.IndexByte(s, '%') >= 0 {
		if decoded, err := url.PathUnescape(s); err == nil && utf8.ValidString(decoded) {
			s = decoded
		}
	}
	facet, value, _ := strings.Cut(s, Operator)
	switch {
	case facet == "" || value == "":
		return Filter{}, msgFilterForm
	case len(s) > maxFilter:
		return Filter{}, msgFilterLong
	}
	return Filter{Facet: facet, Value: value}, ""
}
