package event_test

import (
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

func called(t *testing.T, raw string) event.Event {
	t.Helper()
	e, err := event.Decode([]byte(raw), event.Rules{Now: time.UnixMilli(1_795_262_400_000)})
	must.Succeed(t, err)
	return e
}

// The ID of a call has its messageId and its content, and not its time.
func TestCallID(t *testing.T) {
	const call = `{"eventType":"view","eventName":"V","index":"i","userToken":"u","objectIDs":["1"],"timestamp":1795262300000,"eventId":"m1"}`
	first := called(t, call)
	if id := first.CallID(); len(id) != 11 || id == first.ID() {
		t.Errorf("ID %q of a call, %q of its event", id, first.ID())
	}
	for name, change := range map[string][2]string{
		"another time": {"1795262300000", "1795262300001"},
		"no time":      {`"timestamp":1795262300000,`, ""},
	} {
		if other := called(t, strings.Replace(call, change[0], change[1], 1)); other.CallID() != first.CallID() || other.ID() == first.ID() {
			t.Errorf("%s: call %s, event %s; the first is call %s, event %s", name, other.CallID(), other.ID(), first.CallID(), first.ID())
		}
	}
	for name, change := range map[string][2]string{
		"another messageId": {"m1", "m2"}, "another product": {`["1"]`, `["2"]`}, "another user": {`"u"`, `"w"`},
	} {
		if other := called(t, strings.Replace(call, change[0], change[1], 1)); other.CallID() == first.CallID() {
			t.Errorf("%s has the same ID", name)
		}
	}
	if other := called(t, strings.Replace(call, `,"eventId":"m1"`, "", 1)); other.CallID() != "" {
		t.Errorf("an event without a messageId has the ID %q", other.CallID())
	}
}

// An event at another time is the event that a client would have sent with that time.
func TestAt(t *testing.T) {
	const call = `{"objectIDs":["1", "2"],"eventType":"view","eventName":"V","index":"i","userToken":"u","timestamp":1795262300000,"value":"9.50 €","eventId":"m1"}`
	for _, raw := range []string{call, strings.Replace(call, `"timestamp":1795262300000,`, "", 1)} {
		e := called(t, raw)
		moved, err := e.At(1_795_262_000_000)
		must.Succeed(t, err)
		again := called(t, string(moved.Raw))
		wanted := called(t, strings.Replace(call, "1795262300000", "1795262000000", 1))
		if want := wanted.ID(); moved.ID() != want || again.ID() != want ||
			again.Received || again.Time != 1_795_262_000_000 || moved.Time != again.Time {
			t.Errorf("%+v is %s, decoded %s at %d; want %s", moved, moved.ID(), again.ID(), again.Time, want)
		}
	}
	e := called(t, call)
	if same, err := e.At(e.Time); err != nil || string(same.Raw) != call {
		t.Errorf("%s, %v: want it as it was", same.Raw, err)
	}
}
