package profile_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// each recomputes and returns the users that Each is called for, and the score that
// their profiles have now for color:Red.
func (b *fixture) each(o profile.RecomputeOptions) (users []string, scores map[string]float64) {
	b.t.Helper()
	scores = map[string]float64{}
	o.Each = func(user string, stored []byte) error {
		p, err := affinity.ParseProfile(stored, 0)
		if err != nil {
			return err
		}
		p = p.At(b.clock)
		users = append(users, user)
		for _, a := range p.Affinities {
			if a.Facet == "color" && a.Value == "Red" {
				scores[user] = a.Scores[0]
			}
		}
		return nil
	}
	must.Succeed(b.t, b.recompute(o))
	return users, scores
}

// Each gets the profile of every known user in order, computed or stored, whether
// OnlyStale skips users or not.
func TestEachGetsAllProfilesInOrder(t *testing.T) {
	for _, onlyStale := range []bool{false, true} {
		t.Run(fmt.Sprintf("only stale %t", onlyStale), func(t *testing.T) {
			const all = 520 // more than two groups of 256
			b := newFixture(t, 90, plain)
			crowd(t, b, all)
			for i := range all / 2 {
				b.read(fmt.Sprintf("u%04d", 2*i)) // which stores every second profile
			}
			b.delete("u0001")
			b.clock++
			users, scores := b.each(profile.RecomputeOptions{OnlyStale: onlyStale})
			if len(users) != all-1 || !slices.IsSorted(users) || slices.Contains(users, "u0001") {
				t.Fatalf("called for %d users, sorted %t", len(users), slices.IsSorted(users))
			}
			for _, user := range users {
				if want := red(b.read(user)); math.Abs(scores[user]-want) > 1e-9*want {
					t.Errorf("%s: %v, want %v", user, scores[user], want)
				}
			}
		})
	}
}

// A stored profile below the newest ticket may lack an event that is in the log.
func TestEachCountsEventsOfTicketsThatWereDrawn(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(bought("u", b.clock-2*hour))
	before := red(b.read("u"))
	must.Succeed(t, b.store.Events.Log(appID, b.app().Log).Append(ctx, b.of("u")))
	if _, err := b.store.Users.TakeTicket(ctx, appID, "u"); err != nil {
		t.Fatal(err)
	}
	if _, scores := b.each(profile.RecomputeOptions{OnlyStale: true}); scores["u"] != 2*before {
		t.Errorf("%v, want the event of the writer that has not written its profile, %v", scores["u"], 2*before)
	}
}

// The error of Each ends the recompute, and a task that continues repeats that group.
func TestErrorOfEachEndsTheRecompute(t *testing.T) {
	b := newFixture(t, 90, plain)
	crowd(t, b, 5)
	full := errors.New("full")
	counted := int64(0)
	_, err := b.eng.Recompute(ctx, b.app(), store.Range{}, profile.RecomputeOptions{Each: func(string, []byte) error { return full }},
		func(p profile.Progress) error { counted = p.Users; return nil })
	if !errors.Is(err, full) || counted != 0 {
		t.Errorf("%v after %d users", err, counted)
	}
}
