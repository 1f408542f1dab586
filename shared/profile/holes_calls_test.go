package profile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// Each test leads deliveries of one call into the interleaving in which it would count twice
// or never without a rule. TestModelOfCalls visits all of them.

// deliver delivers a call that has no time of its own, as a process that knows app. The
// delivery was received so many ms after the clock of the test.
func (s *harness) deliver(ctx context.Context, e *profile.Engine, app config.App, after int64) error {
	receipt := s.clock + after
	raw := fmt.Sprintf(`{"eventType":"conversion","eventName":"Bought","index":"i","userToken":"u","filters":["color:Red"],"eventId":"m1","timestamp":%d}`, receipt)
	decoded, err := event.Decode([]byte(raw), event.Rules{Now: time.UnixMilli(receipt)})
	if err != nil {
		return err
	}
	events := []event.Event{decoded}
	if err := e.Remember(ctx, app, events); err != nil {
		return err
	}
	row := bought("u", events[0].Time)
	row.ID, row.Receipt, row.Call = events[0].ID(), receipt, events[0].Call
	row.Original = schema.Original{ReceivedAt: receipt, Index: "i", Event: events[0].Raw}.Append(nil)
	_, err = e.Apply(ctx, app, []store.LogEvent{row})
	return err
}

func (s *harness) startDelivery(e *profile.Engine, app config.App, after int64) *actor {
	return s.start("delivery", func(ctx context.Context) error { return s.deliver(ctx, e, app, after) })
}

func (s *harness) delivered(after int64) {
	s.t.Helper()
	must.Succeed(s.t, s.deliver(ctx, s.eng, s.app(), after))
}

// callsIn are the calls that a Bigtable remembers, with their times.
func callsIn(t *testing.T, client *bigtable.Client) (times []int64) {
	t.Helper()
	err := client.Open(store.TableCalls).ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		for _, item := range r["c"] {
			n := int64(0)
			for _, b := range item.Value {
				n = n<<8 | int64(b)
			}
			times = append(times, n)
		}
		return true
	})
	must.Succeed(t, err)
	return times
}

// Two deliveries that meet at any of their requests are one event.
func TestDeliveriesMeet(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	atEveryPair(func(first, other int) (bool, bool) {
		s.clear()
		a, b := s.startDelivery(s.engine(), s.app(), -2*second), s.startDelivery(s.engine(), s.app(), -second)
		aGoesOn, bGoesOn := s.upTo(a, first), s.upTo(b, other)
		s.finish(a)
		s.expect(1)
		s.finish(b)
		s.expect(1)
		return aGoesOn, bGoesOn
	})
}

// A delivery dies at any of its requests. The next one is the same event.
func TestDeliveryAfterCrash(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	atEvery(func(requests int) bool {
		s.clear()
		a := s.startDelivery(s.engine(), s.app(), -2*second)
		goesOn := s.upTo(a, requests)
		if goesOn {
			s.kill(a)
		}
		s.delivered(-second)
		s.expect(1)
		return goesOn
	})
}

// A second delivery meets the deletion and the purge of the user at any of their requests.
// Then a third one comes. It was made before the deletion, but was received after it: it
// begins a new profile, in which the call counts once.
func TestDeliveryMeetsPurge(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	atEveryPair(func(first, other int) (bool, bool) {
		s.clear()
		s.delivered(-second)
		a, app := s.startDelivery(s.engine(), s.app(), 10), s.app()
		d := s.start("deletion", func(ctx context.Context) error {
			e := s.engine()
			until, err := e.Delete(ctx, app.ID, "u")
			if err == nil {
				_, err = e.Purge(ctx, app.ID, "u", until)
			}
			return err
		})
		aGoesOn, dGoesOn := s.upTo(a, first), s.upTo(d, other)
		s.finish(a)
		s.finish(d)
		s.delivered(20)
		s.expect(1)
		s.delivered(30)
		s.expect(1)
		return aGoesOn, dGoesOn
	})
}

// Of deliveries that are received before a deletion, and applied after its purge, nothing
// is remembered. The purge leaves a call of after the deletion.
func TestLateDeliveryIsForgotten(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	s.delivered(-second)
	until, err := s.eng.Delete(ctx, appID, "u")
	must.Succeed(t, err)
	_, err = s.eng.Purge(ctx, appID, "u", until)
	must.Succeed(t, err)
	if times := callsIn(t, s.client); len(times) != 0 {
		t.Errorf("after the purge: %v", times)
	}
	s.delivered(-second)
	s.expect(0)
	if times := callsIn(t, s.client); len(times) != 0 {
		t.Errorf("after a late delivery: %v", times)
	}
	s.delivered(10)
	_, err = s.eng.Purge(ctx, appID, "u", until)
	must.Succeed(t, err)
	s.delivered(20)
	s.expect(1)
}

