package ingest

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event/bus"
)

// Track calls repeat who has signed in. Of each token the repeats within ten minutes are left out, but for another user or
// another strength, and after a failure.
func TestRepeatedSignIns(t *testing.T) {
	r, now := newRecentSignIns(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ask := func(app, token, known string, repeated bool, evidence bus.Evidence, want int) {
		t.Helper()
		if got := r.others(app, evidence, []signIn{{bus.SignIn{User: token, Known: known}, repeated}}, now); len(got) != want {
			t.Errorf("%s, %s under %s, repeated %t: %d sign-ins, want %d", app, known, token, repeated, len(got), want)
		}
	}
	const weak, strong = bus.WeakEvidence, bus.StrongEvidence
	ask("shop", "a", "ann", true, weak, 1)
	ask("shop", "a", "ann", true, weak, 0)
	ask("zoo", "a", "ann", true, weak, 1)
	ask("shop", "a", "ann", true, strong, 1)
	ask("shop", "a", "ann", false, strong, 1) // an identify call
	ask("shop", "a", "bob", true, strong, 1)
	ask("shop", "a", "ann", true, strong, 1)
	now = now.Add(signInPause - 1)
	ask("shop", "a", "ann", true, strong, 0)
	now = now.Add(1)
	ask("shop", "a", "ann", true, strong, 1)
	r.forget("shop", []bus.SignIn{{User: "a"}})
	ask("shop", "a", "ann", true, strong, 1)
}
