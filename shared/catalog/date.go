package catalog

import (
	"strings"

	"github.com/go-json-experiment/json"
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

// Numbers returns the numbers that an attribute of a record holds: a number, a string that is
// one, or those of a list. attribute is a dotted path.
func Numbers(record []byte, attribute string) []float64 {
	value := lookUp(record, attribute)
	if value.Kind() != '[' {
		return appendNumber(nil, value)
	}
	var list []jsontext.Value
	if json.Unmarshal(value, &list) != nil {
		return nil
	}
	var all []float64
	for _, v := range list {
		all = appendNumber(all, v)
	}
	return all
}

func appendNumber(all []float64, value jsontext.Value) []float64 {
	text := string(value)
	if value.Kind() == '"' && json.Unmarshal(value, &text) != nil {
		return all
	}
	if n, ok := number(text); ok {
		return append(all, n)
	}
	return all
}
