package profile_test

import (
	"errors"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// A user may opt out of some types: all they did before is deleted, and events of these
// types are dropped from then on. Others count, in every computation and after a fold.
func TestOptOutOfSomeTypes(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		if _, err := s.eng.OptOut(ctx, appID, "u", event.InstantSearch); !errors.Is(err, profile.ErrTypes) {
			t.Errorf("%v, want ErrTypes", err)
		}
		s.apply(s.ahead(0), s.view(0))
		s.optOut(event.Conversion)
		s.expect(0)
		s.purge(s.clock)
		s.clock += hour
		// The log holds a purchase for a moment: nobody counts or folds it.
		m := s.startApply(s.neverFolding(), s.ahead(-120*second))
		s.step(m, 1)
		o := s.apply(s.view(-130*second), s.view(-110*second), s.view(-100*second))
		if o != (profile.Outcome{Applied: 3}) {
			t.Errorf("%+v; want the views applied", o)
		}
		s.expectViews(3)
		s.fold()
		if n := s.manifest().Blocks[0].Events; n != 3 {
			t.Errorf("a block of %d events, want 3", n)
		}
		s.expectViews(3)
		s.finish(m)
		s.expectViews(3)
		if n := s.rowCount(); n != 3 {
			t.Errorf("%d events in the log, want 3", n)
		}
		if o, err := s.eng.Import(ctx, s.app(), []store.LogEvent{s.ahead(-110 * second)}); err != nil || o.Refused != 1 {
			t.Errorf("%+v, %v; want the purchase refused", o, err)
		}
		s.expectViews(3)
		before := s.clock
		s.optOut(event.Conversion) // again: nothing is deleted
		s.expectViews(3)
		if s.clock > before {
			t.Errorf("deleted until %d, want an earlier time", s.clock-1)
		}
		s.optOut(event.View)
		s.expect(0)
		s.apply(s.ahead(0), s.view(0))
		s.expect(1)
	})
}

// expectViews is expect for views, of a user who is out of purchases.
func (s *harness) expectViews(n int) {
	s.t.Helper()
	if r := s.read("u"); red(r) != float64(3*n) || r.Known != (n > 0) {
		s.t.Errorf("read %+v, want %d views", r.Profile, n)
	}
	s.round(profile.RecomputeOptions{})
	r, err := s.eng.ReadRanking(ctx, s.app(), "u")
	if err != nil || red(r) != float64(3*n) || len(r.Session.Events) != n {
		s.t.Errorf("after a recompute %+v with %d events, %v; want %d views", r.Profile, len(r.Session.Events), err, n)
	}
	swept := 0
	_, err = s.eng.SweepObjects(ctx, s.app(), store.Range{}, profile.SweepOptions{}, func(string, affinity.Event) error { swept++; return nil },
		func(profile.SweepProgress) error { return nil })
	if err != nil || swept != n {
		s.t.Errorf("a sweep finds %d events, %v; want %d", swept, err, n)
	}
}

// The consents follow the receipt and the types in the cell: whatever is there stays.
func TestOptOutKeepsConsents(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	s.optOut(event.Click)
	cell := func() []byte {
		row, err := s.client.Open(store.TableUsers).ReadRow(ctx, appID+",u,", bigtable.RowFilter(bigtable.ChainFilters(
			bigtable.ColumnFilter("x"), bigtable.LatestNFilter(1))))
		if err != nil || len(row["u"]) != 1 {
			t.Fatalf("%v, %v", row, err)
		}
		return row["u"][0].Value
	}
	if n := len(cell()); n != 9 {
		t.Fatalf("%d bytes, want the receipt and the types", n)
	}
	newer := append(cell(), "more"...)
	m := bigtable.NewMutation()
	m.DeleteCellsInColumn("u", "x")
	m.Set("u", "x", bigtable.ServerTime, newer)
	must.Succeed(t, s.client.Open(store.TableUsers).Apply(ctx, appID+",u,", m))
	s.clock += second
	s.delete("u")
	if got := cell(); string(got[9:]) != "more" || event.Types(got[8]) != event.Clicks {
		t.Errorf("%q, want what follows the receipt to stay", got)
	}
	s.optIn()
	if got := cell(); string(got[9:]) != "more" || got[8] != 0 {
		t.Errorf("%q, want no types and the rest as it was", got)
	}
}

// A message is given up that also has a user with a manifest of a newer version. What
// others have opted out of is dropped all the same.
func TestFaultyUserKeepsNothingOfOthers(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	s.optOut()
	m := bigtable.NewMutation()
	m.Set("u", "m", bigtable.Now(), []byte("packed by a newer version"))
	must.Succeed(t, s.client.Open(store.TableUsers).Apply(ctx, appID+",v,", m))
	events := []store.LogEvent{s.ahead(0), received(bought("v", s.clock), s.clock)}
	a := s.startApply(s.neverFolding(), events...)
	s.step(a, 1) // they are in the log
	s.kill(a)
	var faulty profile.Faulty
	if err := s.eng.Abandon(ctx, s.app(), events); !errors.As(err, &faulty) || len(faulty) != 1 || faulty["v"] == nil {
		t.Errorf("%v, want the fault of v", err)
	}
	s.expectGone()
}
