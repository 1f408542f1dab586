package jobdb

import (
	"reflect"
	"strings"
)

// fields returns the fields of a struct by the names in their firestore tags,
// as the client library would store them. It flattens embedded structs, and
// leaves out fields tagged "-" and zero fields tagged omitempty. The library
// itself cannot store two structs, a job and its parameters, in one document.
// nil has no fields.
func fields(v any) map[string]any {
	all := map[string]any{}
	if v == nil {
		return all
	}
	value := reflect.ValueOf(v)
	for i := range value.NumField() {
		field := value.Type().Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("firestore"), ",")
		switch {
		case name == "-", option == "omitempty" && value.Field(i).IsZero():
		case field.Anonymous && name == "":
			for name, value := range fields(value.Field(i).Interface()) {
				all[name] = value
			}
		default:
			all[name] = value.Field(i).Interface()
		}
	}
	return all
}
