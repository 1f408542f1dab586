package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

func testCalls(t *testing.T, s fixture) {
	ctx := t.Context()
	remember := func(app string, calls ...store.Call) []store.Call {
		t.Helper()
		must.Succeed(t, s.Calls.Remember(ctx, app, calls))
		return calls
	}
	first := []store.Call{{User: "ann", ID: "1", Time: 1000}, {User: "ann", ID: "2", Time: 2000}, {User: "bob", ID: "1", Time: 3000}}
	if diff := cmp.Diff(first, remember("shop", first...)); diff != "" {
		t.Errorf("the first times (-want +got):\n%s", diff)
	}
	later := []store.Call{{User: "ann", ID: "1", Time: 9000}, {User: "bob", ID: "1", Time: 1}, {User: "bob", ID: "2", Time: 4000}}
	want := []store.Call{first[0], first[2], later[2]}
	if diff := cmp.Diff(want, remember("shop", later...)); diff != "" {
		t.Errorf("later times (-want +got):\n%s", diff)
	}
	if got := remember("shop2", store.Call{User: "ann", ID: "1", Time: 5000}); got[0].Time != 5000 {
		t.Errorf("the call of another app has the time %d", got[0].Time)
	}
	known := func(calls ...store.Call) map[store.Call]bool {
		t.Helper()
		got, err := s.Calls.Known(ctx, "shop", calls)
		must.Succeed(t, err)
		return got
	}
	wrong := store.Call{User: "ann", ID: "1", Time: 9000}
	if diff := cmp.Diff(map[store.Call]bool{first[0]: true, first[1]: true}, known(first[0], first[1], store.Call{User: "cid", ID: "1"})); diff != "" {
		t.Errorf("known (-want +got):\n%s", diff)
	}
	if got := known(wrong); len(got) != 0 {
		t.Errorf("a call of another time is known: %v", got)
	}
	must.Succeed(t, s.Calls.Forget(ctx, "shop", []store.Call{wrong, first[2], {User: "cid", ID: "1", Time: 1}}))
	if got := known(first...); len(got) != 2 || got[first[2]] {
		t.Errorf("after a call was forgotten: %v", got)
	}
	// A purge of ann's log up to 1000 forgets the calls up to then.
	_, err := s.Events.PurgeLog(ctx, "shop", "ann", affinity.Tombstone{DeletedUntil: 1000, ReceivedUntil: 1000})
	must.Succeed(t, err)
	if got := known(first...); len(got) != 1 || !got[first[1]] {
		t.Errorf("after the purge: %v", got)
	}
	if got := remember("shop", store.Call{User: "ann", ID: "1", Time: 9000}); got[0].Time != 9000 {
		t.Errorf("a call that was purged has the time %d", got[0].Time)
	}
}
