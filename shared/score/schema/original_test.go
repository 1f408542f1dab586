package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/schema"
)

const sentEvent = `{"eventType":"view","eventName":"n","index":"i","userToken":"u","objectIDs":["1"]}`

// The form of the value is stored: it never changes.
func TestOriginalValue(t *testing.T) {
	for want, o := range map[string]schema.Original{
		`{"receivedAt":1700000000000,"index":"i","event":` + sentEvent + `}`: {
			ReceivedAt: 1_700_000_000_000, Index: "i", Event: []byte(sentEvent),
		},
		`{"receivedAt":7,"index":"a\"b\u003c","unknownObjects":2,"event":{ "more" : "é<&" }}`: {
			ReceivedAt: 7, Index: `a"b<`, UnknownObjects: 2, Event: []byte(`{ "more" : "é<&" }`),
		},
		`{"receivedAt":7,"index":"i","unknownObjects":1,"leftOutObjects":3,"event":{}}`: {
			ReceivedAt: 7, Index: "i", UnknownObjects: 1, LeftOutObjects: 3, Event: []byte(`{}`),
		},
	} {
		got := o.Append(nil)
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		parsed, err := schema.ParseOriginal(got)
		if diff := cmp.Diff(o, parsed); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", got, err, diff)
		}
	}
}

func TestOriginalDecodes(t *testing.T) {
	o := schema.Original{ReceivedAt: 7, Index: "i", Event: []byte(sentEvent)}
	e, err := o.Decode()
	if err != nil || e.Type != event.View || e.Time != 7 || e.Index != "i" || e.UserToken != "u" {
		t.Errorf("got %+v, error %v", e, err)
	}
}

func TestDamagedOriginals(t *testing.T) {
	for _, b := range []string{``, `{`, `null`, `[]`, `{"receivedAt":1,"index":"i"}`, `{"index":"i","event":` + sentEvent + `}`,
		`{"receivedAt":0,"event":` + sentEvent + `}`, `{"receivedAt":1,"unknownObjects":-1,"event":` + sentEvent + `}`,
		`{"receivedAt":1,"unknownObjects":"1","event":` + sentEvent + `}`} {
		if o, err := schema.ParseOriginal([]byte(b)); err == nil {
			t.Errorf("%s was read as %+v", b, o)
		}
	}
	for _, e := range []string{`null`, `{}`, `{"eventType":"seen"}`} {
		o, err := schema.ParseOriginal([]byte(`{"receivedAt":1,"index":"i","unknownObjects":1,"event":` + e + `}`))
		if err != nil {
			continue
		}
		if decoded, err := o.Decode(); err == nil {
			t.Errorf("%s was decoded to %+v", e, decoded)
		}
	}
}

// ParseOriginal returns the readable parts of a damaged original.
func TestDamagedOriginalKeepsItsParts(t *testing.T) {
	o, err := schema.ParseOriginal([]byte(`{"index":"i","unknownObjects":2,"event":` + sentEvent + `}`))
	if err == nil || o.Index != "i" || o.UnknownObjects != 2 {
		t.Errorf("got %+v, error %v; want an error, the index and the number of unknown objects", o, err)
	}
}
