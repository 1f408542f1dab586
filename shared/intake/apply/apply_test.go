package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

func TestAcceptedMessage(t *testing.T) {
	h := newHarness(t)
	want := apply.Result{Fate: apply.Applied, App: appID, ReceivedAt: received.UnixMilli(), Events: 1, WithUnknownObjects: 1}
	if got := h.deliver(seen(one)); got != want {
		t.Errorf("result %+v, want %+v", got, want)
	}
	h.wantColors("Red")
	if rows := h.rows(); len(rows) != 1 || rows[0].Time != received.UnixMilli() {
		t.Errorf("rows %+v", rows)
	}
}

func TestRedeliveryChangesNothing(t *testing.T) {
	h := newHarness(t)
	for range 3 {
		if got := h.deliver(seen(both)); got.Events != 1 || got.Superseded != 0 {
			t.Errorf("result %+v", got)
		}
		h.wantColors("Blue", "Red")
		if rows := h.rows(); len(rows) != 1 {
			t.Errorf("rows %+v", rows)
		}
	}
}

func TestEventsOfDeletedUser(t *testing.T) {
	h := newHarness(t)
	_, err := h.profiles.Delete(t.Context(), appID, user)
	h.check(err)
	if got := h.deliver(seen(both)); got.Fate != apply.Applied || got.Events != 0 || got.Deleted != 1 {
		t.Errorf("result %+v", got)
	}
	if rows := h.rows(); len(rows) != 0 {
		t.Errorf("rows %+v", rows)
	}
}

// A user has opted out: their events are refused, also those of a re-enrichment.
func TestEventsOfOptedOutUser(t *testing.T) {
	h := newHarness(t)
	h.deliver(seen(none))
	_, err := h.profiles.OptOut(t.Context(), appID, user)
	h.check(err)
	for name, m := range map[string]bus.Message{"accepted": seen(both), "reenriched": h.again(both)} {
		h.deliver(seen(none))
		got := h.deliver(m)
		if got.Fate != apply.Applied || got.Events+got.Deleted != 0 || got.Refused+got.Superseded != 1 {
			t.Errorf("%s: result %+v", name, got)
		}
		if rows := h.rows(); len(rows) != 0 {
			t.Errorf("%s: rows %+v", name, rows)
		}
	}
}

func TestUnresolvedMessageIsResolved(t *testing.T) {
	h := newHarness(t)
	h.check(h.store.Catalog.PutObjects(t.Context(), appID, "shoes", []store.Object{{ID: "1", Record: []byte(`{"objectID":"1","color":"Red"}`),
		Filters: store.ObjectFilters{SettingsVersion: 1}}}))
	m := seen(nil)
	m.Resolved = false
	want := apply.Result{Fate: apply.Applied, App: appID, ReceivedAt: received.UnixMilli(), Events: 1, WithUnknownObjects: 1}
	if got := h.deliver(m); got != want {
		t.Errorf("result %+v, want %+v", got, want)
	}
	h.wantColors("Red")
	// The catalog has changed before the second delivery.
	h.check(h.store.Catalog.PutObjects(t.Context(), appID, "shoes", []store.Object{{ID: "1", Record: []byte(`{"objectID":"1","color":"Blue"}`),
		Filters: store.ObjectFilters{SettingsVersion: 1}}}))
	h.Catalog = h.enricher()
	h.deliver(m)
	h.wantColors("Blue")
	if rows := h.rows(); len(rows) != 1 {
		t.Errorf("rows %+v", rows)
	}
}

// A delivery of an unresolved message writes its row and dies. Then the catalog loses
// an object, so the next delivery leaves the row. Reads count it all the same.
func TestRowOfEarlierDeliveryCounts(t *testing.T) {
	h := newHarness(t)
	for id, color := range map[string]string{"1": "Red", "2": "Blue"} {
		h.check(h.store.Catalog.PutObjects(t.Context(), appID, "shoes", []store.Object{{ID: id, Record: []byte(`{"objectID":"` + id + `","color":"` + color + `"}`),
			Filters: store.ObjectFilters{SettingsVersion: 1}}}))
	}
	h.deliver(green)
	h.wantColors("Green") // stored now
	m := seen(nil)
	m.Resolved = false
	h.Profiles = &halted{h.profiles, h.store}
	if got, err := h.Deliver(t.Context(), h.push(m, 1)); got.Fate != apply.Retried {
		t.Fatalf("result %+v, %v", got, err)
	}
	h.wantColors("Green")
	h.check(h.store.Catalog.DeleteObjects(t.Context(), appID, "shoes", []string{"2"}))
	h.Profiles, h.Catalog = h.profiles, h.enricher()
	got, err := h.Deliver(t.Context(), h.push(m, 2))
	h.check(err)
	if got.Fate != apply.Applied || got.Superseded != 1 || got.Events != 0 {
		t.Errorf("result %+v, want one superseded row", got)
	}
	h.wantColors("Blue", "Green", "Red")
}

