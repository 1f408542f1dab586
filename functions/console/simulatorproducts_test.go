package console

import (
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A step of a slider reads no record again, and half a minute later records are read again.
func TestStepsReadNoRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTest(t)
		c, csrf := h.login(testKey)
		step := func(impact string) (read int) {
			h.asked = nil
			form := url.Values{"csrf": {csrf}, "user": {"ann"}, "index": {"products"}, "ids": {"a\nb"}, "impact": {impact}}
			if w := h.do("POST", "/console/simulator", form.Encode(), as(c), header("Hx-Request", "true")); w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, r := range h.asked {
				if strings.HasPrefix(r.URL.Path, "/1/indexes/") {
					read++
				}
			}
			return read
		}
		for i, want := range []int{2, 0, 0, 2} {
			if i == 3 {
				time.Sleep(productLife)
			}
			if got := step("50"); got != want {
				t.Errorf("step %d reads %d records, want %d", i, got, want)
			}
		}
	})
}
