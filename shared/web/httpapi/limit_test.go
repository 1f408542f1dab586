package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// A route counts what it is registered as, once for each request, and its answers
// say what is left. What is limited per hour does not count refused requests.
func TestLimitedRoutes(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	rt := httpapi.NewRouter(quiet)
	rt.Limits = limit.New(func() time.Time { return at }, limit.Numbers{}, nil, nil)
	numbers := func() (limit.Numbers, error) {
		return limit.Numbers{ReadsPerSecond: 2, JobsPerHour: 1, StrategiesPerHour: 1}, nil
	}
	handle := func(w http.ResponseWriter, r *http.Request) error {
		for range 2 { // a handler may authenticate more than once
			if err := limit.Authenticated(r.Context(), "shop", numbers); err != nil {
				return err
			}
		}
		if status, _ := strconv.Atoi(r.URL.RawQuery); status > 0 {
			return httpapi.Errorf(status, "no")
		}
		return httpapi.WriteMessage(w, http.StatusOK, "OK")
	}
	rt.Handle("GET /read", handle)
	rt.Count(limit.Jobs, "POST /job")
	rt.Handle("POST /job", handle)
	rt.Count(limit.Strategies, "POST /strategy")
	rt.Handle("POST /strategy", handle)
	rt.Count(limit.Nothing, "GET /free")
	rt.HandleOwn("GET /free", handle)
	for _, test := range []struct {
		method, path                   string
		status                         int
		limit, left, reset, retryAfter string
	}{
		{"GET", "/read", 200, "2", "1", "1800000001", ""},
		{"GET", "/read", 200, "2", "0", "1800000001", ""},
		{"GET", "/read", 429, "2", "0", "1800000001", "1"},
		{"GET", "/read?404", 429, "2", "0", "1800000001", "1"},
		{"POST", "/job?422", 422, "1", "1", "1800003600", ""}, // refused, so it starts no job
		{"POST", "/job?409", 409, "1", "1", "1800003600", ""},
		{"POST", "/job", 200, "1", "0", "1800003600", ""},
		{"POST", "/job?422", 429, "1", "0", "1800003600", "10"},
		{"POST", "/job", 429, "1", "0", "1800003600", "10"},
		{"GET", "/free", 200, "", "", "", ""},
		{"POST", "/strategy?503", 503, "1", "0", "1800003600", "1"}, // it may have been set
		{"POST", "/strategy", 429, "1", "0", "1800003600", "10"},
	} {
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
		h := w.Header()
		got := [...]string{strconv.Itoa(w.Code), h.Get("X-RateLimit-Limit"), h.Get("x-ratelimit-remaining"), h.Get("x-ratelimit-reset"), h.Get("retry-after")}
		want := [...]string{strconv.Itoa(test.status), test.limit, test.left, test.reset, test.retryAfter}
		if got != want {
			t.Errorf("%s %s: %q, want %q", test.method, test.path, got, want)
		}
		const exposed = "retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, link, x-wp-total, x-wp-totalpages"
		if got := h.Get("Access-Control-Expose-Headers"); got != exposed {
			t.Errorf("a web page may read %q, want %q", got, exposed)
		}
	}
}
