package apply_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/store"
)

// call is a delivery of a call of an SDK, which takes its time from its receipt.
func call(messageID string, receipt time.Time) bus.Message {
	return bus.Message{
		App: appID, ReceivedAt: receipt.UnixMilli(), Request: uint64(receipt.UnixMilli()), Resolved: true, Calls: true, Objects: both,
		Body: fmt.Appendf(nil, `{"events":[{"eventType":"view","eventName":"Seen","index":"shoes","userToken":%q,"objectIDs":["1"],"eventId":%q,"timestamp":%d}]}`,
			user, messageID, receipt.UnixMilli()),
	}
}

// remembered are the calls of the user that the store remembers.
func (h *harness) remembered() map[store.Call]bool {
	h.t.Helper()
	all := map[store.Call]bool{}
	for _, id := range []string{"m1", "m2"} {
		for i := range 5 {
			events, err := call(id, received.Add(time.Duration(i)*time.Second)).Events()
			h.check(err)
			known, err := h.store.Calls.Known(h.t.Context(), appID, []store.Call{{User: user, ID: events[0].CallID(), Time: events[0].Time}})
			h.check(err)
			maps.Copy(all, known)
		}
	}
	return all
}

// An SDK delivers a call three times, each time later. It is one event, of the first time.
func TestCallIsOneEvent(t *testing.T) {
	h := newHarness(t)
	for i := range 3 {
		for range 2 { // each message of Pub/Sub twice
			if got := h.deliver(call("m1", received.Add(time.Duration(i)*time.Second))); got.Events != 1 {
				t.Errorf("result %+v", got)
			}
		}
		if rows := h.rows(); len(rows) != 1 || rows[0].Time != received.UnixMilli() {
			t.Fatalf("delivery %d: rows %+v", i+1, rows)
		}
	}
	h.wantColors("Red")
}

// Two calls of one moment with equal content are two events, because their messageIds differ.
func TestRepeatsAreEvents(t *testing.T) {
	h := newHarness(t)
	h.deliver(call("m1", received))
	h.deliver(call("m2", received))
	if rows := h.rows(); len(rows) != 2 {
		t.Errorf("rows %+v", rows)
	}
}

// Deliveries at once agree on a time.
func TestDeliveriesAtOnce(t *testing.T) {
	h := newHarness(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			p := h.push(call("m1", received.Add(time.Duration(i)*time.Second)), 1)
			p.Message.MessageID = fmt.Sprint(i)
			if _, err := h.Deliver(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if rows := h.rows(); len(rows) != 1 {
		t.Errorf("rows %+v", rows)
	}
}

// A call of more objects than an event may have is several events, all of one time.
func TestLargeCallIsRemembered(t *testing.T) {
	h := newHarness(t)
	for i := range 2 {
		m := call("m1", received.Add(time.Duration(i)*time.Second))
		one := bytes.TrimSuffix(bytes.TrimPrefix(m.Body, []byte(`{"events":[`)), []byte(`]}`))
		m.Body = fmt.Appendf(nil, `{"events":[%s,%s]}`, one, bytes.Replace(one, []byte(`["1"]`), []byte(`["2"]`), 1))
		if got := h.deliver(m); got.Events != 2 {
			t.Errorf("result %+v", got)
		}
	}
	if rows := h.rows(); len(rows) != 2 || rows[0].Time != received.UnixMilli() || rows[1].Time != received.UnixMilli() {
		t.Errorf("rows %+v", rows)
	}
}

// amnesiac is an engine that cannot read the memory of calls.
type amnesiac struct{ apply.Profiles }

func (amnesiac) Remember(context.Context, config.App, []event.Event) error { return errAway }

// A process dies after it has remembered a call and before it has logged it. The
// next delivery writes the event at the remembered time.
func TestRememberedCallIsLogged(t *testing.T) {
	h := newHarness(t)
	m := call("m1", received)
	events, err := m.Events()
	h.check(err)
	app, err := h.apps.App(t.Context(), appID)
	h.check(err)
	h.check(h.profiles.Remember(t.Context(), app, events)) // and dies
	h.deliver(call("m1", received.Add(3*time.Second)))
	if rows := h.rows(); len(rows) != 1 || rows[0].Time != received.UnixMilli() {
		t.Errorf("rows %+v", rows)
	}
}

// A later delivery of a call is buried after it has written the log. It marks the user for
// the event at the remembered time, and the next delivery is the same event.
func TestBuriedCallCounts(t *testing.T) {
	h := newHarness(t)
	h.deliver(green)
	h.wantColors("Green") // stored now
	first, err := call("m1", received).Events()
	h.check(err)
	app, err := h.apps.App(t.Context(), appID)
	h.check(err)
	h.check(h.profiles.Remember(t.Context(), app, first)) // and dies
	h.Profiles = &halted{h.profiles, h.store}
	if got, err := h.Deliver(t.Context(), h.last(call("m1", received.Add(time.Second)))); got.Fate != apply.Dead {
		t.Fatalf("result %+v, %v", got, err)
	}
	h.wantColors("Green", "Red")
	h.Profiles = h.profiles
	h.deliver(call("m1", received.Add(2*time.Second)))
	if rows := h.rows(); len(rows) != 2 || rows[0].Time != received.UnixMilli() || rows[1].Time != received.UnixMilli() {
		t.Errorf("rows %+v", rows)
	}
}

// The calls of a deleted user are forgotten by the purge, and those that arrive late by
// the process that drops them. A call of after the deletion counts, and is remembered.
func TestCallsOfDeletedUser(t *testing.T) {
	h := newHarness(t)
	h.deliver(call("m1", received))
	if got := h.remembered(); len(got) != 1 {
		t.Fatalf("remembered %v", got)
	}
	until, err := h.profiles.Delete(t.Context(), appID, user)
	h.check(err)
	if _, err := h.profiles.Purge(t.Context(), appID, user, until); err != nil {
		t.Fatal(err)
	}
	if got := h.remembered(); len(got) != 0 {
		t.Errorf("after the purge: remembered %v", got)
	}
	if got := h.deliver(call("m2", received)); got.Deleted != 1 {
		t.Errorf("result %+v", got)
	}
	if got, rows := h.remembered(), h.rows(); len(got) != 0 || len(rows) != 0 {
		t.Errorf("after a late delivery: remembered %v, rows %+v", got, rows)
	}
	for range 2 {
		if got := h.deliver(call("m1", now.Add(time.Minute))); got.Events != 1 {
			t.Errorf("result %+v", got)
		}
	}
	if rows := h.rows(); len(rows) != 1 {
		t.Errorf("rows %+v", rows)
	}
}

// Of a user who has opted out nothing stays.
func TestCallsOfOptedOutUser(t *testing.T) {
	h := newHarness(t)
	_, err := h.profiles.OptOut(t.Context(), appID, user)
	h.check(err)
	if got := h.deliver(call("m1", received)); got.Refused+got.Deleted != 1 {
		t.Errorf("result %+v", got)
	}
	if got, rows := h.remembered(), h.rows(); len(got) != 0 || len(rows) != 0 {
		t.Errorf("remembered %v, rows %+v", got, rows)
	}
}

// A message whose calls the memory cannot be asked for fails before it writes the log.
func TestMemoryAway(t *testing.T) {
	h := newHarness(t)
	h.Profiles = amnesiac{h.profiles}
	if got, err := h.Deliver(t.Context(), h.push(call("m1", received), 1)); got.Fate != apply.Retried || err == nil {
		t.Errorf("result %+v, %v", got, err)
	}
	if rows := h.rows(); len(rows) != 0 {
		t.Errorf("rows %+v", rows)
	}
}
