package event_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

// IDs stand in row keys: a change of any of these loses stored events.
func TestIDsNeverChange(t *testing.T) {
	tests := []struct {
		name, json, id string
	}{
		{"objectIDs", `{"eventType":"click","eventName":"Product Clicked","index":"shop","userToken":"u1","timestamp":1795175000000,"objectIDs":["a","b"]}`, "Sit0O0_--pk"},
		{"filters", `{"eventType":"view","eventName":"Viewed","index":"shop","userToken":"u1","timestamp":1795175000000,"filters":["brand:Acme","size%3A10%25"]}`, "tldHVu4qyqM"},
		{"time of receipt", `{"eventType":"view","eventName":"Viewed","index":"shop","userToken":"u1","objectIDs":["a"]}`, "YwxfgnL3mhY"},
		{"after a search", `{"eventType":"click","eventName":"Clicked","index":"shop","userToken":"u1","authenticatedUserToken":"me","timestamp":1795175000000,"objectIDs":["a","b"],"positions":[3,4],"queryID":"43b15df305339e827f0ac0bdc5ebcaa7"}`, "Am3K99yr2z8"},
		{"purchase", `{"eventType":"conversion","eventSubtype":"purchase","eventName":"Purchased","index":"shop","userToken":"u1","timestamp":1795175000000,"objectIDs":["a","b"],"objectData":[{"price":9.5,"quantity":2,"discount":"30%","queryID":"43b15df305339e827f0ac0bdc5ebcaa7"},{}],"value":"19","currency":"USD"}`, "TUj_LlVcdFI"},
		{"an id of the client", `{"eventType":"view","eventName":"Viewed","index":"shop","userToken":"u1","timestamp":1795175000000,"filters":["brand:Acme"],"eventId":"order-7"}`, "JtvO57b-Jjw"},
		{"telemetry", `{"eventType":"instantsearch","eventName":"Connected","userToken":"u1","agentID":"agent","timestamp":0}`, "7yAu-1EmN2c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := event.Decode([]byte(tt.json), event.Rules{Now: receipt, Ordinal: 7})
			must.Succeed(t, err)
			if got := e.ID(); got != tt.id {
				t.Errorf("ID is %s, stored as %s", got, tt.id)
			}
		})
	}
}

// content is a valid event's content: a tree of object, []any, string, int64,
// number and nil.
type (
	object map[string]any
	number string
)

const queryID = "43b15df305339e827f0ac0bdc5ebcaa7"

var (
	token = rapid.StringMatching(`[a-zA-Z0-9_=/+-]{1,129}`)
	text  = rapid.StringN(1, 12, 512)
)

func genContent() *rapid.Generator[object] {
	return rapid.Custom(func(t *rapid.T) object {
		o := object{
			"eventName": rapid.StringMatching(`[ -~]{1,64}`).Draw(t, "name"),
			"index":     text.Draw(t, "index"), "userToken": token.Draw(t, "token"),
		}
		if rapid.Bool().Draw(t, "timed") {
			o["timestamp"] = receipt.UnixMilli() - rapid.Int64Range(0, 1e9).Draw(t, "age")
		}
		if rapid.Bool().Draw(t, "authenticated") {
			o["authenticatedUserToken"] = token.Draw(t, "authenticated token")
		}
		if rapid.Bool().Draw(t, "identified") {
			o["eventId"] = "id " + text.Draw(t, "event id")
		}
		switch rapid.SampledFrom([]string{"view", "click", "purchase"}).Draw(t, "kind") {
		case "view":
			o["eventType"] = "view"
			o["filters"] = []any{"brand:" + encodeURIComponent(text.Draw(t, "value")), "colour:red"}
		case "click":
			o["eventType"] = "click"
			o["objectIDs"], o["queryID"] = genObjectIDs(t), queryID
			o["positions"] = []any{rapid.Int64Range(1, 99).Draw(t, "position"), int64(2)}
		case "purchase":
			o["eventType"], o["eventSubtype"] = "conversion", "purchase"
			o["objectIDs"] = genObjectIDs(t)
			o["objectData"] = []any{object{"price": number("9.5"), "quantity": int64(2), "queryID": queryID}, object{}}
			o["value"], o["currency"] = "19", "EUR"
		}
		return o
	})
}

func genObjectIDs(t *rapid.T) []any {
	ids := rapid.SliceOfNDistinct(text, 2, 2, rapid.ID).Draw(t, "objectIDs")
	return []any{ids[0], ids[1]}
}

