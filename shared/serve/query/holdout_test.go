package query_test

import (
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/experiment"
)

// Lists that leave out others than the app holds out answer nothing, and order a build. Afterwards no user who is held
// out is listed: not by the lists, not as one who has changed since, and not by a profile that the process has kept.
func TestHeldOutUsersAreNotListed(t *testing.T) {
	b := newBench(t)
	for i := range 60 {
		b.see(fmt.Sprint("user-", i), b.clock, "brand:v1")
	}
	b.buildLater()
	b.check("before", `{"filter":"brand:v1","above":0}`)
	for i := range 60 { // the process keeps their profiles
		b.change(fmt.Sprint("user-", i))
	}
	b.check("changed", `{"filter":"brand:v1","above":0}`)
	reader := b.reader
	for _, share := range []float64{0.2, 0.1, 0} {
		_, err := b.config.SetHoldout(t.Context(), appID, experiment.Holdout{Share: share, Seed: "q4"})
		must.Succeed(t, err)
		before := b.builds.ordered
		b.newReader()
		b.wantNotReady(b.app(), "The app holds out other users")
		if b.builds.ordered == before {
			t.Error("no build is ordered")
		}
		b.build()
		b.reader = reader
		b.clock += 60_000 // the process reads the manifest again
		b.check(fmt.Sprint("held out ", share), `{"filter":"brand:v1","above":0}`)
		for i := range 60 {
			b.see(fmt.Sprint("user-", i), b.clock, "brand:v1")
		}
		b.check("seen again", `{"filter":"brand:v1","above":0}`)
		n := 0
		for user := range b.users {
			if b.app().Holdout.Has(user) {
				n++
			}
		}
		if (n == 0) != (share == 0) {
			t.Fatalf("%d users are held out by a share of %v: take another seed", n, share)
		}
	}
}
