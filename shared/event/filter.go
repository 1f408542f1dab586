package event

import (
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Operator separates the facet and the value of a filter. It is the only
// operator so far: events name facet values, not ranges of numbers.
const Operator = ":"

// Filter is a facet with one of its values, such as brand:Apple.
type Filter struct{ Facet, Value string }

// ParseFilter parses a filter as clients send it. Some clients percent-encode
// the whole filter with its colon (brand%3AApple), some only its parts
// (discount:10%25), and some nothing. So ParseFilter decodes the filter once
// and then splits it at the first colon. It takes a filter that does not decode
// to UTF-8 as it is. The error says that the facet or the value is missing, or
// that the filter is longer than 2,048 bytes.
func ParseFilter(s string) (Filter, error) {
	f, fault := parseFilter(s)
	if fault != "" {
		return Filter{}, errors.New("read a filter: " + fault)
	}
	return f, nil
}

// parseFilter returns the filter, or the message of its fault.
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
