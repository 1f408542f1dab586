package wordpress

import "testing"

// LimitPosts bounds the posts of a site to n until the test ends.
func LimitPosts(t testing.TB, n int) {
	before := maxPosts
	t.Cleanup(func() { maxPosts = before })
	maxPosts = n
}
