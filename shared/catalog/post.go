package catalog

import "github.com/go-json-experiment/json/jsontext"

// postAttribute is the attribute of a record that holds a post as WordPress gave it:
// its JSON, as a string.
const postAttribute = "wordpress"

// Post returns the post of a record, byte for byte as WordPress gave it, or nil if the
// record has none that is a JSON object.
func Post(record []byte) []byte {
	value := lookUp(record, postAttribute)
	if value.Kind() != jsontext.KindString {
		return nil
	}
	post, err := jsontext.AppendUnquote(nil, value)
	if err != nil || jsontext.Value(post).Kind() != jsontext.KindBeginObject ||
		!jsontext.Value(post).IsValid(lenient, jsontext.AllowDuplicateNames(true)) {
		return nil
	}
	return post
}
