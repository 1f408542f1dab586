package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// path leads from an object of JSON to values in it. Its text has the names of members with
// points between them, such as user.id. A member may be a list: the path then leads through
// all its elements, or through those that a bracket chooses, such as
// event_params[key=term].value.string_value. An empty bracket, as in items[].item_id,
// chooses all. A member of the object that has the whole text as its name is meant before
// all else: pandas writes members such as user.id.
type path struct {
	text  string
	steps []step
}

// step is a member of an object, and which elements count if it is a list: those whose
// member key is the text is; all if key is "".
type step struct{ name, key, is string }

// paths are paths by what they are for.
type paths map[string]path

// parsePaths parses paths. The error is a columnsError.
func parsePaths(texts map[string]string) (paths, error) {
	all := paths{}
	for what, text := range texts {
		p, ok := parsePath(text)
		if !ok {
			return nil, columnsError(fmt.Sprintf("--map %s=%s: a path is written as in items[].item_id, or as in "+
				"event_params[key=term].value.string_value", what, text))
		}
		all[what] = p
	}
	return all, nil
}

func parsePath(text string) (path, bool) {
	p := path{text: text}
	for {
		var s step
		end := strings.IndexAny(text, ".[")
		if end < 0 {
			end = len(text)
		}
		s.name, text = text[:end], text[end:]
		if inner, bracket := strings.CutPrefix(text, "["); bracket {
			chosen, rest, closed := strings.Cut(inner, "]")
			key, is, equal := strings.Cut(chosen, "=")
			if !closed || equal == (key == "") {
				return p, false
			}
			s.key, s.is, text = key, is, rest
		}
		if s.name == "" {
			return p, false
		}
		p.steps = append(p.steps, s)
		rest, more := strings.CutPrefix(text, ".")
		if !more {
			return p, text == ""
		}
		text = rest
	}
}

// of returns the values to which a path leads. Nulls are none.
func (p path) of(object members) []json.RawMessage {
	if value, ok := object[p.text]; ok {
		return within(nil, []step{{name: p.text}}, value, true)
	}
	if value, ok := object[p.steps[0].name]; ok {
		return within(nil, p.steps, value, p.steps[0].key == "")
	}
	return nil
}

// within adds the values to which steps lead from the value of the first one, which is
// chosen unless the step chooses among elements.
func within(found []json.RawMessage, p []step, value json.RawMessage, chosen bool) []json.RawMessage {
	switch value[0] { // of a RawMessage it is no white space
	case 'n':
		return found
	case '[':
		var elements []json.RawMessage
		_ = json.Unmarshal(value, &elements) // it has been read once
		for _, element := range elements {
			found = within(found, p, element, p[0].key == "" || p[0].chooses(element))
		}
		return found
	}
	if !chosen {
		return found
	}
	if len(p) == 1 {
		return append(found, value)
	}
	var object members
	if json.Unmarshal(value, &object) != nil {
		return found
	}
	if next, ok := object[p[1].name]; ok {
		return within(found, p[1:], next, p[1].key == "")
	}
	return found
}

// chooses reports whether an element counts.
func (s step) chooses(element json.RawMessage) bool {
	var object members
	if json.Unmarshal(element, &object) != nil {
		return false
	}
	text, ok := idText(object[s.key])
	return ok && text == s.is
}

// idText returns the id that a value of JSON is: the content of a string, or a number.
func idText(value json.RawMessage) (string, bool) {
	if len(value) == 0 {
		return "", false
	}
	switch first := value[0]; {
	case first == '"':
		var text string
		return text, json.Unmarshal(value, &text) == nil
	case first == '-' || first >= '0' && first <= '9':
		return wholeID(string(value)), true
	}
	return "", false
}

// wholeID returns the text of a number without a fraction of zeros: a program that knows no
// integers with gaps, such as pandas, writes the id 71 as 71.0.
func wholeID(text string) string {
	whole, zeros, point := strings.Cut(text, ".")
	if point && whole != "" && zeros != "" && strings.Trim(whole, "0123456789") == "" && strings.Trim(zeros, "0") == "" {
		return whole
	}
	return text
}

// valueOf returns the JSON of an object from the value of a member on, nil if it does not
// find the member. name has quotes. It is quick and may be wrong: the name may stand in
// another text.
func valueOf(object []byte, name string) []byte {
	at := bytes.Index(object, []byte(name))
	if at < 0 {
		return nil
	}
	value, found := bytes.CutPrefix(bytes.TrimLeft(object[at+len(name):], " \t"), []byte(":"))
	if !found {
		return nil
	}
	return bytes.TrimLeft(value, " \t")
}
