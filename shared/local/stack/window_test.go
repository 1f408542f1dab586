package stack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// Messages of users within a write window are visible at once, and share the refresh at
// its end.
func TestWriteWindow(t *testing.T) {
	const app, users, window = "shop", 3, 500 * time.Millisecond
	s := start(t, stack.Options{Apps: []stack.App{{ID: app, Key: "k"}}, ConfigTTL: time.Millisecond})
	wantStatusAs(t, s, http.StatusOK, app, "k", "POST", "/1/strategies/personalization", seenStrategy)
	if err := s.Backends.Config.SetLimits(t.Context(), app, limit.Numbers{WriteWindowMs: int(window.Milliseconds())}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for i := range 60 {
		wantStatusAs(t, s, http.StatusOK, app, "k", "POST", "/1/events", seenBy(fmt.Sprint("u", i%users)))
	}
	counters := s.Backends.Profiles.Counters()
	ended := func() int64 { return counters.Refreshed.Load() + counters.Spared.Load() }
	poll(t, time.Minute, func() (string, bool) {
		marked := counters.Marked.Load()
		return fmt.Sprintf("%d marks led to %d refreshes", marked, ended()), marked >= users && ended() >= users
	})
	idle(t, s)
	if most := users * (int64(time.Since(begin)/window) + 2); ended() > most {
		t.Errorf("%d marks led to %d refreshes, want at most %d", counters.Marked.Load(), ended(), most)
	}
	for i := range users {
		if code, answer := callAs(t, s, app, "k", "GET", fmt.Sprint("/1/profiles/u", i), ""); code != 200 || !strings.Contains(answer, `"userToken"`) {
			t.Errorf("after the window: %d %s", code, answer)
		}
	}
}