// A delivery of before the deletion takes the time of one of after it. It is dropped, and
// leaves the memory to the other.
func TestDroppedDeliveryLeavesLaterTime(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	_, err := s.eng.Delete(ctx, appID, "u")
	must.Succeed(t, err)
	s.delivered(10)
	s.delivered(-second)
	s.delivered(20)
	s.expect(1)
}

// A second delivery meets the mover at any of their requests. The call counts once, before
// and after the move.
func TestDeliveryMeetsMover(t *testing.T) {
	for name, before := range map[string]int{"the first": 0, "another": 1} {
		t.Run(name, func(t *testing.T) {
			atEveryPair(func(first, mover int) (bool, bool) {
				tr := newMoving(t)
				for range before {
					tr.delivered(-3 * second)
				}
				app := tr.app()
				a, m := tr.startDelivery(tr.process(stuck{tr.apps, app}), app, -2*second), tr.mover()
				goesOn, moverGoesOn := tr.upTo(a, first), tr.upTo(m, mover)
				tr.finish(a)
				tr.expect(2)
				tr.finish(m)
				tr.delivered(-second)
				tr.expect(2)
				tr.switched()
				tr.delivered(-second / 2)
				tr.end()
				tr.delivered(-second / 4)
				tr.expect(2)
				return goesOn && first < asked, moverGoesOn
			})
		})
	}
}

// asked is how many requests a delivery makes before it no longer touches the memory, and
// has logged its event.
const asked = 4

// Two deliveries meet, of processes with configurations of two phases of a move.
func TestDeliveriesOfTwoPhasesMeet(t *testing.T) {
	for name, phases := range map[string]func(tr *travels) (config.App, config.App){
		"users and switch": func(tr *travels) (config.App, config.App) {
			before := tr.app()
			tr.switched()
			return before, tr.app()
		},
		"switch and drop": func(tr *travels) (config.App, config.App) {
			tr.switched()
			before := tr.app()
			tr.nextPhase()
			return before, tr.app()
		},
		"users and the way back": func(tr *travels) (config.App, config.App) {
			before := tr.app()
			tr.change((*config.App).UndoMove)
			return before, tr.app()
		},
	} {
		t.Run(name, func(t *testing.T) {
			atEveryPair(func(first, other int) (bool, bool) {
				tr := newMoving(t)
				tr.moveUser()
				before, after := phases(tr)
				a := tr.startDelivery(tr.process(stuck{tr.apps, before}), before, -3*second)
				b := tr.startDelivery(tr.process(stuck{tr.apps, after}), after, -2*second)
				aGoesOn, bGoesOn := tr.upTo(a, first), tr.upTo(b, other)
				tr.finish(a)
				tr.finish(b)
				tr.delivered(-second)
				tr.expect(2)
				return aGoesOn && first < asked, bGoesOn && other < asked
			})
		})
	}
}

// A call is delivered before its user moves, and again when nothing is left of the region
// in which that was.
func TestCallTravels(t *testing.T) {
	tr := newTravels(t)
	tr.delivered(-3 * second)
	tr.begin()
	tr.moveUser()
	tr.switched()
	tr.end()
	tr.delivered(-second)
	tr.expect(1)
}

// The user comes back from a region in which the call was delivered.
func TestCallComesBack(t *testing.T) {
	tr := newMoving(t)
	tr.moveUser()
	tr.delivered(-3 * second)
	tr.undo()
	tr.delivered(-2 * second)
	tr.moveUser()
	tr.delivered(-second)
	tr.expect(2)
}

// A purge ends between the copy of the memory and the arrival. Nothing is remembered in
// the new region.
func TestCopiedCallIsPurged(t *testing.T) {
	tr := newMoving(t)
	tr.delivered(-second)
	m := tr.moverAt(store.Leaving)
	tr.stepTo(m, "CheckAndMutateRow") // it has read the memory
	until, err := tr.eng.Delete(ctx, appID, "u")
	tr.must(err)
	_, err = tr.eng.Purge(ctx, appID, "u", until)
	tr.must(err)
	tr.finish(m)
	for region, s := range map[string]*store.Store{"eu": tr.store, "us": tr.us} {
		keys, err := s.Rows.FindRows(ctx, store.AppRows{App: appID, Table: store.TableCalls}, 10)
		if err != nil || len(keys) != 0 {
			t.Errorf("%s remembers %v, %v", region, keys, err)
		}
	}
	tr.expect(0)
}
