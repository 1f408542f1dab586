package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

var refusedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func refuse(t *testing.T, b fixture, app string, at time.Time, list ...store.Refused) {
	t.Helper()
	r := store.Refusals{Counts: map[string]int64{}, Events: list}
	for _, e := range list {
		r.Counts[e.Reason]++
	}
	must.Succeed(t, b.Refused.RecordRefused(t.Context(), app, at, r))
}

func refused(t *testing.T, b fixture, app string, now time.Time) ([]store.Refused, map[string]int64) {
	t.Helper()
	list, counts, err := b.Refused.ReadRefused(t.Context(), app, now)
	must.Succeed(t, err)
	return list, counts
}

// Junk of one reason does not push out what was refused for another one.
func testRefusedByReason(t *testing.T, b fixture) {
	refuse(t, b, app, refusedAt, store.Refused{At: refusedAt, Reason: "rare", Event: json.RawMessage(`{}`), Sequence: 1})
	for i := range 30 {
		at := refusedAt.Add(time.Duration(i+1) * time.Second)
		refuse(t, b, app, at,
			store.Refused{At: at, Reason: "junk", Sequence: int64(2*i + 2)},
			store.Refused{At: at, Reason: "more junk", Sequence: int64(2*i + 3)})
	}
	refuse(t, b, "other", refusedAt, store.Refused{At: refusedAt, Reason: "junk"})
	list, counts := refused(t, b, app, refusedAt)
	if diff := cmp.Diff(map[string]int64{"rare": 1, "junk": 30, "more junk": 30}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	kept := map[string][]int64{}
	for i, r := range list {
		kept[r.Reason] = append(kept[r.Reason], r.Sequence)
		if i > 0 && r.At.After(list[i-1].At) {
			t.Errorf("refusal %d is newer than the one before it", i)
		}
	}
	for reason, newest := range map[string]int64{"rare": 1, "junk": 60, "more junk": 61} {
		if len(kept[reason]) == 0 || kept[reason][0] != newest {
			t.Errorf("refusals of %s are %v, want %d first", reason, kept[reason], newest)
		}
	}
	if n := len(kept["junk"]); n < store.RefusedOfReason {
		t.Errorf("%d refusals of one reason are kept, want at least %d", n, store.RefusedOfReason)
	}
}

// Refused events and counts have an age.
func testRefusedExpire(t *testing.T, b fixture) {
	old := refusedAt.AddDate(0, 0, -store.RefusedDays-1)
	refuse(t, b, app, old, store.Refused{At: old, Reason: "old", Event: json.RawMessage(`{}`)})
	refuse(t, b, app, refusedAt, store.Refused{At: refusedAt, Reason: "new", Event: json.RawMessage(`{}`)})
	list, counts := refused(t, b, app, refusedAt)
	if len(list) != 1 || list[0].Reason != "new" || len(counts) != 1 || counts["new"] != 1 {
		t.Errorf("%v, %v; want only what is new", list, counts)
	}
}

// A deletion finds a user's events in any form.
func testRefusedOfUser(t *testing.T, b fixture) {
	cut := `"{\"userToken\":\"ann\/1\",\"filters\":[\"a:b"`
	events := map[string]bool{ // whether it is the user's
		`{"userToken":"ann/1","eventType":"view"}`:                 true,
		`{"userToken":"bob","authenticatedUserToken":"ann\/1"}`:    true,
		`{"usertoken":"ann/1"}`:                                    true,
		cut:                                                        true,
		`"{\"filters\":[\"user:ann/1"`:                             true,
		`["ann/1"]`:                                                true,
		`{"userToken":"ann/12","objectIDs":["ann/1"]}`:             false,
		`{"userToken":"bob","eventName":"ann/1"}`:                  false,
		`"{\"userToken\":\"ann/12\",\"filters\":[\"xann/1\",\"a:"`: false,
	}
	want := 0
	for event, users := range events {
		if users {
			want++
		}
		refuse(t, b, app, refusedAt, store.Refused{At: refusedAt, Reason: "some reason", Event: json.RawMessage(event)})
	}
	if list, _ := refused(t, b, app, refusedAt); len(list) != len(events) {
		t.Errorf("%d refusals", len(list))
	}
	if n, err := b.Refused.ForgetRefused(t.Context(), app, "ann/1"); err != nil || n != want {
		t.Errorf("%d events removed, %v; want %d", n, err, want)
	}
	list, counts := refused(t, b, app, refusedAt)
	for _, r := range list {
		if events[string(r.Event)] {
			t.Errorf("still there: %s", r.Event)
		}
	}
	if len(list) != len(events)-want || counts["some reason"] != int64(len(events)) {
		t.Errorf("%d refusals are left, counts %v", len(list), counts)
	}
}
