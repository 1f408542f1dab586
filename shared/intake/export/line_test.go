package export_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/intake/export"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

var now = time.UnixMilli(1_800_000_000_000)

const raw = `{ "eventType":"view","eventName":"Seen","userToken":"ann",
	"objectIDs":["1","2"], "unread":"<&>\ud800"}`

// A line of a row of the log is one line, and becomes the row again.
func TestRowIsRestored(t *testing.T) {
	original := schema.Original{ReceivedAt: 1_700_000_000_000, Index: "shoes", UnknownObjects: 1, LeftOutObjects: 2, Event: json.RawMessage(raw)}
	counts := []affinity.Count{{Facet: "color", Value: "Red\n", N: 2}, {Facet: "ü", Value: "", N: 1}}
	line, err := export.NewEvent(affinity.Event{Time: 1_700_000_000_001, Counts: counts}, []byte("AAAAAAAAAA_"), original.Append(nil))
	must.Succeed(t, err)
	text, err := export.Encode(line)
	if err != nil || strings.Count(string(text), "\n") != 1 {
		t.Fatalf("%q, %v", text, err)
	}
	parsed, own, err := export.Parse(text)
	if !own || err != nil || parsed.Event == nil {
		t.Fatalf("%v, %v", own, err)
	}
	got, err := export.LogEvent(parsed.Event, now)
	must.Succeed(t, err)
	if diff := cmp.Diff(counts, got.Counts); diff != "" || got.User != "ann" || got.Time != 1_700_000_000_001 || got.ID != "AAAAAAAAAA_" ||
		got.Type != "view" || got.Name != "Seen" || got.Index != "shoes" || len(got.ObjectIDs) != 2 || got.Receipt != now.UnixMilli() {
		t.Errorf("restored %+v\n%s", got, diff)
	}
	o, err := schema.ParseOriginal(got.Original)
	if err != nil || o.UnknownObjects != 1 || o.LeftOutObjects != 2 || o.Index != "shoes" || o.ReceivedAt != now.UnixMilli() {
		t.Errorf("original %s, %v", got.Original, err)
	}
}

// A line without what the event itself says becomes the same row as the whole line.
func TestShortRowIsRestored(t *testing.T) {
	for name, c := range map[string]struct {
		index, event string
		counts       []affinity.Count
		short, named bool // whether filters and the index are left out
	}{
		"filters in another order": {"i", `{"index":"i","filters":["b:2","a:1"]}`, []affinity.Count{{Facet: "a", Value: "1", N: 1}, {Facet: "b", Value: "2", N: 1}}, true, true},
		"no index":                 {"i", `{"filters":["a%3A1"]}`, []affinity.Count{{Facet: "a", Value: "1", N: 1}}, true, false},
		"more than it names":       {"i", `{"index":"i","filters":["a:1"]}`, []affinity.Count{{Facet: "a", Value: "1", N: 1}, {Facet: "a", Value: "2", N: 1}}, false, true},
		"others":                   {"i", `{"index":"i","filters":["a:1"]}`, []affinity.Count{{Facet: "a", Value: "2", N: 1}}, false, true},
		"twice":                    {"i", `{"index":"i","filters":["a:1"]}`, []affinity.Count{{Facet: "a", Value: "1", N: 2}}, false, true},
		"objects":                  {"i", `{"index":"i","objectIDs":["1"]}`, nil, false, true},
		"another index":            {"j", `{"index":"i","objectIDs":["1"]}`, nil, false, false},
		"none":                     {"i", `{"index":"i","filters":["a:1"]}`, nil, false, true},
	} {
		sent := strings.Replace(c.event, "{", `{"eventType":"view","eventName":"Seen","userToken":"ann",`, 1)
		original := schema.Original{ReceivedAt: 1_700_000_000_000, Index: c.index, Event: json.RawMessage(sent)}
		line, err := export.NewEvent(affinity.Event{Time: 1_700_000_000_001, Counts: c.counts}, []byte("AAAAAAAAAA_"), original.Append(nil))
		must.Succeed(t, err)
		want, err := export.LogEvent(line.Event, now)
		must.Succeed(t, err)
		export.Short(line.Event)
		if line.Event.Filters == nil != c.short || line.Event.Index == "" != c.named {
			t.Errorf("%s: the short line has the index %q and the filters %v", name, line.Event.Index, line.Event.Filters)
		}
		text, err := export.Encode(line)
		must.Succeed(t, err)
		parsed, _, err := export.Parse(text)
		must.Succeed(t, err)
		got, err := export.LogEvent(parsed.Event, now)
		must.Succeed(t, err)
		byFacet := cmpopts.SortSlices(func(a, b affinity.Count) bool { return a.Facet < b.Facet })
		if diff := cmp.Diff(want, got, byFacet, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s, (-whole +short):\n%s", name, diff)
		}
	}
}