// A re-enrichment writes its row and dies. A message that leaves the row is acknowledged
// all the same, so reads count the row from then on.
func TestRowOfUnfinishedReenrichmentCounts(t *testing.T) {
	for name, m := range map[string]func(*harness) bus.Message{
		"first message":           func(*harness) bus.Message { return seen(none) },
		"another re-enrichment's": func(h *harness) bus.Message { return h.again(one) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.deliver(seen(none))
			h.deliver(green)
			h.Profiles = &halted{h.profiles, h.store}
			if got, err := h.Deliver(t.Context(), h.push(h.again(both), 1)); got.Fate != apply.Retried {
				t.Fatalf("result %+v, %v", got, err)
			}
			h.wantColors("Green")
			h.Profiles = h.profiles
			if got := h.deliver(m(h)); got.Superseded != 1 {
				t.Errorf("result %+v, want one superseded row", got)
			}
			h.wantColors("Blue", "Green", "Red")
		})
	}
}

func TestUnresolvedMessageWaitsForTheCatalog(t *testing.T) {
	h := newHarness(t)
	h.Catalog = &away{}
	m := seen(nil)
	m.Resolved = false
	if got, err := h.Deliver(t.Context(), h.push(m, 1)); got.Fate != apply.Retried || !errors.Is(err, errAway) {
		t.Errorf("result %+v, %v", got, err)
	}
}

// Messages that can never be applied are buried at the first attempt.
func TestMessagesThatNeverApply(t *testing.T) {
	h := newHarness(t)
	elsewhere, empty, newer := seen(one), seen(one), h.again(one)
	elsewhere.App = "elsewhere"
	empty.Body = []byte(`{"events":[]}`)
	newer.Body = nil
	unreadable := h.push(seen(one), 1)
	unreadable.Message.Data = []byte("garbage")
	for name, test := range map[string]struct {
		push   bus.Push
		reason string
	}{
		"unreadable":               {unreadable, "decode message: "},
		"of an unknown app":        {h.push(elsewhere, 1), `app "elsewhere" does not exist`},
		"without events":           {h.push(empty, 1), "decode events of message: "},
		"reenriched without event": {h.push(newer, 1), "decode reenriched message: "},
	} {
		t.Run(name, func(t *testing.T) {
			h.bus.reasons = nil
			got, err := h.Deliver(t.Context(), test.push)
			h.check(err)
			if got.Fate != apply.Dead || len(h.bus.reasons) != 1 || !strings.HasPrefix(h.bus.reasons[0], test.reason) || got.Reason.Error() != h.bus.reasons[0] {
				t.Errorf("result %+v, buried for %q; want %q", got, h.bus.reasons, test.reason)
			}
		})
	}
}

func TestFailuresAreRetriedThenBuried(t *testing.T) {
	h := newHarness(t)
	h.Config = &away{}
	got, err := h.Deliver(t.Context(), h.push(seen(one), apply.MaxAttempts-1))
	if got != (apply.Result{Fate: apply.Retried}) || !errors.Is(err, errAway) || !strings.HasPrefix(err.Error(), "message 42, attempt 19: ") {
		t.Errorf("result %+v, %v", got, err)
	}
	if len(h.bus.reasons) != 0 {
		t.Errorf("buried for %q", h.bus.reasons)
	}
	got, err = h.Deliver(t.Context(), h.last(seen(one)))
	if got.Fate != apply.Dead || !errors.Is(got.Reason, errAway) || err != nil || len(h.bus.reasons) != 1 {
		t.Errorf("result %+v, %v, buried for %q", got, err, h.bus.reasons)
	}
}

// TestBuriedEventsMayBeInTheLog buries a message after its rows were written.
// The profiles must agree with the log.
func TestBuriedEventsMayBeInTheLog(t *testing.T) {
	for name, m := range map[string]func(h *harness) bus.Message{
		"accepted":   func(*harness) bus.Message { return seen(both) },
		"reenriched": func(h *harness) bus.Message { return h.again(both) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.deliver(seen(none))
			engine := &away{Profiles: h.profiles, applied: true}
			h.Profiles = engine
			got, err := h.Deliver(t.Context(), h.last(m(h)))
			h.check(err)
			if got.Fate != apply.Dead || len(engine.abandoned) != 1 || engine.abandoned[0].User != user {
				t.Errorf("result %+v, abandoned %+v", got, engine.abandoned)
			}
		})
	}
}

