package console

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A session that was logged out opens no page any more, with a copy of its cookie either: at once on the
// instance that logged it out, and within seconds on others. Other sessions go on.
func TestSessionLoggedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTest(t)
		first, other := h.Handler, h.instance()
		c, csrf := h.login(testKey)
		beside, _ := h.login(testKey)
		on := func(instance http.Handler, c *http.Cookie) int {
			h.Handler = instance
			return h.do("GET", "/console/test/what", "", as(c)).Code
		}
		if a, b := on(first, c), on(other, c); a != 200 || b != 200 {
			t.Fatalf("before: %d and %d", a, b)
		}
		h.Handler = first
		if w := h.do("POST", "/console/logout", "csrf="+csrf, as(c)); w.Code != http.StatusSeeOther {
			t.Fatalf("logout: %d", w.Code)
		}
		if on(first, c) != 401 || on(h.instance(), c) != 401 {
			t.Error("it goes on where it was logged out, or on an instance that has not seen it")
		}
		time.Sleep(endedFresh)
		if on(other, c) != 401 || on(other, beside) != 200 || on(first, beside) != 200 {
			t.Error("it goes on elsewhere, or another one does not")
		}
		h.Handler = first
		if w := h.do("POST", "/console/logout", "csrf="+csrf, as(c)); w.Code != 401 {
			t.Errorf("a second logout: %d", w.Code)
		}
	})
}

// While the store of ended sessions fails, an instance goes by what it has read some seconds ago, and then
// opens no page. A logout that is not stored says so, and holds on its own instance.
func TestSessionsWithoutTheirStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTest(t)
		c, csrf := h.login(testKey)
		get := func() int { return h.do("GET", "/console/test/what", "", as(c)).Code }
		before := get()
		h.fails = errors.New("no store")
		if during := get(); before != 200 || during != 200 {
			t.Errorf("%d before and %d during the fault", before, during)
		}
		time.Sleep(endedFresh)
		if code := get(); code != 500 {
			t.Errorf("later: %d", code)
		}
		h.fails = nil
		get()
		h.fails = errors.New("no store")
		if w := h.do("POST", "/console/logout", "csrf="+csrf, as(c)); w.Code != 500 || len(w.Result().Cookies()) != 1 {
			t.Errorf("a logout: %d", w.Code)
		}
		if code := get(); code != 401 {
			t.Errorf("after it: %d", code)
		}
	})
}
