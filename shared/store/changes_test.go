package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

func testChanges(t *testing.T, s fixture) {
	ctx := t.Context()
	add := func(app string, slot store.ChangeSlot, users ...string) {
		t.Helper()
		must.Succeed(t, s.Changes.Add(ctx, app, slot, users))
	}
	wants := func(app string, since store.ChangeSlot, want map[string]store.ChangeSlot) {
		t.Helper()
		got, more, err := s.Changes.List(ctx, app, since, 0)
		if diff := cmp.Diff(want, got); diff != "" || more || err != nil {
			t.Errorf("changes of %s since %d: more %v, %v (-want +got):\n%s", app, since, more, err, diff)
		}
	}
	now := store.SlotOf(time.Date(2026, 11, 23, 5, 0, 9, 0, time.UTC))
	add("shop", now, "a", "b", "b")
	add("shop", now, "a")
	add("shop", now+2, "b", "a+b")
	add("shop2", now, "x")
	wants("shop", 0, map[string]store.ChangeSlot{"a": now, "b": now + 2, "a+b": now + 2})
	wants("shop", now, map[string]store.ChangeSlot{"a": now, "b": now + 2, "a+b": now + 2})
	wants("shop", now+1, map[string]store.ChangeSlot{"b": now + 2, "a+b": now + 2})
	wants("shop", now+3, map[string]store.ChangeSlot{})
	wants("sho", 0, map[string]store.ChangeSlot{})
	if n, err := s.Changes.Drop(ctx, "shop", now+1); n != 2 || err != nil {
		t.Errorf("dropped %d, %v; want the two of the older slot", n, err)
	}
	wants("shop", 0, map[string]store.ChangeSlot{"b": now + 2, "a+b": now + 2})
	wants("shop2", 0, map[string]store.ChangeSlot{"x": now})
}

func testChangesAreBounded(t *testing.T, s fixture) {
	ctx := t.Context()
	var users []string
	for i := range 2500 {
		users = append(users, fmt.Sprintf("u%d", i))
	}
	for slot := range store.ChangeSlot(2) {
		must.Succeed(t, s.Changes.Add(ctx, "shop", slot, users))
	}
	for _, test := range []struct {
		limit, want int
		more        bool
	}{{0, 2500, false}, {2500, 2500, false}, {2499, 2499, true}, {1, 1, true}} {
		got, more, err := s.Changes.List(ctx, "shop", 0, test.limit)
		if len(got) != test.want || more != test.more || err != nil {
			t.Errorf("limit %d: %d users, more %v, %v; want %d, %v", test.limit, len(got), more, err, test.want, test.more)
		}
	}
	if n, err := s.Changes.Drop(ctx, "shop", 2); n != 5000 || err != nil {
		t.Errorf("dropped %d, %v; want 5000", n, err)
	}
}

func TestSlots(t *testing.T) {
	at := time.Date(2026, 11, 23, 5, 0, 10, 0, time.UTC)
	slot := store.SlotOf(at)
	if !slot.Start().Equal(at) || store.SlotOf(at.Add(-1)) != slot-1 || store.SlotOf(at.Add(store.SlotWidth-1)) != slot {
		t.Errorf("slot %d begins at %s, want %s; before it %d, at its end %d", slot, slot.Start(), at, store.SlotOf(at.Add(-1)), store.SlotOf(at.Add(store.SlotWidth-1)))
	}
}