// All users of a message are marked although one of them is faulty, so it is buried.
func TestFaultyUserHoldsUpNoBurial(t *testing.T) {
	h := newHarness(t)
	h.Profiles = &away{Profiles: h.profiles, err: profile.Faulty{user: profile.ErrManifest}}
	got, err := h.Deliver(t.Context(), h.last(seen(both)))
	if got.Fate != apply.Dead || err != nil || len(h.bus.reasons) != 1 || !errors.Is(got.Reason, profile.ErrManifest) {
		t.Errorf("result %+v, %v, buried for %q", got, err, h.bus.reasons)
	}
}

// An earlier delivery wrote the log, the last ones did not come as far.
func TestLastFailureBeforeTheLogMarksUsers(t *testing.T) {
	h := newHarness(t)
	engine := &away{Profiles: h.profiles}
	h.Profiles, h.Catalog = engine, &away{}
	m := seen(nil)
	m.Resolved = false
	got, err := h.Deliver(t.Context(), h.last(m))
	h.check(err)
	if got.Fate != apply.Dead || len(engine.abandoned) != 1 || engine.abandoned[0].User != user {
		t.Errorf("result %+v, abandoned %+v", got, engine.abandoned)
	}
}

func TestMessageIsNotBuriedHalfway(t *testing.T) {
	h := newHarness(t)
	h.Profiles = &away{Profiles: h.profiles, err: errors.New("cannot mark")}
	got, err := h.Deliver(t.Context(), h.last(seen(both)))
	if got != (apply.Result{}) || !errors.Is(err, errAway) || !strings.Contains(err.Error(), "cannot mark") {
		t.Errorf("result %+v, %v", got, err)
	}
	if len(h.bus.reasons) != 0 {
		t.Errorf("buried for %q", h.bus.reasons)
	}
}

func TestMessageIsKeptIfItCannotBeBuried(t *testing.T) {
	h := newHarness(t)
	h.bus.err = errAway
	p := h.push(seen(one), 1)
	p.Message.Data = []byte("garbage")
	if got, err := h.Deliver(t.Context(), p); got != (apply.Result{}) || !errors.Is(err, errAway) {
		t.Errorf("result %+v, %v", got, err)
	}
}

// TestRowThatKnowsMoreStays delivers messages of one event that know different
// numbers of its objects, in several orders.
func TestRowThatKnowsMoreStays(t *testing.T) {
	for name, test := range map[string]struct {
		messages   func(h *harness) []bus.Message
		superseded int // of the last message
		colors     []string
	}{
		"reenriched": {func(h *harness) []bus.Message { return []bus.Message{seen(none), h.again(both)} }, 0, []string{"Blue", "Red"}},
		"reenriched, then the first message": {func(h *harness) []bus.Message { return []bus.Message{seen(none), h.again(both), seen(none)} }, 1,
			[]string{"Blue", "Red"}},
		"reenriched by an older message": {func(h *harness) []bus.Message { return []bus.Message{seen(none), h.again(both), h.again(one)} }, 1,
			[]string{"Blue", "Red"}},
		"reenriched without news": {func(h *harness) []bus.Message { return []bus.Message{seen(one), h.again(one)} }, 0, []string{"Red"}},
		"reenriched and gone":     {func(h *harness) []bus.Message { return []bus.Message{h.again(both)} }, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			var last apply.Result
			for _, m := range test.messages(h) {
				last = h.deliver(m)
			}
			if last.Fate != apply.Applied || last.Superseded != test.superseded || last.Events != 1-test.superseded {
				t.Errorf("last result %+v, want %d superseded", last, test.superseded)
			}
			h.wantColors(test.colors...)
		})
	}
}

// TestSchemaChangeDuringLookup moves reads to a schema that a lookup did not
// read. Rows that the lookup did not find may be there.
func TestSchemaChangeDuringLookup(t *testing.T) {
	h := newHarness(t)
	h.deliver(seen(none))
	h.Config = stale{h.apps, h}
	for _, m := range []bus.Message{seen(none), h.again(both)} {
		got, err := h.Deliver(t.Context(), h.push(m, 1))
		if got.Fate != apply.Retried || !errors.Is(err, profile.ErrSchemaChanged) {
			t.Errorf("result %+v, %v", got, err)
		}
	}
}

// stale returns an app as it is, and then changes its schemas.
type stale struct {
	*config.Store
	h *harness
}

func (s stale) App(ctx context.Context, appID string) (config.App, error) {
	app, err := s.Store.App(ctx, appID)
	s.h.check(err)
	_, err = s.UpdateLog(ctx, appID, func(a *config.App) error {
		a.Log.Write = []schema.Name{schema.Wide, schema.Narrow}
		a.Log.Read = a.Log.Read.Other()
		return nil
	})
	s.h.check(err)
	return app, nil
}
