package profile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/store"
)

// The list of changes costs one write in ten seconds for a user, and no row that is read.
// An app without segments pays nothing.
func TestListCostsOneRow(t *testing.T) {
	for _, on := range []bool{false, true} {
		counted := &serverRows{n: map[string]int{}}
		b := newFixtureOn(t, counted.open, 90, plain)
		if err := b.apps.SetSegments(ctx, appID, on); err != nil {
			t.Fatal(err)
		}
		next := b.clock - day
		expect := func(what string, entries int, want map[string]int) {
			t.Helper()
			if next++; on && entries > 0 {
				want["changes written"] = entries
			}
			got := counted.of(t, func() error {
				_, err := b.eng.Apply(ctx, b.app(), []store.LogEvent{bought("u", next)})
				return err
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("segments on: %v, %s (-want +got):\n%s", on, what, diff)
			}
		}
		expect("the first event", 1, map[string]int{"events written": 1, "events read": 1, "users written": 2})
		expect("an addition in the same slot", 0, map[string]int{"events written": 1, "users written": 2})
		b.clock += 10 * second
		expect("an addition in the next slot", 1, map[string]int{"events written": 1, "users written": 2})
		b.eng.SetMaxAdditions(0)
		expect("a computation in the same slot", 0, map[string]int{"events written": 1, "events read": 4, "users written": 2})
		b.clock += 10 * second
		expect("a computation in the next slot", 1, map[string]int{"events written": 1, "events read": 1, "users written": 2})
		if got := counted.of(t, func() error { b.read("u"); return nil }); got["changes written"] > 0 {
			t.Errorf("a read lists the user: %v", got)
		}
	}
}
