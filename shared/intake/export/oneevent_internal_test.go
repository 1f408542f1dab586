package export

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// A line of an event is read as any other line is, whatever members it has and in whatever order. All that
// is no such line is left to the reader of the others.
func TestOneEventReadsAsOthers(t *testing.T) {
	read := func(text string) (one, any bool) {
		t.Helper()
		d := jsontext.NewDecoder(strings.NewReader(text), asSent)
		got := oneEvent(d, []byte(text))
		want, _, err := parse([]byte(text))
		if got != nil {
			if diff := cmp.Diff(want.Event, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
			}
		}
		return got != nil, err == nil && want.Event != nil
	}
	for _, text := range []string{
		`{"time":1,"id":"AAAAAAAAAAA","receivedAt":"2026-11-21T10:00:00.120Z","event":{"a":[1,{"b":"}"}]}}`,
		` { "event" : { "a" : "é\ud800" } , "time" : 1795255200000 , "id" : "\u0041" } `,
		`{"index":"i","unknownObjects":1,"leftOutObjects":2,"unresolved":true,"call":true,"filters":[["a","b\"",2],["c","",1]],"event":{}}`,
		`{"filters":[],"event":{"a":1},"event":{"a":2},"time":1,"time":2}`, `{"filters":null,"time":null,"event":{}}`, `{}`,
	} {
		if one, all := read(`{"exportedEvent":` + text + `}`); !one || !all {
			t.Errorf("%s is an event: %v, %v", text, one, all)
		}
	}
	for _, text := range []string{
		``, `{`, `{}`, `[]`, `null`, `{"exportedEvent":null}`, `{"exportedEvent":1}`, `{"exportedEvent":{}`, `{"exportedEvent":{}}}`,
		`{"exportedEvent":{},"eventType":"view"}`, `{"exportedEvent":{"time":1.5}}`, `{"exportedEvent":{"time":"1"}}`, `{"exportedEvent":{"more":1}}`,
		`{"exportedEvent":{"filters":[["a","b"]]}}`, `{"exportedEvent":{"filters":[["a","b",1.5]]}}`, `{"exportedEvent":{"filters":[["a","b",1,1]]}}`,
		`{"exportedEvent":{"event":}}`, `{"exportedEvent":{"event":{}}`, `{"exportedEvent":{"event":{}}} {}`, `{"exportEnd":{}}`, `{"exportedEvent":{"receivedAt":"now"}}`,
	} {
		if one, _ := read(text); one {
			t.Errorf("%s is read as an event", text)
		}
	}
}
