package catalog

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// dateLayouts are the forms of a date that is a string. Without a zone it is in
// UTC. A fraction of a second may follow the seconds.
var dateLayouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"}

const (
	// fromMillis is the number from which a date counts milliseconds since 1970,
	// and not seconds: 1973 in milliseconds, the year 5138 in seconds.
	fromMillis = 1e11
	// maxMillis is the end of the year 9999.
	maxMillis = 253_402_300_799_999
)

// Date returns the instant, in milliseconds since 1970, that an attribute of a
// record holds. attribute is a dotted path. The value is a string such as
// 2026-11-20, 2026-11-20T10:00:00 or any RFC 3339 time, or a number of seconds
// or of milliseconds since 1970, as a number or a string. ok is false if the
// record has no such attribute or its value is not a date.
func Date(record []byte, attribute string) (ms int64, ok bool) {
	value := lookUp(record, attribute)
	switch value.Kind() {
	case jsontext.KindNumber:
		return sinceEpoch(string(value))
	case jsontext.KindString:
		text, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return 0, false
		}
		for _, layout := range dateLayouts {
			if t, err := time.Parse(layout, string(text)); err == nil {
				return t.UnixMilli(), true
			}
		}
		return sinceEpoch(string(text))
	}
	return 0, false
}

// lookUp returns the value at a path of a JSON object, or nil. A key may contain
// dots.
func lookUp(object jsontext.Value, path string) jsontext.Value {
	all, err := members(object)
	if err != nil {
		return nil
	}
	if value := find(all, path); value != nil {
		return value
	}
	for _, m := range all {
		if rest, ok := strings.CutPrefix(path, m.name+"."); ok {
			if value := lookUp(m.value, rest); value != nil {
				return value
			}
		}
	}
	return nil
}

func sinceEpoch(number string) (int64, bool) {
	n, err := strconv.ParseFloat(number, 64)
	if err == nil && math.Abs(n) < fromMillis {
		n *= 1000
	}
	if err != nil || !(math.Abs(n) <= maxMillis) {
		return 0, false
	}
	return int64(n), true
}
