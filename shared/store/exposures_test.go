package store_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// An exposure is stored only by what the row excludes at that instant, and travels with the user.
func TestExposures(t *testing.T) {
	s, ctx := storetest.New(t), t.Context()
	e := store.Exposure{Experiment: "x-1", Since: 1_700_000_000_000, Arm: "B_2", At: 1_700_000_000_123}
	read := func() store.User {
		t.Helper()
		all, err := s.Users.ReadUserExposures(ctx, app, []string{"ann"})
		must.Succeed(t, err)
		return all["ann"]
	}
	expose := func(row store.User, want bool) {
		t.Helper()
		done, err := s.Users.Expose(ctx, app, "ann", row, e)
		must.Succeed(t, err)
		if done != want {
			t.Errorf("stored: %t, want %t", done, want)
		}
	}
	expose(store.User{}, true)
	expose(store.User{}, false) // it is there
	before := read()
	if diff := cmp.Diff([]store.Exposure{e}, before.Exposures); diff != "" || before.Ticket != 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, parts := range []store.UserParts{store.UserState, store.UserProfile, store.UserSession, store.UserSummary, store.UserBase, store.UserTicket} {
		if row, err := s.Users.ReadPrimary(ctx, app, "ann", parts); err != nil || len(row.Exposures) > 0 || row.Exists {
			t.Errorf("parts %d: %+v, %v", parts, row, err)
		}
	}
	must.Succeed(t, s.Users.AdvanceTombstone(ctx, app, "ann", affinity.Tombstone{DeletedUntil: e.At, ReceivedUntil: e.At + 1}))
	if row := read(); len(row.Exposures) > 0 {
		t.Errorf("deleted: %+v", row.Exposures)
	}
	expose(before, false)
	expose(read(), true)
	// Consents delete nothing, an opt-out does.
	row, err := s.Users.TakeTicket(ctx, app, "ann")
	must.Succeed(t, err)
	if done, err := s.Users.SetConsents(ctx, app, "ann", row, []byte("c"), nil); err != nil || !done || len(read().Exposures) != 1 {
		t.Errorf("consents: %t, %v, %+v", done, err, read().Exposures)
	}
	if _, done, err := s.Users.SetOptOut(ctx, app, "ann", row, event.AllTypes, row.Deleted()); err != nil || !done || len(read().Exposures) > 0 {
		t.Errorf("opt-out: %t, %v, %+v", done, err, read().Exposures)
	}
	arrived := read()
	arrived.Exposures = before.Exposures
	if done, err := s.Users.Arrive(ctx, app, "ann", store.Arrival{Epoch: 2, Row: arrived}); err != nil || !done {
		t.Fatalf("%t, %v", done, err)
	}
	there, err := s.Users.ReadPrimary(ctx, app, "ann", store.UserArrival)
	must.Succeed(t, err)
	if !slices.Equal(there.Exposures, before.Exposures) {
		t.Errorf("after the arrival: %+v", there.Exposures)
	}
	must.Succeed(t, s.Events.LeaveUser(ctx, app, "ann"))
	if row := read(); len(row.Exposures) > 0 {
		t.Errorf("left behind: %+v", row.Exposures)
	}
}
