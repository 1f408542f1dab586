package event_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/local/must"
)

var receipt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const goodEvent = `{"eventType":"view","eventName":"V","index":"i","userToken":"u","objectIDs":["a"]}`

func TestValidUserToken(t *testing.T) {
	tests := []struct {
		name  string
		token string
		want  bool
	}{
		{"every kind of character", "azAZ09_=/+-", true},
		{"one character", "a", true},
		{"129 characters", strings.Repeat("a", 129), true},
		{"130 characters", strings.Repeat("a", 130), false},
		{"empty", "", false},
		{"comma, which parts row keys", "a,b", false},
		{"space", "a b", false},
		{"dot", "a.b", false},
		{"NUL", "a\x00", false},
		{"beyond ASCII", "é", false},
		{"not UTF-8", "\xff", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := event.ValidUserToken(tt.token); got != tt.want {
				t.Errorf("ValidUserToken(%q) = %v, want %v", tt.token, got, tt.want)
			}
		})
	}
}

// Bodies that a text file cannot hold.
func TestInvalidUTF8IsABadRequest(t *testing.T) {
	tests := []struct {
		name, body, message string
	}{
		{"in a string", "{\"events\":[{\"eventName\":\"\xff\"}]}", "Bad Request: invalid UTF-8 at byte 25: it is probably WINDOWS-1252, which `iconv -f WINDOWS-1252 -t UTF-8 FILE` converts"},
		{"cut within a character", "{\"events\":\"\xc3", "Bad Request: invalid UTF-8 at byte 11: it is probably WINDOWS-1252, which `iconv -f WINDOWS-1252 -t UTF-8 FILE` converts"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "Bad Request: invalid UTF-8 at byte 0: it is probably UTF-16, which `iconv -f UTF-16 -t UTF-8 FILE` converts"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := event.DecodeBatch([]byte(tt.body), event.Rules{Now: receipt})
			refusal := asRefusal(t, err)
			if refusal.Kind != fault.Malformed || refusal.Message != tt.message || refusal.Reason() != "Bad Request" {
				t.Errorf("got %+v, reason %q", refusal, refusal.Reason())
			}
		})
	}
}

func TestRefusalNamesTheEvent(t *testing.T) {
	body := `{"events":[` + goodEvent + `, {"eventType":"secret"} ]}`
	_, err := event.DecodeBatch([]byte(body), event.Rules{Now: receipt})
	refusal := asRefusal(t, err)
	if refusal.Position != 1 || string(refusal.Event) != `{"eventType":"secret"}` {
		t.Errorf("refused event %d %s", refusal.Position, refusal.Event)
	}
	if got := err.Error(); got != "event 1 is invalid: EventName is required" {
		t.Errorf("error is %q", got)
	}
	_, err = event.DecodeBatch([]byte(`{}`), event.Rules{Now: receipt})
	if got := err.Error(); got != "body is invalid: No events to process" {
		t.Errorf("error is %q", got)
	}
}

// What a client sent must never become the name of a counter.
func TestMessagesQuoteNoClientData(t *testing.T) {
	fields := []string{
		`"eventType":"MARK"`, `"eventName":"MARKé"`, `"userToken":"MARK "`, `"queryID":"MARK"`,
		`"authenticatedUserToken":"MARK "`, `"eventSubtype":"MARK"`, `"currency":"MARK"`, `"value":"MARK90123456789012"`,
		`"agentID":"MARK"`, `"timestamp":{"MARK":1}`, `"objectIDs":{"MARK":["MARK"]}`, `"objectData":[{"queryID":"MARK"}]`,
		`"MARK":MARK`, `"MARK" 1`, `"\uMARK":1`, `"objectIDs":[],"filters":["MARK"]`,
	}
	for _, field := range fields {
		body := `{"events":[` + strings.TrimSuffix(goodEvent, "}") + "," + field + `}]}`
		_, err := event.DecodeBatch([]byte(body), event.Rules{Now: receipt})
		refusal := asRefusal(t, err)
		if strings.Contains(refusal.Message, "MARK") || strings.ContainsAny(refusal.Reason(), "{}[]é") {
			t.Errorf("with %s the message is %q", field, refusal.Message)
		}
	}
}

// An append to one event's list or JSON must not write into the next event.
func TestEventsOfABatchDoNotOverlap(t *testing.T) {
	body := []byte(`{"events":[` + goodEvent + `,` + goodEvent + `]}`)
	events, err := event.DecodeBatch(body, event.Rules{Now: receipt})
	must.Succeed(t, err)
	_ = append(events[0].ObjectIDs, "x")
	_ = append(events[0].Raw, "xxxxx"...)
	if events[1].ObjectIDs[0] != "a" || !bytes.Equal(events[1].Raw, []byte(goodEvent)) {
		t.Errorf("the second event became %q %s", events[1].ObjectIDs, events[1].Raw)
	}
}

func asRefusal(t *testing.T, err error) *event.Refusal {
	t.Helper()
	var refusal *event.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("error is %v, want a Refusal", err)
	}
	return refusal
}

// A timestamp up to MaxAhead after receipt is kept, so that a retry is the same event. A
// later one becomes the time of receipt.
func TestTimestampsAhead(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	decode := func(at time.Time, received time.Time) event.Event {
		t.Helper()
		raw := fmt.Appendf(nil, `{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","objectIDs":["1"],"timestamp":%d}`, at.UnixMilli())
		e, err := event.Decode(raw, event.Rules{Now: received, Ahead: event.MaxAhead})
		must.Succeed(t, err)
		return e
	}
	ahead := now.Add(event.MaxAhead)
	first, retry := decode(ahead, now), decode(ahead, now.Add(time.Second))
	if first.Received || first.Time != ahead.UnixMilli() || first.ID() != retry.ID() {
		t.Errorf("%+v, %+v: want one event of its own time", first, retry)
	}
	if e := decode(ahead.Add(time.Millisecond), now); !e.Received || e.Time != now.UnixMilli() {
		t.Errorf("%+v, want the time of receipt", e)
	}
}
