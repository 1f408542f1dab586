package wordpress

import (
	"net/http"
	"testing"
)

// Redirect is the decision about a redirect from one address to another.
func Redirect(t testing.TB, from, to string) error {
	var requests [2]*http.Request
	for i, address := range []string{from, to} {
		var err error
		if requests[i], err = http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil); err != nil {
			t.Fatal(err)
		}
	}
	return (&Site{}).redirect(requests[1], requests[:1])
}

// LimitBody bounds answers to n bytes until the test ends.
func LimitBody(t testing.TB, n int) {
	before := maxBody
	t.Cleanup(func() { maxBody = before })
	maxBody = n
}

// LimitPosts bounds the posts of a site to n until the test ends.
func LimitPosts(t testing.TB, n int) {
	before := maxPosts
	t.Cleanup(func() { maxPosts = before })
	maxPosts = n
}
