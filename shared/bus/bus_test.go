package bus_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/bus"
)

func message(n int) bus.Message {
	var events []string
	objects := bus.Objects{}
	for i := range n {
		id := fmt.Sprint("object", i)
		events = append(events, fmt.Sprintf(`{"eventType":"click","eventName":"Clicked","index":"shop","userToken":"u%d","objectIDs":[%q]}`, i%3, id))
		objects.Put("shop", id, []bus.Filter{{"color", fmt.Sprint("c", i)}})
	}
	return bus.Message{App: "demo", ReceivedAt: 1_700_000_000_000, Request: 1<<63 + 7, Resolved: true, Objects: objects,
		Body: json.RawMessage(`{"events":[` + strings.Join(events, ",") + `]}`)}
}

func ids(t *testing.T, m bus.Message) []string {
	t.Helper()
	events, err := m.Events()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i := range events {
		all = append(all, events[i].ID())
	}
	return all
}

func TestEveryDeliveryDecodesToTheSame(t *testing.T) {
	m := message(5)
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := bus.DecodeMessage(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
	if diff := cmp.Diff(ids(t, m), ids(t, got)); diff != "" {
		t.Errorf("ids (-sent +received):\n%s", diff)
	}
}

func TestSplitKeepsEventsAndTheirObjects(t *testing.T) {
	m := message(7)
	first, second, err := m.Split()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ids(t, m), append(ids(t, first), ids(t, second)...)); diff != "" {
		t.Errorf("ids (-whole +parts):\n%s", diff)
	}
	if n := len(first.Objects["shop"]) + len(second.Objects["shop"]); n != 7 {
		t.Errorf("parts name %d objects, want each event's own", n)
	}
	if _, _, err := message(1).Split(); err == nil {
		t.Error("one event was split")
	}
}

func TestDamagedMessagesAreTold(t *testing.T) {
	for _, data := range []string{"", "{", "null", `{"app":"demo"}`, `{"app":"demo","receivedAt":1}`, `[]`, "\x00\xff"} {
		if m, err := bus.DecodeMessage([]byte(data)); err == nil {
			t.Errorf("%q decoded to %+v", data, m)
		}
	}
	m := message(1)
	m.Body = json.RawMessage(`{"events":[{}]}`)
	if _, err := m.Events(); err == nil {
		t.Error("a body of invalid events decoded")
	}
}

func TestDecodePush(t *testing.T) {
	p, err := bus.DecodePush([]byte(`{"message":{"data":"aGk=","attributes":{"app":"demo"},"messageId":"7","message_id":"7",
		"publishTime":"2026-11-20T10:00:00.5Z","orderingKey":""},"subscription":"projects/p/subscriptions/s","deliveryAttempt":3}`))
	if err != nil {
		t.Fatal(err)
	}
	if string(p.Message.Data) != "hi" || p.DeliveryAttempt != 3 || p.Message.Attributes["app"] != "demo" {
		t.Errorf("%+v", p)
	}
	for _, body := range []string{"", "[]", `{"message":{}}`, `{"message":{"messageId":"1","data":"!"}}`} {
		if _, err := bus.DecodePush([]byte(body)); err == nil {
			t.Errorf("%q decoded", body)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	data, err := message(2).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"app":"a","receivedAt":1,"body":{"events":[null]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := bus.DecodeMessage(data)
		if err != nil {
			return
		}
		if _, err := m.Events(); err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatalf("a message that decodes does not encode: %v", err)
		}
		got, err := bus.DecodeMessage(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ids(t, m), ids(t, got)); diff != "" {
			t.Errorf("ids change on the way:\n%s", diff)
		}
	})
}
