package importer

import "testing"

func TestObjectFault(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{`{"objectID":"1","name":"Shoe"}`, ""},
		{`{"objectID":1}`, ""},
		{`{"name":"Shoe"}`, "objectID is missing"},
		{`{"objectID":null}`, "objectID is missing"}, // the engine would give it an id
		{`{"OBJECTID":"1"}`, "objectID is missing"},  // names are case-sensitive
		{`[{"objectID":"1"}]`, "a JSON array: give one object per line (jq -c '.[]' converts it)"},
	} {
		if got := objectFault(line{text: []byte(test.line)}); got != test.want {
			t.Errorf("%s: %q, want %q", test.line, got, test.want)
		}
	}
}
