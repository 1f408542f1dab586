package profile_test

import (
	"context"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// window gives the app of a harness a write window of 2 s. It returns an engine that
// marks, and the users whose refresh it asked for.
func (s *harness) window() (e *profile.Engine, later *[]string) {
	s.t.Helper()
	if err := s.apps.SetLimits(ctx, appID, limit.Numbers{WriteWindowMs: 2000}); err != nil {
		s.t.Fatal(err)
	}
	later = new([]string)
	e = s.neverFolding()
	e.SetLater(func(_ context.Context, _ config.App, users []string) { *later = append(*later, users...) })
	return e, later
}

// startEnd starts the refresh at the end of a window.
func (s *harness) startEnd() *actor {
	app := s.app()
	return s.start("end of a window", func(ctx context.Context) error {
		_, err := s.neverFolding().RefreshMarked(ctx, app, "u")
		return err
	})
}

// A message is acknowledged after its mark. Before, readers may still serve the profile
// without its event.
func TestMarkPrecedesAcknowledgment(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1))
		s.expect(1)
		e, later := s.window()
		m := s.startApply(e, s.at(2))
		s.stepTo(m, "ReadModifyWriteRow")
		if len(*later) > 0 {
			t.Error("a refresh was asked for before the mark")
		}
		s.finish(m)
		if !slices.Equal(*later, []string{"u"}) {
			t.Errorf("refreshes of %v were asked for, want one of u", *later)
		}
		s.expect(2)
	})
}

// The refresh at the end of a window reads row and log, a message marks the user, and the
// refresh stores at the ticket that it has read: no reader serves that.
func TestMarkOutlivesRefreshBeforeIt(t *testing.T) {
	onEveryBigtable(t, testMarkOutlivesRefreshBeforeIt)
}

func testMarkOutlivesRefreshBeforeIt(t *testing.T, open opener) {
	for _, reader := range []bool{false, true} {
		s := newHarness(t, open)
		e, _ := s.window()
		s.finish(s.startApply(e, s.at(1)))
		r := s.startEnd()
		if reader {
			s.finish(r)
			s.outdate()
			r = s.startRead()
		}
		s.stepTo(r, "MutateRow") // it has read the log
		s.finish(s.startApply(e, s.at(2)))
		s.finish(r)
		s.expect(2)
	}
}

// A task that comes late, twice or never changes no answer, and one that finds a valid
// profile writes nothing.
func TestEndOfWindowMattersToNobody(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e, _ := s.window()
		s.finish(s.startEnd()) // of a user who is not there
		s.finish(s.startApply(e, s.at(1)))
		s.expect(1) // a read computes and stores
		if done, err := s.neverFolding().RefreshMarked(ctx, s.app(), "u"); done || err != nil {
			t.Errorf("a refresh after a read computed: %v, %v", done, err)
		}
		s.finish(s.startApply(e, s.at(2)))
		first, second := s.startEnd(), s.startEnd()
		s.stepTo(first, "MutateRow")
		s.stepTo(second, "MutateRow")
		s.finish(second)
		s.finish(first)
		if r := s.read("u"); !r.Stored {
			t.Error("the profile is not stored after the end of the window")
		}
		s.expect(2)
		if _, err := s.eng.Delete(ctx, appID, "u"); err != nil {
			t.Fatal(err)
		}
		s.finish(s.startEnd())
		s.expect(0)
	})
}

// A base lacks the events of marks, and an addition to it would hide them.
func TestAdditionAfterMark(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		adding := s.fixture.engine()
		apply := func(e *profile.Engine, ev store.LogEvent) {
			t.Helper()
			s.applyTo(e, ev)
		}
		apply(adding, s.at(1))
		e, _ := s.window()
		apply(e, s.at(2))
		apply(adding, s.at(3)) // an engine that knows no windows
		s.expect(3)
		apply(adding, s.at(4))
		s.expect(4)
		if adding.Counters().Added.Load() != 1 {
			t.Errorf("%d events were added, want the last one only", adding.Counters().Added.Load())
		}
	})
}

// Messages of a window write no profile, and their refresh writes one.
func TestWindowWritesOneProfile(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	e, later := s.window()
	for i := range int64(50) {
		s.applyTo(e, s.at(1+i%20))
		if row, err := s.store.Users.ReadUser(ctx, appID, "u"); err != nil || row.HasProfile {
			t.Fatalf("message %d wrote a profile, %v", i, err)
		}
	}
	if done, err := e.RefreshMarked(ctx, s.app(), "u"); !done || err != nil || len(*later) != 50 {
		t.Errorf("refresh %v, %v; %d users to refresh", done, err, len(*later))
	}
	s.expect(20)
}
