package profile_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// Of a user who has opted out nothing but the count is kept, whatever refuses the evidence.
func TestRefusedLinksNameNobodyWhoIsOut(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		var named []store.RefusedLink
		profile.IdentitiesOf(s.eng).SetRefused(func(_ string, r store.RefusedLink) {
			if r.Known == "k" {
				named = append(named, r)
			}
		})
		s.apply(s.of("a", 5, "k2"), s.of("other", 1, "k"))
		s.clock++
		_, err := s.eng.OptOut(ctx, appID, "k")
		must.Succeed(t, err)
		s.clock++
		s.apply(s.of("a", 4, "k"))     // late
		s.apply(s.of("k2", 6, "k"))    // a known user
		s.signIn(s.call("a", 4, "k"))  // late
		s.signIn(s.call("k2", 6, "k")) // a known user
		for _, r := range named {
			t.Errorf("%s: %s, %s", r.Reason, r.User, r.Known)
		}
	})
}
