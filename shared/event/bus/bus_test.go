package bus

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

func message(n int) Message {
	var events []string
	objects := Objects{}
	for i := range n {
		id := fmt.Sprint("object", i)
		events = append(events, fmt.Sprintf(`{"eventType":"click","eventName":"Clicked","index":"shop","userToken":"u%d","objectIDs":[%q]}`, i%3, id))
		objects.Put("shop", id, []Filter{{"color", fmt.Sprint("c", i)}})
	}
	return Message{App: "demo", ReceivedAt: 1_700_000_000_000, Request: 1<<63 + 7, Resolved: true, Objects: objects,
		Body: []byte(`{"events":[` + strings.Join(events, ",") + `]}`)}
}

func ids(t *testing.T, m Message) []string {
	t.Helper()
	events, err := m.Events()
	must.Succeed(t, err)
	var all []string
	for i := range events {
		all = append(all, events[i].ID())
	}
	return all
}

func encoded(t testing.TB, m Message) []byte {
	t.Helper()
	data, err := m.Encode()
	must.Succeed(t, err)
	return data
}

func parsed(t testing.TB, data []byte) Message {
	t.Helper()
	m, err := DecodeMessage(data)
	must.Succeed(t, err)
	return m
}

// sent returns a message as its receiver decodes it.
func sent(t testing.TB, m Message) Message {
	t.Helper()
	return parsed(t, encoded(t, m))
}

func TestDeliveriesDecodeEqually(t *testing.T) {
	m := message(5)
	got := sent(t, m)
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
	if diff := cmp.Diff(ids(t, m), ids(t, got)); diff != "" {
		t.Errorf("ids (-sent +received):\n%s", diff)
	}
}

func partsOf(t *testing.T, m Message, limit int) [][]byte {
	t.Helper()
	var all [][]byte
	for data, err := range m.Parts(limit) {
		must.Succeed(t, err)
		all = append(all, data)
	}
	return all
}

// wantTooLarge checks the error of a message none of whose events fits.
func wantTooLarge(t *testing.T, m Message) {
	t.Helper()
	calls := 0
	for data, err := range m.Parts(10) {
		if calls++; data != nil || !errors.As(err, &TooLarge{}) {
			t.Errorf("a part of %d bytes, %v; want no part", len(data), err)
		}
	}
	if calls != 1 {
		t.Errorf("%d parts, want one error", calls)
	}
}

// wantParts checks that the parts of a message of seven events hold the same events, each with
// its own object, in at most half as many bytes. It checks each part, too.
func wantParts(t *testing.T, m Message, events func(*testing.T, Message) []string, check func(part Message)) {
	t.Helper()
	most := len(encoded(t, m)) / 2
	parts := partsOf(t, m, most)
	var got []string
	objects := 0
	for _, data := range parts {
		if len(data) > most {
			t.Errorf("a part has %d bytes, want at most %d", len(data), most)
		}
		p := parsed(t, data)
		check(p)
		got = append(got, events(t, p)...)
		objects += len(p.Objects["shop"])
	}
	if diff := cmp.Diff(events(t, m), got); diff != "" || len(parts) < 2 {
		t.Errorf("%d parts, events (-whole +parts):\n%s", len(parts), diff)
	}
	if objects != 7 {
		t.Errorf("parts name %d objects, want each event's own", objects)
	}
	wantTooLarge(t, m)
}

func TestPartsKeepEventsAndObjects(t *testing.T) {
	wantParts(t, message(7), ids, func(Message) {})
}

// Parts are cut where their objects fill them, and made when they are asked for.
func TestPartsAreCutByObjects(t *testing.T) {
	const limit = 64 << 10
	m := Message{App: "demo", ReceivedAt: 1, Resolved: true, Objects: Objects{}}
	var events []string
	for i := range 60 {
		ids := make([]string, 5)
		for k := range ids {
			ids[k] = fmt.Sprintf(`"o%d"`, (i*7+k*k)%40)
		}
		events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","objectIDs":[%s]}`, strings.Join(ids, ",")))
	}
	m.Body = []byte(`{"events":[` + strings.Join(events, ",") + `]}`)
	for i := range 40 {
		filters := make([]Filter, 150)
		for f := range filters {
			filters[f] = Filter{"<facet>", fmt.Sprint("value\n", i, f)}
		}
		m.Objects.Put("i", fmt.Sprint("o", i), filters)
	}
	parts := partsOf(t, m, limit)
	for i, data := range parts {
		if len(data) > limit || len(data) < limit/2 && i < len(parts)-1 {
			t.Errorf("part %d of %d has %d bytes of %d", i+1, len(parts), len(data), limit)
		}
	}
	if len(parts) < 2 {
		t.Errorf("%d parts", len(parts))
	}
	for range m.Parts(limit) {
		break // makes no second part
	}
}

