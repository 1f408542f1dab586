package console_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// usersSite is a site whose pages about users a person reads.
type usersSite struct{ *person }

// newUsersSite starts an engine with half-lives, and logs in with every permission.
func newUsersSite(t testing.TB) *usersSite {
	t.Helper()
	s := newSite(t)
	return &usersSite{s.login(key)}
}

// enter logs in with a key that has one permission.
func (u *usersSite) enter(permission string) { u.person = u.as(permission) }

// get returns a page that answers with a status.
func (u *usersSite) get(status int, path string) string {
	u.t.Helper()
	answer, body := u.send("GET", path, nil)
	if answer.StatusCode != status {
		u.t.Fatalf("GET %s: %d, want %d: %s", path, answer.StatusCode, status, body)
	}
	return body
}

// leads fails unless a request, or a form if there is one, leads to a page.
func (u *usersSite) leads(path string, form url.Values, to string) {
	u.t.Helper()
	ask := func() (*http.Response, string) { return u.send("GET", path, nil) }
	if form != nil {
		ask = func() (*http.Response, string) { return u.post(path, form) }
	}
	answer, body := ask()
	if got := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || got != to {
		u.t.Fatalf("%s: %d, to %q, want to %q: %s", path, answer.StatusCode, got, to, body)
	}
}

// fragment returns what htmx gets.
func (u *usersSite) fragment(path string) string {
	u.t.Helper()
	_, body := u.send("GET", path, nil, htmx)
	u.lacks(body, "<html", "<nav")
	return body
}

const usersStrategy = `{"eventsScoring":[{"eventName":"Product Viewed","eventType":"view","score":1},{"eventName":"Product Clicked","eventType":"click","score":10},
	{"eventName":"Order Completed","eventType":"conversion","score":100}],
	"facetsScoring":[{"facetName":"brand","score":10},{"facetName":"color","score":5},{"facetName":"tags","score":2}],"personalizationImpact":50,"halfLives":[7,30]}`

// did sends an event of some age.
func (u *usersSite) did(user, typ, name string, age time.Duration, filters ...string) {
	u.t.Helper()
	u.must(u.engine.Events().Send(u.t.Context(), api.Event{
		EventType: typ, EventName: name, Index: "products", UserToken: user, Filters: filters, Timestamp: time.Now().Add(-age).UnixMilli(),
	}))
}
