package profile_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
)

// A dry run makes the links that the engine makes of the same events, of few tokens and users, so that every
// limit is met.
func TestDryRunLinksAsTheEngine(t *testing.T) {
	var linked, shut, refused int
	for seed := range uint64(6) {
		s := newLinked(t, storetest.NewWithClient)
		var refusal links.Reason
		profile.IdentitiesOf(s.eng).SetRefused(func(_ string, r store.RefusedLink) { refusal = links.Reason(r.Reason) })
		random := rand.New(rand.NewPCG(seed, 1))
		dry := links.NewDryRun(10 * 24 * time.Hour)
		tokens := map[string]bool{}
		for hours := range int64(60) {
			token, known := fmt.Sprint("a", random.IntN(8)), fmt.Sprint("k", random.IntN(3+3*int(seed%3)))
			switch random.IntN(12) {
			case 0:
				token = known
			case 1:
				token, known = known, token
			case 2:
				known = "undefined"
			}
			tokens[token], tokens[known] = true, true
			e := s.of(token, hours, known)
			refusal = ""
			s.apply(e)
			reason := dry.Take(token, links.Evidence{Known: known, Time: e.Time, Receipt: e.Receipt, By: e.ID})
			if reason != refusal {
				t.Fatalf("seed %d, hour %d: %s with %s is refused as %q, by the engine as %q", seed, hours, token, known, reason, refusal)
			}
			if reason != "" {
				refused++
			}
		}
		want := map[string][]links.Entry{}
		for token := range tokens {
			if entries := s.cellOf(token).Entries; len(entries) > 0 {
				want[token] = entries
			}
		}
		got := map[string][]links.Entry{}
		for token, entries := range dry.Linked() {
			got[token] = entries
			for _, e := range entries {
				linked++
				if e.Limited {
					shut++
				}
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(links.Entry{}, "At", "Done")); diff != "" {
			t.Errorf("seed %d (-engine +dry run):\n%s", seed, diff)
		}
	}
	if linked < 40 || shut < 5 || refused < 40 {
		t.Errorf("%d links, %d of them closed by a limit, %d refusals: too few to compare", linked, shut, refused)
	}
}
