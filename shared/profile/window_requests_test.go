package profile_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/limit"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/store/storetest"
)

// What 1,000 events cost in profile writes with a window of 2 s: of 20 users within 9 s,
// one write a user and window that the 9 s touch, which are 5 or 6; of 1,000 users, one
// each.
func TestWritesOfWindows(t *testing.T) {
	for name, c := range map[string]struct {
		users  int
		offset int64 // of the first event in its window, in ms
		writes int64
	}{
		"clustered":            {20, 0, 100},
		"clustered, unaligned": {20, 1500, 120},
		"uniform":              {1000, 0, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, storetest.NewWithClient)
			if err := s.apps.SetLimits(ctx, appID, limit.Numbers{WriteWindowMs: 2000}); err != nil {
				t.Fatal(err)
			}
			s.clock += 2000 - s.clock%2000 + c.offset
			due := map[string]int64{} // the end of the window of each user's task
			e := s.engine()
			e.SetLater(func(_ context.Context, _ config.App, users []string) {
				for _, u := range users {
					due[u] = s.clock/2000*2000 + 2000
				}
			})
			end := func() {
				for u, at := range due {
					if at <= s.clock {
						if _, err := e.RefreshMarked(ctx, s.app(), u); err != nil {
							t.Fatal(err)
						}
						delete(due, u)
					}
				}
			}
			for i := range 1000 {
				end()
				ev := bought(fmt.Sprint("u", i%c.users), s.clock)
				if _, err := e.Apply(ctx, s.app(), []store.LogEvent{ev}); err != nil {
					t.Fatal(err)
				}
				s.clock += 9
			}
			s.clock += 2000
			end()
			if got := e.Counters().Refreshed.Load(); got != c.writes {
				t.Errorf("%d profile writes, want %d", got, c.writes)
			}
		})
	}
}
