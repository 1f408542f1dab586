package stack_test

import (
	"net/http"
	"testing"

	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/store"
)

// A recommendation key may ask for any token. No answer creates a row,
// because every later recompute would read it.
func TestUnknownTokenLeavesNoRow(t *testing.T) {
	s := start(t, stack.Options{})
	wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization", seenStrategy)
	for _, c := range []struct {
		method, path, body string
		code               int
	}{
		{"GET", "/1/profiles/nobody", "", http.StatusNotFound},
		{"GET", "/1/profiles/personalization/nobody", "", http.StatusNotFound},
		{"POST", "/1/profiles/batch", `{"userTokens":["nobody","no-one","nobody"]}`, http.StatusOK},
		{"GET", "/1/explain/nobody", "", http.StatusOK},
		{"POST", "/1/strategies/personalization/preview", `{"strategy":` + seenStrategy + `,"userTokens":["nobody"]}`, http.StatusOK},
		{"POST", "/1/audits", "", http.StatusOK},
	} {
		if code, answer := call(t, s, c.method, c.path, c.body); code != c.code {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, code, answer, c.code)
		}
		err := s.Backends.Store.Users.ScanUsers(t.Context(), "demo", "", "", 0, store.UserState, func(user string, row store.User) error {
			t.Errorf("%s %s: user %s has a row: %+v", c.method, c.path, user, row)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
