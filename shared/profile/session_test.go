package profile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// rank reads a user with their session, and checks that it is the session of the
// log as of the time of the answer.
func (b *fixture) rank() profile.Result {
	b.t.Helper()
	r, err := b.eng.ReadRanking(ctx, b.app(), "u")
	must.Succeed(b.t, err)
	want := affinity.ReferenceSession(b.logged(), b.app().Strategy, affinity.Window{
		Now: r.Anchor, RetentionDays: r.RetentionDays, DeletedUntil: r.DeletedUntil,
	})
	if diff := cmp.Diff(want, r.Session, cmpopts.EquateEmpty()); diff != "" {
		b.t.Errorf("session (stored: %v) (-want +got):\n%s", r.Stored, diff)
	}
	return r
}

// logged returns the user's events in the order of the log.
func (b *fixture) logged() []affinity.Event {
	b.t.Helper()
	events, err := readLog(b.store, b.app(), "u")
	must.Succeed(b.t, err)
	return events
}

// sessionCells returns the row's session cells, the newest first.
func (b *fixture) sessionCells() []bigtable.ReadItem {
	b.t.Helper()
	row, err := b.client.Open(store.TableUsers).ReadRow(ctx, appID+",u,")
	must.Succeed(b.t, err)
	return slices.DeleteFunc(row["p"], func(item bigtable.ReadItem) bool { return item.Column != "p:n" })
}

// viewed is a view of red objects.
func viewed(at int64, objects ...string) store.LogEvent {
	e := logEvent("u", at, "Viewed", event.View, affinity.Count{Facet: "color", Value: "Red", N: 1})
	e.Index, e.ObjectIDs = "products", objects
	e.ID = fmt.Sprintf("v%d%v", at, objects)
	return e
}

func TestSessionIsStoredWithProfile(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(viewed(b.clock-hour, "o1"), viewed(b.clock-2*hour, "o2", "o3"), logEvent("u", b.clock-3*hour, "Ignored", event.Click))
	if r := b.rank(); !r.Stored || len(r.Session.Events) != 2 {
		t.Errorf("%+v, want two events stored by the refresh", r)
	}
	impact := plain
	impact.PersonalizationImpact = 50 // which changes no score
	b.setStrategy(impact)
	if r := b.rank(); !r.Stored {
		t.Error("a change of the impact made the session invalid")
	}
	b.setStrategy(decaying) // which does not score views
	if r := b.rank(); r.Stored || len(r.Session.Events) != 0 {
		t.Errorf("%+v, want no event of the new strategy, computed", r)
	}
	if r := b.rank(); !r.Stored {
		t.Error("an empty session is not stored")
	}
	b.setStrategy(plain)
	b.read("u") // computes the profile, and the session for the next reader
	if r := b.rank(); !r.Stored || len(r.Session.Events) != 2 {
		t.Errorf("%+v, want the session that a read of the profile stored", r)
	}
	if r, err := b.eng.ReadRanking(ctx, b.app(), "nobody"); err != nil || r.Known || len(r.Session.Events) != 0 {
		t.Errorf("a user without a row: %+v, %v", r, err)
	}
}

// The profile stays valid, because what leaves the window scores no filter.
func TestSessionExpires(t *testing.T) {
	b := newFixture(t, 10, plain)
	first := b.clock
	bare := viewed(first, "o1")
	bare.Counts = nil
	b.clock += day
	b.apply(bare, bought("u", first+day))
	b.clock = first + 10*day - 1
	if r := b.rank(); !r.Stored || len(r.Session.Events) != 2 {
		t.Errorf("a millisecond before it leaves: %+v", r)
	}
	b.clock++
	if r := b.rank(); !r.Stored || len(r.Session.Events) != 1 {
		t.Errorf("an event has left the window: %+v", r)
	}
}

// An import computes nothing: its marker makes the next reader compute.
func TestImportMarksSession(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(viewed(b.clock-hour, "o1"))
	b.importEvents(viewed(b.clock-2*hour, "o2"))
	if r := b.rank(); r.Stored || len(r.Session.Events) != 2 {
		t.Errorf("%+v, want both events, computed", r)
	}
	if r := b.rank(); !r.Stored {
		t.Error("the computed session is not stored")
	}
}

