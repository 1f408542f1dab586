package console

import (
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// A list of jobs that cannot be read is not an empty one: the page says so and asks again, and what
// it showed before stays.
func TestJobsThatCannotBeListed(t *testing.T) {
	for _, path := range []string{"/1/recomputes", "/1/crowd", "/1/reenrich", "/1/segments", "/1/backtests"} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError} {
			var fails atomic.Bool
			h := engineOf(t, func(r *http.Request) (int, any) {
				if fails.Load() && r.URL.Path == path {
					return status, api.Error{Status: status, Message: "Not now <b>"}
				}
				return http.StatusOK, struct{}{}
			})
			cookie, _ := h.login(testKey)
			live := header("Hx-Request", "true")
			page := h.do("GET", "/console/jobs", "", as(cookie)).Body.String()
			if strings.Contains(page, "cannot be listed") || strings.Contains(page, "hx-trigger") || !strings.Contains(page, "No job is running.") {
				t.Errorf("%s: nothing fails, and the page is %s", path, page)
			}
			fails.Store(true)
			if w := h.do("GET", "/console/jobs", "", as(cookie), live); w.Code != http.StatusNoContent {
				t.Errorf("%s fails with %d: the poll is answered %d: %s", path, status, w.Code, w.Body)
			}
			w := h.do("GET", "/console/jobs", "", as(cookie))
			if page := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(page, "Some jobs cannot be listed: Not now &lt;b&gt;.") || !strings.Contains(page, `hx-trigger="every 2s"`) ||
				strings.Contains(page, "No job ") {
				t.Errorf("%s fails with %d: the page is answered %d: %s", path, status, w.Code, page)
			}
			overview := h.do("GET", "/", "", as(cookie)).Body.String()
			if shown := strings.Contains(overview, "Some jobs cannot be listed: Not now &lt;b&gt;."); shown != (path == "/1/recomputes" || path == "/1/crowd") || shown && strings.Contains(overview, ">None.<") {
				t.Errorf("%s fails with %d: the overview is %s", path, status, overview)
			}
			fails.Store(false)
			if w := h.do("GET", "/console/jobs", "", as(cookie), live); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "hx-trigger") {
				t.Errorf("%s answers again: the poll is answered %d: %s", path, w.Code, w.Body)
			}
		}
	}
}

// What the keyboard reaches in the list has an id that stays when the list is replaced, by which
// htmx keeps the focus there.
func TestJobsKeepTheFocus(t *testing.T) {
	started := api.Time{Time: time.Now().Add(-time.Minute)}
	state := api.JobRunning
	h := engineOf(t, func(r *http.Request) (int, any) {
		switch r.URL.Path {
		case "/1/recomputes":
			return http.StatusOK, api.Recomputes{Recomputes: []api.Recompute{{ID: "1", State: api.JobRunning, StartedAt: started}}}
		case "/1/backtests":
			return http.StatusOK, api.Backtests{Backtests: []api.BacktestSummary{{ID: "1", State: state, StartedAt: started}}}
		case "/1/crowd":
			return http.StatusOK, api.Crowd{Builds: []api.CrowdBuild{{ID: "1", State: api.JobDone, StartedAt: started, FinishedAt: &started}}}
		}
		return http.StatusOK, struct{}{}
	})
	cookie, _ := h.login(testKey)
	reached := func() map[string]bool {
		t.Helper()
		list := h.do("GET", "/console/jobs", "", as(cookie), header("Hx-Request", "true")).Body.String()
		ids := map[string]bool{}
		for _, tag := range regexp.MustCompile(`<(?:a|button|summary|select|textarea)\b[^>]*>|<[^>]* tabindex="0"[^>]*>`).FindAllString(list, -1) {
			id := regexp.MustCompile(` id="([^"]+)"`).FindStringSubmatch(tag)
			if id == nil || ids[id[1]] {
				t.Errorf("%s has no id of its own, in %s", tag, list)
				continue
			}
			ids[id[1]] = true
		}
		return ids
	}
	running := reached()
	state = api.JobDone
	ended := reached()
	for _, id := range []string{"job-backtest-1", "cancel-recompute-1", "ended"} {
		if !running[id] || !ended[id] {
			t.Errorf("no %s among %v, then %v", id, running, ended)
		}
	}
}

// Jobs that the key may not see are no failure.
func TestJobsOfAnotherPermission(t *testing.T) {
	h := engineOf(t, func(r *http.Request) (int, any) {
		if r.URL.Path == "/1/crowd" {
			return http.StatusOK, struct{}{}
		}
		return http.StatusForbidden, api.Error{Status: http.StatusForbidden, Message: "No permission"}
	})
	cookie, _ := h.login(testKey)
	if page := h.do("GET", "/console/jobs", "", as(cookie)).Body.String(); strings.Contains(page, "cannot be listed") || strings.Contains(page, "hx-trigger") || !strings.Contains(page, "may not see all jobs") {
		t.Error(page)
	}
}
