package bus

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

var noon = time.UnixMilli(1_700_000_000_000)

// logged is an event of the log, received at noon. Its time and id do not follow
// from its JSON.
func logged(t *testing.T, n int, raw string) Logged {
	t.Helper()
	e, err := event.Decode([]byte(raw), event.Rules{Now: noon, Index: "shop"})
	must.Succeed(t, err)
	return Logged{User: fmt.Sprint("u", n%3), Time: int64(n), ID: fmt.Sprint("id", n), ReceivedAt: noon.UnixMilli(), Event: e}
}

func reenriched(t *testing.T, n int) Message {
	t.Helper()
	var events []Logged
	objects := Objects{}
	for i := range n {
		raw := fmt.Sprintf("{\"eventType\":\"click\",\n \"eventName\":\"<Clicked>\",\"userToken\":\"u\",\"objectIDs\":[\"object%d\",\"never\"]}", i)
		events = append(events, logged(t, i, raw))
		objects.Put("shop", fmt.Sprint("object", i), []Filter{{"color", fmt.Sprint("c", i)}})
	}
	objects.Put("shop", "no event's", []Filter{{"color", "Red"}})
	m, err := NewReenriched("demo", noon, events, Resolution{Objects: objects})
	must.Succeed(t, err)
	return m
}

// describe returns the events of a message in a form that can be compared.
func describe(t *testing.T, m Message) []string {
	t.Helper()
	events, err := m.Logged()
	must.Succeed(t, err)
	var all []string
	for _, l := range events {
		objects, err := json.Marshal(m.Objects[l.Event.Index][l.Event.ObjectIDs[0]])
		must.Succeed(t, err)
		all = append(all, fmt.Sprint(l.User, l.Time, l.ID, l.ReceivedAt, l.Event.Index, string(l.Event.Raw), string(objects)))
	}
	return all
}

func TestReenrichedEventsKeepTheirPlace(t *testing.T) {
	m := reenriched(t, 5)
	if _, kept := m.Objects["shop"]["no event's"]; kept {
		t.Error("the message holds an object that no event names")
	}
	got := sent(t, m)
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
	want := "u11id11700000000000shop{\"eventType\":\"click\",  \"eventName\":\"<Clicked>\",\"userToken\":\"u\",\"objectIDs\":[\"object1\",\"never\"]}" + `[["color","c1"]]`
	if all := describe(t, got); len(all) != 5 || all[1] != want {
		t.Errorf("got %q, want %q second of 5", all, want)
	}
}

func TestReenrichedPartsKeepEvents(t *testing.T) {
	m := reenriched(t, 7)
	wantParts(t, m, describe, func(p Message) {
		if p.Kind != Reenriched || !p.Resolved || p.ReceivedAt != m.ReceivedAt {
			t.Errorf("a part has another kind or time: %+v", p)
		}
	})
}

// An accepted event may be nested to the limit, and is decoded again.
func TestDeepEventsAreReenriched(t *testing.T) {
	raw := `{"eventType":"view","eventName":"Seen","userToken":"u","objectIDs":["1"],"x":` + strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990) + `}`
	m, err := NewReenriched("demo", noon, []Logged{logged(t, 1, raw)}, Resolution{Objects: Objects{"shop": {"1": {}}}})
	must.Succeed(t, err)
	if all := describe(t, m); len(all) != 1 || !strings.Contains(all[0], raw) {
		t.Errorf("got %.100q", all)
	}
}

func TestDamagedReenrichedMessages(t *testing.T) {
	const (
		head = `{"kind":"reenriched","app":"demo","receivedAt":1,"resolved":true}` + "\n"
		raw  = `{"eventType":"view","eventName":"n","index":"i","userToken":"u","objectIDs":["1"]}`
	)
	frame := func(user string, ms int, id string, received, size int) string {
		return fmt.Sprintf(`{"user":%q,"time":%d,"id":%q,"receivedAt":%d,"index":"i","size":%d}`, user, ms, id, received, size) + "\n" + raw + "\n"
	}
	whole := frame("u", 1, "a", 1, len(raw))
	for name, body := range map[string]string{
		"nothing":               "",
		"no JSON":               "\n",
		"no event":              strings.SplitAfter(whole, "\n")[0],
		"an event cut off":      whole[:len(whole)-2],
		"no newline at the end": whole[:len(whole)-1],
		"a second cut off":      whole + `{"user"`,
		"a size too small":      frame("u", 1, "a", 1, len(raw)-1),
		"a size too large":      frame("u", 1, "a", 1, len(raw)+1),
		"a negative size":       frame("u", 1, "a", 1, -1),
		"no user":               frame("", 1, "a", 1, len(raw)),
		"a user of two":         frame("a,b", 1, "a", 1, len(raw)),
		"a negative time":       frame("u", -1, "a", 1, len(raw)),
		"no id":                 frame("u", 1, "", 1, len(raw)),
		"no time of receipt":    frame("u", 1, "a", 0, len(raw)),
		"another event":         strings.Replace(whole, `"view"`, `"seen"`, 1),
	} {
		m := parsed(t, []byte(head+body))
		if all, err := m.Logged(); err == nil {
			t.Errorf("%s: decoded to %+v", name, all)
		}
	}
	if m, err := DecodeMessage([]byte(head + whole)); err != nil || len(describe(t, m)) != 1 {
		t.Errorf("the undamaged message does not decode: %v", err)
	}
	if _, err := DecodeMessage([]byte(strings.Replace(head, "reenriched", "future", 1) + whole)); err == nil || !strings.Contains(err.Error(), `"future"`) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// A version without kinds must not take the message for an accepted one. It buries
// it, so that it can be replayed.
func TestReenrichedMessagesAreNotAccepted(t *testing.T) {
	if events, err := reenriched(t, 2).Events(); err == nil {
		t.Errorf("read as accepted events: %+v", events)
	}
}

func FuzzLogged(f *testing.F) {
	const raw = `{"eventType":"view","eventName":"n","userToken":"u","objectIDs":["1"]}`
	f.Add([]byte(fmt.Sprintf(`{"user":"u","time":1,"id":"a","receivedAt":1,"index":"i","size":%d}`, len(raw)) + "\n" + raw + "\n"))
	f.Add([]byte("{}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		m := Message{Kind: Reenriched, App: "a", ReceivedAt: 1, Resolved: true, Body: body}
		events, err := m.Logged()
		if err != nil {
			return
		}
		m, err = NewReenriched("a", time.UnixMilli(1), events, Resolution{})
		if err != nil {
			t.Fatalf("decoded events do not encode: %v", err)
		}
		again, err := m.Logged()
		must.Succeed(t, err)
		if diff := cmp.Diff(events, again, cmp.AllowUnexported(event.Event{}), cmp.Comparer(func(a, b event.Event) bool { return a.ID() == b.ID() && string(a.Raw) == string(b.Raw) })); diff != "" {
			t.Errorf("events differ after decoding:\n%s", diff)
		}
	})
}
