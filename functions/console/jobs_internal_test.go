package console

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

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

// Jobs that the key may not see are no failure.
func TestJobsOfAnotherRight(t *testing.T) {
	h := engineOf(t, func(r *http.Request) (int, any) {
		if r.URL.Path == "/1/crowd" {
			return http.StatusOK, struct{}{}
		}
		return http.StatusForbidden, api.Error{Status: http.StatusForbidden, Message: "No right"}
	})
	cookie, _ := h.login(testKey)
	if page := h.do("GET", "/console/jobs", "", as(cookie)).Body.String(); strings.Contains(page, "cannot be listed") || strings.Contains(page, "hx-trigger") || !strings.Contains(page, "may not see all jobs") {
		t.Error(page)
	}
}
