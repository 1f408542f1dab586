package bus

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

// readPage returns the page of the format.
func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../functions/docs/reference/messages.md")
	must.Succeed(t, err)
	return string(text)
}

// examples returns the blocks of code of a page.
func examples(page string) (all []string) {
	for i, part := range strings.Split(page, "```") {
		if i%2 == 1 {
			all = append(all, strings.TrimSuffix(strings.TrimPrefix(part, "\n"), "\n"))
		}
	}
	return all
}

const exampleReceived = 1_795_255_200_120

func exampleAccepted() Message {
	return Message{App: "shop", ReceivedAt: exampleReceived, Ahead: event.MaxAhead.Milliseconds(), Request: 1<<63 + 7, Resolved: true,
		Objects: Objects{"products": {"shoe-1": {{"brand", "Acme"}, {"color", "Red"}}}},
		Body:    []byte(`{"events":[{"eventType":"view","eventName":"Product Viewed","index":"products","userToken":"user-1","objectIDs":["shoe-1"],"timestamp":1795255200000}]}`)}
}

func exampleReenriched(t *testing.T) Message {
	t.Helper()
	raw := []byte(`{"eventType":"view","eventName":"Product Viewed","userToken":"user-1","objectIDs":["shoe-2"],"timestamp":1795255200000}`)
	e, err := event.Decode(raw, event.Rules{Now: time.UnixMilli(exampleReceived), Index: "products"})
	must.Succeed(t, err)
	m, err := NewReenriched("shop", time.UnixMilli(1_795_258_800_000),
		[]Logged{{User: "user-1", Time: e.Time, ID: "yPk6o_-AeS8", ReceivedAt: exampleReceived, Event: e}}, Resolution{Objects: Objects{"products": {"shoe-2": {{"color", "Blue"}}}}})
	must.Succeed(t, err)
	return m
}

func exampleSignedIn(t *testing.T) Message {
	t.Helper()
	m, err := NewSignIns("shop", time.UnixMilli(exampleReceived), StrongEvidence, "5b1f0a9c77de",
		[]SignIn{{User: "anonymous-1", Known: "ann", Time: 1_795_255_200_000, MessageID: "m-1"}})
	must.Succeed(t, err)
	return m
}

// A message is byte by byte what the page says. A changed example is a new version of
// the format, unless older readers ignore the change.
func TestFormatIsThePages(t *testing.T) {
	found := examples(readPage(t))
	if len(found) != 3 {
		t.Fatalf("the page has %d examples, want 3", len(found))
	}
	for i, m := range []Message{exampleAccepted(), exampleReenriched(t), exampleSignedIn(t)} {
		data := encoded(t, m)
		if diff := cmp.Diff(found[i], strings.TrimSuffix(string(data), "\n")); diff != "" {
			t.Errorf("example %d (-page +code):\n%s", i+1, diff)
		}
		if diff := cmp.Diff(m, parsed(t, data)); diff != "" {
			t.Errorf("example %d (-sent +read):\n%s", i+1, diff)
		}
	}
}

func TestPageHasEveryMember(t *testing.T) {
	page := readPage(t)
	for _, of := range []reflect.Type{reflect.TypeFor[head](), reflect.TypeFor[Message](), reflect.TypeFor[frame](), reflect.TypeFor[SignIn]()} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" && !strings.Contains(page, "`"+name+"`") {
				t.Errorf("the page does not describe %q of %s", name, of)
			}
		}
	}
	for _, attribute := range []string{AttrApp, AttrLane, AttrRegion, AttrReason, AttrPublished} {
		if !strings.Contains(page, "`"+attribute+"`") {
			t.Errorf("the page does not describe the attribute %q", attribute)
		}
	}
}

// A message of the version before still decodes, line breaks of a client included.
func TestMessageWithoutVersionIsRead(t *testing.T) {
	old := `{"app":"shop","receivedAt":1795255200120,"request":7,"resolved":true}` + "\n{\"events\":[\n" +
		`{"eventType":"view","eventName":"Seen","index":"products","userToken":"u","filters":["a:b"]}]}`
	m := parsed(t, []byte(old))
	if events, err := m.Events(); err != nil || len(events) != 1 || m.Request != 7 {
		t.Errorf("%d events, %v, of %+v", len(events), err, m)
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	_, err := DecodeMessage([]byte(`{"version":2,"app":"shop","receivedAt":1,"resolved":true}` + "\n{}"))
	if err == nil || !strings.Contains(err.Error(), "version 2 of the format is newer than 1") {
		t.Error(err)
	}
}

// JSON with line breaks is published in one line, with the ids that it had.
func TestBodyIsOneLine(t *testing.T) {
	m := message(3)
	m.Body = []byte(strings.ReplaceAll(string(m.Body), ",", "\n,\r\n\t"))
	data := encoded(t, m)
	if n := strings.Count(string(data), "\n"); n != 1 {
		t.Errorf("the message has %d line breaks, want 1", n)
	}
	if diff := cmp.Diff(ids(t, m), ids(t, parsed(t, data))); diff != "" {
		t.Errorf("ids (-sent +received):\n%s", diff)
	}
}