// An event with a member of that name is an event, whatever it is.
func TestOnlyOwnLinesAreParsed(t *testing.T) {
	for text, want := range map[string]bool{
		``: false, `[]`: false, `{`: false, `{}`: false, `{"export`: false, `{"eventType":"view"}`: false,
		`{"exportEnd":{"events":1,"faults":0},"eventType":"view"}`: false, `{"eventType":"view","exportEnd":1}`: false,
		`{"exportEnd":{"events":1,"faults":0}}`: true, ` { "exportEnd" : {} } `: true, `{"exportSomething":1}`: true,
	} {
		if _, own, _ := export.Parse([]byte(text)); own != want {
			t.Errorf("%s: %v, want %v", text, own, want)
		}
	}
}

func TestBadLinesAreRefused(t *testing.T) {
	line := func(old, with string) string {
		good := `{"exportedEvent":{"time":1700000000000,"id":"AAAAAAAAAAA","receivedAt":"2026-11-22T00:00:00Z","filters":[["a","b",1]],"event":{"eventType":"view","eventName":"Seen","userToken":"ann","index":"i","filters":["a:b"]}}}`
		if !strings.Contains(good, old) {
			t.Fatalf("%s is not in the line", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	for text, want := range map[string]string{
		line(`"AAAAAAAAAAA"`, `"A,B/../xyz_"`):                                    "11 characters of base64url",
		line(`"AAAAAAAAAAA"`, `""`):                                               "11 characters of base64url",
		line(`"time":1700000000000`, `"time":315532799999`):                       "must not be in the future",
		line(`"time":1700000000000`, `"time":99999999999999`):                     "must not be in the future",
		line(`"time":1700000000000`, `"time":1.5`):                                "cannot be read",
		line(`["a","b",1]`, `["a","b",0]`):                                        "Filter 1 of an exported event",
		line(`["a","b",1]`, `["a","b",21]`):                                       "Filter 1 of an exported event",
		line(`["a","b",1]`, `["","b",1]`):                                         "Filter 1 of an exported event",
		line(`["a","b",1]`, `["a","b",1],["a","b",1]`):                            "Filter 2 of an exported event",
		line(`["a","b",1]`, `["a","b"]`):                                          "cannot be read",
		line(`["a","b",1]`, `[1,"b",1]`):                                          "cannot be read",
		line(`["a","b",1]`, strings.Repeat(`["a","b",1],`, 40_000)+`["a","b",1]`): "at most 40000 filters",
		line(`"userToken":"ann"`, `"userToken":"a,b"`):                            "UserToken must contain",
		line(`"eventType":"view"`, `"eventType":"other"`):                         "EventType must be",
		line(`"eventType":"view"`, `"eventType":"instantsearch"`):                 "cannot be of type instantsearch",
		line(`"index":"i",`, ``):                                                  "index field is required",
		line(`"event":{`, `"unknownObjects":-1,"event":{`):                        "fewer than 0",
		line(`"event":{`, `"user":"bob","event":{`):                               "cannot be read",
	} {
		parsed, own, err := export.Parse([]byte(text))
		if own && err == nil && parsed.Event != nil {
			_, err = export.LogEvent(parsed.Event, now)
		}
		if !own || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200s: %v, want %q", text, err, want)
		}
	}
}