// Every batch that ingest accepts fits into messages and decodes again.
func TestAcceptedBatchesFitMessages(t *testing.T) {
	rules := event.Rules{Now: time.UnixMilli(1_700_000_000_000)}
	const start = `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["color:Red"],"x":`
	for name, value := range map[string]string{
		"signs that JSON in HTML escapes": `"` + strings.Repeat("<>&", (event.MaxBody-len(start)-6)/3) + `"`,
		"depth":                           strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990),
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(start + value + `}]}`)
			if _, err := event.DecodeBatch(body, rules); err != nil {
				t.Fatalf("the batch is not accepted: %v", err)
			}
			m := Message{App: "demo", ReceivedAt: rules.Now.UnixMilli(), Resolved: true, Body: body}
			if diff := cmp.Diff(ids(t, m), ids(t, sent(t, m))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDamagedMessagesAreRefused(t *testing.T) {
	for _, data := range []string{"", "{", "null", "null\n", `{"app":"demo"}` + "\n{}", `{"app":"demo","receivedAt":1}`, "[]\n", "\x00\xff\n"} {
		if m, err := DecodeMessage([]byte(data)); err == nil {
			t.Errorf("%q decoded to %+v", data, m)
		}
	}
	m := message(1)
	m.Body = []byte(`{"events":[{}]}`)
	if _, err := m.Events(); err == nil {
		t.Error("a body of invalid events decoded")
	}
}

func TestDecodePush(t *testing.T) {
	p, err := DecodePush([]byte(`{"message":{"data":"aGk=","attributes":{"app":"demo"},"messageId":"7","message_id":"7",
		"publishTime":"2026-11-20T10:00:00.5Z","orderingKey":""},"subscription":"projects/p/subscriptions/s","deliveryAttempt":3}`))
	must.Succeed(t, err)
	if string(p.Message.Data) != "hi" || p.DeliveryAttempt != 3 || p.Message.Attributes["app"] != "demo" {
		t.Errorf("%+v", p)
	}
	for _, body := range []string{"", "[]", `{"message":{}}`, `{"message":{"messageId":"1","data":"!"}}`} {
		if _, err := DecodePush([]byte(body)); err == nil {
			t.Errorf("%q decoded", body)
		}
	}
}

// The receipt is the earlier one of two clocks, and goes along when events are published
// again.
func TestReceipt(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	m := message(3)
	m.ReceivedAt = at.UnixMilli()
	push := func(published time.Time, attributes map[string]string, m Message) Push {
		var p Push
		p.Message.Data, p.Message.PublishTime, p.Message.Attributes = encoded(t, m), published, attributes
		return p
	}
	for name, c := range map[string]struct {
		push Push
		want time.Duration
	}{
		"published later":          {push(at.Add(time.Second), nil, m), 0},
		"ingest is ahead":          {push(at.Add(-time.Second), nil, m), -time.Second},
		"no publish time":          {push(time.Time{}, nil, m), 0},
		"the clock of another day": {push(at.Add(-time.Hour), nil, m), 0},
		"replayed":                 {push(at.Add(time.Hour), map[string]string{AttrPublished: fmt.Sprint(at.Add(-time.Second).UnixMilli())}, m), -time.Second},
	} {
		got, err := c.push.Decode()
		if err != nil || got.Receipt() != at.Add(c.want).UnixMilli() {
			t.Errorf("%s: %v, %v; want %v", name, time.UnixMilli(got.Receipt()), err, at.Add(c.want))
		}
		events, err := got.Events()
		must.Succeed(t, err)
		again, err := push(at.Add(time.Minute), nil, got.Part(events[1:], 1)).Decode()
		if err != nil || again.Receipt() != got.Receipt() || again.Ahead != got.Ahead {
			t.Errorf("%s, published again: %v, %v", name, time.UnixMilli(again.Receipt()), err)
		}
	}
}

// Messages of ingest keep times up to 5 minutes ahead, those of an older one none.
func TestEventsAhead(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]bool{0: true, event.MaxAhead: false} {
		m := Message{App: "a", ReceivedAt: at.UnixMilli(), Ahead: ahead.Milliseconds()}
		m.Body = fmt.Appendf(nil, `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","objectIDs":["1"],"timestamp":%d}]}`,
			at.Add(event.MaxAhead).UnixMilli())
		events, err := m.Events()
		if err != nil || events[0].Received != want {
			t.Errorf("%v ahead: %+v, %v; want the time of receipt: %v", ahead, events, err, want)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add(encoded(f, message(2)))
	f.Add([]byte("{\"app\":\"a\",\"receivedAt\":1}\n{\"events\":[null]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeMessage(data)
		if err != nil {
			return
		}
		if _, err := m.Events(); err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatalf("a decoded message does not encode: %v", err)
		}
		if diff := cmp.Diff(ids(t, m), ids(t, parsed(t, again))); diff != "" {
			t.Errorf("ids differ after decoding:\n%s", diff)
		}
	})
}

func TestSignInsDecode(t *testing.T) {
	m := exampleSignedIn(t)
	got, err := sent(t, m).SignIns()
	must.Succeed(t, err)
	if len(got) != 1 || got[0].User != "anonymous-1" || got[0].Known != "ann" || got[0].MessageID != "m-1" {
		t.Errorf("%+v", got)
	}
	for _, body := range []string{`{}`, `{"signIns":[]}`, `[]`, `{"signIns":5}`} {
		m.Body = []byte(body)
		if got, err := m.SignIns(); err == nil {
			t.Errorf("%s: %+v, want an error", body, got)
		}
	}
}