// A recompute leaves no older session in the row: nothing would ever remove it.
func TestRecomputeDropsSession(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(viewed(b.clock-hour, "o1"))
	b.recomputeAll()
	if cells := b.sessionCells(); len(cells) == 0 || len(cells[0].Value) != 0 {
		t.Errorf("the recompute left %v", cells)
	}
	if r := b.rank(); r.Stored {
		t.Error("a read served a session that the recompute has dropped")
	}
	if r := b.rank(); !r.Stored {
		t.Error("the computed session is not stored")
	}
}

// A deletion leaves a marker in the session's column, too. Without it the session
// of a refresh that began before would stay in the row as the newest cell.
func TestDeletionDropsSession(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(viewed(s.clock-2*hour, "o1"))
		m := s.startApply(s.neverFolding(), viewed(s.clock-hour, "o2"))
		s.stepToWrite(m)
		s.delete("u")
		s.finish(m)
		if cells := s.sessionCells(); len(cells) == 0 || len(cells[0].Value) != 0 {
			t.Errorf("a deleted user's newest session: %v", cells)
		}
		s.clock++
		if r := s.rank(); r.Known || len(r.Session.Events) != 0 {
			t.Errorf("a deleted user has %+v", r)
		}
	})
}

// writeAlone writes a user's profile, and no session, at the ticket of the row.
func (b *fixture) writeAlone() {
	b.t.Helper()
	row, err := b.store.Users.ReadUser(ctx, appID, "u")
	must.Succeed(b.t, err)
	sets, err := b.eng.Compute(ctx, b.app(), []string{"u"}, affinity.Compile(b.app().Strategy))
	must.Succeed(b.t, err)
	p := sets["u"][0]
	p.StrategyVersion, p.Marks = b.app().StrategyVersion, 0
	outline := p
	outline.Affinities, outline.Total, outline.LeftOut = nil, 0, nil
	m, at := bigtable.NewMutation(), bigtable.Timestamp(row.Ticket*1000)
	m.Set("p", "p", at, p.AppendBinary(nil))
	m.Set("p", "s", at, outline.AppendBinary(nil))
	must.Succeed(b.t, b.client.Open(store.TableUsers).Apply(ctx, appID+",u,", m))
}

// A row may hold the session of another ticket than that of the newest profile.
func TestSessionOfOtherTicketIsNotServed(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(viewed(b.clock-hour, "o1"))
	must.Succeed(t, b.store.Events.Log(appID, b.app().Log).Append(ctx, []store.LogEvent{viewed(b.clock-hour+1, "o2")}))
	if _, err := b.store.Users.TakeTicket(ctx, appID, "u"); err != nil {
		t.Fatal(err)
	}
	b.writeAlone()
	if r := b.read("u"); !r.Stored || red(r) != 6 {
		t.Fatalf("%+v, want the profile without a session", r)
	}
	if r := b.rank(); r.Stored || len(r.Session.Events) != 2 {
		t.Errorf("%+v, want both events, computed", r)
	}
}

// A row may hold the session of another profile of the same ticket.
func TestSessionOfOtherProfileIsNotServed(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(viewed(b.clock-hour, "o1"), bought("u", b.clock-hour))
	b.setStrategy(decaying)
	b.writeAlone()
	if r := b.read("u"); !r.Stored {
		t.Fatalf("%+v, want the profile without a session", r)
	}
	if r := b.rank(); r.Stored || len(r.Session.Events) != 1 {
		t.Errorf("%+v, want the one event that the strategy scores, computed", r)
	}
}

// A session and its profile count the same events: a second reading could hold an
// event that the profile does not count.
func TestSessionIsOfProfileReading(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(viewed(s.clock-3*hour, "o1"))
		m := s.startApply(s.neverFolding(), viewed(s.clock-2*hour, "o2"))
		s.stepToWrite(m)
		late := viewed(s.clock-hour, "o3")
		must.Succeed(t, s.store.Events.Log(appID, s.app().Log).Append(ctx, []store.LogEvent{late}))
		s.finish(m)
		r, err := s.eng.ReadRanking(ctx, s.app(), "u")
		if err != nil || !r.Stored || red(r) != 6 || len(r.Session.Events) != 2 {
			t.Errorf("%+v, %v; want two events in the profile and in the session", r, err)
		}
		s.apply(late)
		if r := s.rank(); !r.Stored || red(r) != 9 || len(r.Session.Events) != 3 {
			t.Errorf("%+v, want three events in both", r)
		}
	})
}

