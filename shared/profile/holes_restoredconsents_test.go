package profile_test

import (
	"context"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// copied are consents of a copy of a user who has granted their one purpose since an instant (ms).
func (s *harness) copied(since int64) consent.Consents {
	s.t.Helper()
	c, _, err := s.app().Purposes.Ask(nil, map[string]bool{"bought": true}, affinity.Tombstone{DeletedUntil: since, ReceivedUntil: since + 1}, since)
	must.Succeed(s.t, err)
	return c
}

func (s *harness) restoreConsents(c consent.Consents) profile.Consented {
	s.t.Helper()
	said, err := profile.ConsentsOf(s.eng).Restore(ctx, s.app(), "u", c)
	must.Succeed(s.t, err)
	s.clock += 2 // the slack is over
	return said
}

// onEveryAsked runs a test with one purpose, which must be granted, on every Bigtable.
func onEveryAsked(t *testing.T, test func(*testing.T, *harness)) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.setPurposes([]consent.Purpose{{Name: "bought", Surfaces: []consent.Surface{consent.Rank}}})
		test(t, s)
	})
}

// A user of whom nothing is here yet has what a copy says: what was received since then counts. A copy that is restored
// again changes nothing.
func TestRestoredConsentsOfNewUser(t *testing.T) {
	onEveryAsked(t, func(t *testing.T, s *harness) {
		s.clear()
		granted := s.copied(s.clock - 10*second)
		if said := s.restoreConsents(granted); !said.Changed || !said.Grants["bought"] {
			t.Errorf("restored: %+v", said)
		}
		if o := s.apply(s.ahead(0)); o.Applied != 1 {
			t.Errorf("what was received since then: %+v", o)
		}
		before := s.cells(store.TableUsers)
		s.restoreConsents(granted)
		s.expectRows(1)
		if n := len(s.cells(store.TableUsers)); n != len(before) {
			t.Errorf("%d rows of users, want %d", n, len(before))
		}
		s.consent("bought", false)
		s.restoreConsents(granted) // the later answer holds
		if said, err := profile.ConsentsOf(s.eng).Read(ctx, s.app(), "u"); err != nil || said.Grants["bought"] {
			t.Errorf("a copy of before grants it: %+v, %v", said, err)
		}
	})
}

// A restore meets a message at each of its requests. If it brings an event back which the message drops, a profile
// counts what the log does not have.
func TestMessageMeetsRestoredConsents(t *testing.T) {
	onEveryAsked(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			since := s.clock - 10*second
			e := s.ahead(0)
			m := s.startApply(s.neverFolding(), e)
			goesOn := s.upTo(m, requests)
			s.restoreConsents(s.copied(since))
			read := s.read("u")
			s.finish(m)
			s.clock += second
			s.expect(s.rowCount())
			if read.Known && s.rowCount() == 0 {
				t.Errorf("after %d requests a read counted an event that is dropped", requests)
			}
			return goesOn
		})
	})
}

// A restore overtakes a message of which it sees nothing, and the message finds the consents of after it.
func TestRestoredConsentsMeetMessage(t *testing.T) {
	onEveryAsked(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			granted := s.copied(s.clock - 10*second)
			app := s.app()
			r := s.start("restore", func(ctx context.Context) error {
				_, err := profile.ConsentsOf(s.neverFolding()).Restore(ctx, app, "u", granted)
				return err
			})
			goesOn := s.upTo(r, requests)
			o := s.apply(s.ahead(0))
			s.clock += 2
			s.finish(r)
			s.expect(s.rowCount())
			if o.Applied+o.Withheld != 1 {
				t.Errorf("after %d requests: %+v", requests, o)
			}
			s.clock += second
			s.apply(s.ahead(0))
			s.expect(s.rowCount())
			return goesOn
		})
	})
}
