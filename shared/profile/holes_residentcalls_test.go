package profile_test

import (
	"context"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
)

// A call is remembered where its user lives. Two deliveries are one event, also if the user moves, up to any request of
// the mover, after any request of the first delivery. The region that the user has left remembers nothing after the wait.
func TestCallsOfAResidentMeetAMove(t *testing.T) {
	for first := range 7 {
		for moves, goesOn := first%5, true; goesOn; moves += 5 {
			r := newResidents(t)
			r.apply(r.at(1))
			a := r.startDelivery(r.fresh(), r.app(), -2*second)
			r.upTo(a, first)
			m := r.start("move", func(ctx context.Context) error {
				return profile.ResidentsOf(r.fresh()).Move(ctx, r.app(), "u", "us", endless)
			})
			goesOn = r.upTo(m, moves)
			must.Succeed(t, r.deliver(ctx, r.fresh(), r.app(), -second))
			r.finish(a)
			r.finish(m)
			r.eng = r.fresh()
			r.expect(2)
			for !r.clean("u", "eu") {
				r.t.Log("cleaned in another step")
			}
			if left := callsIn(t, r.client); len(left) > 0 {
				t.Errorf("the region that the user has left remembers calls: %v", left)
			}
			must.Succeed(t, r.deliver(ctx, r.fresh(), r.app(), -second/2))
			r.expect(2)
			if t.Failed() {
				t.Fatalf("the mover at request %d met the delivery at %d", moves, first)
			}
		}
	}
}
