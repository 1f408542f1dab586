package profile_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// Profiles are read in order, stored or computed, and count events whose writer has drawn
// a ticket and not written.
func TestReadStored(t *testing.T) {
	b := newFixture(t, 90, plain)
	const all = 150 // more than a group
	crowd(t, b, all)
	want := map[string]float64{}
	var users []string
	for i := range all {
		user := fmt.Sprintf("u%04d", i)
		if users = append(users, user, user); i%2 == 0 {
			b.read(user) // which stores it
		}
		want[user] = 30 * float64(i%4+1)
	}
	b.delete("u0003")
	want["u0003"] = 0
	must.Succeed(t, b.store.Events.Log(appID, b.app().Log).Append(ctx, []store.LogEvent{bought("u0002", b.clock-9*hour)}))
	if _, err := b.store.Users.TakeTicket(ctx, appID, "u0002"); err != nil {
		t.Fatal(err)
	}
	want["u0002"] += 30
	spoil["a cell of the log"](b, "u0007")
	delete(want, "u0007")
	slices.Reverse(users)
	var read []string
	err := b.eng.ReadStored(ctx, b.app(), append(users, "nobody"), func(user string, stored []byte) error {
		p, err := affinity.ParseProfile(stored, 0)
		if got := red(profile.Result{Profile: p}); err != nil || got != want[user] || p.StrategyVersion != b.app().ScoringVersion {
			t.Errorf("%s: %v at version %d, %v; want %v", user, got, p.StrategyVersion, err, want[user])
		}
		read = append(read, user)
		return nil
	})
	var faulty profile.Faulty
	if !errors.As(err, &faulty) || len(faulty) != 1 || len(read) != len(want) || !slices.IsSorted(read) {
		t.Errorf("%d profiles, sorted %v, %v; want %d and u0007 faulty", len(read), slices.IsSorted(read), err, len(want))
	}
}

// A user whose row has the ticket of before is not read again, and one who was not read or
// has changed is.
func TestReadChanged(t *testing.T) {
	b := newFixture(t, 90, plain)
	crowd(t, b, 6)
	tickets := map[string]int64{}
	for i := range 6 {
		tickets[fmt.Sprintf("u%04d", i)] = 0
	}
	read := func() (again []string) {
		t.Helper()
		err := b.eng.ReadChanged(ctx, b.app(), tickets, func(user string, stored []byte, ticket int64) error {
			if stored == nil && ticket != tickets[user] {
				t.Errorf("%s is unchanged at ticket %d, was read at %d", user, ticket, tickets[user])
			}
			if tickets[user] = ticket; stored != nil {
				again = append(again, user)
			}
			return nil
		})
		must.Succeed(t, err)
		slices.Sort(again)
		return again
	}
	if again := read(); len(again) != 6 {
		t.Errorf("read %v, want all", again)
	}
	if again := read(); len(again) != 0 {
		t.Errorf("read %v again, want none", again)
	}
	b.apply(bought("u0001", b.clock-hour))
	b.delete("u0002")
	if again := read(); !slices.Equal(again, []string{"u0001", "u0002"}) {
		t.Errorf("read %v again, want those who changed", again)
	}
}