// write renders content as JSON in any of the ways there are.
func write(t *rapid.T, v any) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space") }
	switch v := v.(type) {
	case object:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		var members []string
		for _, name := range rapid.Permutation(names).Draw(t, "order") {
			members = append(members, space()+write(t, name)+space()+":"+space()+write(t, v[name])+space())
		}
		return "{" + strings.Join(members, ",") + "}"
	case []any:
		var elements []string
		for _, element := range v {
			elements = append(elements, space()+write(t, element)+space())
		}
		return "[" + strings.Join(elements, ",") + "]"
	case string:
		return writeString(t, v)
	case int64:
		return strconv.FormatInt(v, 10) + rapid.SampledFrom([]string{"", "", ".0", "e0", "0E-1"}).Draw(t, "form")
	case number:
		return string(v) + rapid.SampledFrom([]string{"", "0", "e0"}).Draw(t, "form")
	default:
		return "null"
	}
}

func writeString(t *rapid.T, s string) string {
	var b strings.Builder
	b.WriteByte('"')
	escapes := rapid.Bool().Draw(t, "escapes")
	for _, r := range s {
		if !escapes && r >= ' ' && r != '"' && r != '\\' {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			hex := strconv.FormatUint(uint64(unit), 16)
			b.WriteString(`\u` + strings.Repeat("0", 4-len(hex)) + hex)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func idOf(t *rapid.T, raw string) string {
	e, err := event.Decode([]byte(raw), event.Rules{Now: receipt, MaxAge: event.MaxEventAge})
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return e.ID()
}

func TestIDIgnoresJSONForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := genContent().Draw(t, "content")
		first := write(t, content)
		for _, name := range []string{"positions", "filters", "objectIDs", "queryID", "value", "agentID", "eventId", "timestamp", "unknown"} {
			if _, sent := content[name]; !sent {
				content[name] = nil
			}
		}
		content["unknown"] = object{"eventName": "x", "list": []any{nil, "x"}}
		second := write(t, content)
		if a, b := idOf(t, first), idOf(t, second); a != b {
			t.Errorf("the same event has two IDs:\n%s %s\n%s %s", a, first, b, second)
		}
	})
}

// changed gives a valid value other than v to the field.
func changed(field string, v any) any {
	switch v := v.(type) {
	case []any:
		if field == "objectData" {
			return []any{object{"price": number("9.5"), "quantity": int64(3), "queryID": queryID}, object{}}
		}
		return []any{v[1], v[0]}
	case int64:
		return v - 1
	}
	switch s := v.(string); field {
	case "eventType":
		return "instantsearch"
	case "eventSubtype":
		return "addToCart"
	case "queryID":
		return "message_" + queryID
	case "currency":
		return "GBP"
	case "value":
		return int64(19) // a number is another value than the text of it
	default:
		runes := []rune(s)
		if last := &runes[len(runes)-1]; *last == 'x' {
			*last = 'y'
		} else {
			*last = 'x'
		}
		return string(runes)
	}
}

func TestIDChangesWithTheContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := genContent().Draw(t, "content")
		first := write(t, content)
		names := make([]string, 0, len(content))
		for name := range content {
			names = append(names, name)
		}
		slices.Sort(names)
		field := rapid.SampledFrom(names).Draw(t, "field")
		if field == "eventType" && content["eventType"] != "view" {
			field = "eventName" // other types are bound to their fields
		}
		before := content[field]
		content[field] = changed(field, before)
		if list, ok := before.([]any); ok && field != "objectData" && list[0] == list[1] {
			t.Skip("the two elements are equal")
		}
		second := write(t, content)
		if id := idOf(t, first); id == idOf(t, second) {
			t.Errorf("two events share the ID %s:\n%s\n%s", id, first, second)
		}
	})
}

func TestIDOfEqualEventsInOneRequest(t *testing.T) {
	untimed := goodEvent
	timed := strings.TrimSuffix(goodEvent, "}") + `,"timestamp":1795175000000}`
	future := strings.TrimSuffix(goodEvent, "}") + `,"timestamp":1895175000000}`
	body := `{"events":[` + strings.Join([]string{untimed, untimed, future, timed, timed}, ",") + `]}`
	events, err := event.DecodeBatch([]byte(body), event.Rules{Now: receipt})
	must.Succeed(t, err)
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].ID()
	}
	if ids[3] != ids[4] {
		t.Error("a retry with the client's timestamp has another ID")
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 4 {
		t.Errorf("%d distinct IDs, want 4", n)
	}
	second, err := event.Decode([]byte(untimed), event.Rules{Now: receipt, Ordinal: 1})
	must.Succeed(t, err)
	if second.ID() != events[1].ID() {
		t.Error("an event decoded alone under its ordinal has another ID than in its batch")
	}
	other, err := event.Decode([]byte(untimed), event.Rules{Now: receipt, Ordinal: 1, Request: 2})
	must.Succeed(t, err)
	if second.ID() == other.ID() {
		t.Error("equal events of two requests within a millisecond have one ID")
	}
}