// The newest events of a user lie in blocks and in the log. Most of those in the
// newest blocks may not score: then older blocks are read again.
func TestSessionOfBlocksAndLog(t *testing.T) {
	for _, unscored := range []int{0, 20, 200} {
		s := newHarness(t, storetest.NewWithClient)
		s.eng.SetLimits(1000, 1000, 8, 1000, 0)
		s.eng.SetSessionEvents(3)
		var events []store.LogEvent
		for i := range 3 {
			events = append(events, viewed(s.clock-day+int64(i), fmt.Sprint("old", i)))
		}
		for i := range unscored {
			events = append(events, logEvent("u", s.clock-2*hour+int64(i), "Ignored", event.Click))
		}
		s.apply(events...)
		if done, err := s.eng.Fold(ctx, s.app(), "u"); !done || err != nil {
			t.Fatal(done, err)
		}
		s.apply(viewed(s.clock-hour, "new"))
		want := affinity.ReferenceSession(s.logged(), plain, affinity.Window{Now: s.clock, RetentionDays: 90}).First(3)
		for _, stored := range []bool{true, false} {
			r, err := s.eng.ReadRanking(ctx, s.app(), "u")
			if diff := cmp.Diff(want, r.Session, cmpopts.EquateEmpty()); err != nil || r.Stored != stored || diff != "" {
				t.Errorf("%d unscored, stored %v, %v (-want +got):\n%s", unscored, r.Stored, err, diff)
			}
			s.recomputeAll()
		}
	}
}

// Scoring skips the objects of a block, so the session alone finds them damaged.
func TestSessionOfDamagedBlock(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	s.apply(viewed(s.clock-day, "o1", "o2"), viewed(s.clock-2*day, "o3"))
	s.fold()
	s.recomputeAll() // drops the session
	block := s.manifest().Blocks[0]
	var value []byte
	err := s.store.Histories.ReadBlocks(ctx, appID, []store.BlockName{{User: "u", ID: block.ID}}, func(_ store.BlockName, b []byte) error {
		value = slices.Clone(b)
		return nil
	})
	must.Succeed(t, err)
	value[bytes.Index(value, []byte("o2"))+3] |= 0x80 // the posting of o2 is of an event beyond
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(value[1:], crc32.Update(crc32.Checksum(value[:1], castagnoli), castagnoli, value[5:]))
	must.Succeed(t, s.store.Histories.WriteBlocks(ctx, appID, "u", []store.BlockWrite{{ID: block.ID, Newest: block.Newest, Value: value}}))
	if r := s.read("u"); !r.Stored || red(r) != 6 {
		t.Fatalf("%+v, want the stored profile", r)
	}
	if _, err := s.eng.Compute(ctx, s.app(), []string{"u"}, affinity.Compile(plain)); err != nil {
		t.Fatal(err)
	}
	if n := s.eng.Counters().CorruptBlocks.Load(); n != 0 {
		t.Fatalf("scoring found the damage %d times, so the test shows nothing", n)
	}
	if r := s.rank(); r.Stored || len(r.Session.Events) != 2 {
		t.Errorf("%+v, want both events, from the log", r)
	}
	if n, m := s.eng.Counters().CorruptBlocks.Load(), s.manifest(); n != 1 || len(m.Blocks) != 0 {
		t.Errorf("%d damaged blocks, and the manifest names %+v; want the block removed", n, m.Blocks)
	}
}

// readLog returns a user's events in the order of the log.
func readLog(s *store.Store, app config.App, user string) ([]affinity.Event, error) {
	var events []affinity.Event
	ranges := []store.UserRange{{User: user, To: history.End}}
	err := s.Events.Log(app.ID, app.Log).Read(ctx, ranges, func(_ string, r store.LogRow) error {
		e, err := r.Event()
		e.Counts = slices.Clone(e.Counts)
		events = append(events, e)
		return err
	})
	return events, err
}
