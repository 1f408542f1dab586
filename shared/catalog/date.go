package catalog

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/event"
)

// Date returns the instant, in milliseconds since 1970, that an attribute of a
// record holds: a string or a number that event.ParseDate reads. attribute is a
// dotted path. ok is false if the record has no such attribute or its value is
// not a date.
func Date(record []byte, attribute string) (ms int64, ok bool) {
	ms, err := event.ParseDate(event.TimeText(lookUp(record, attribute)))
	return ms, err == nil
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
