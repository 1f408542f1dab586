package console_test

import (
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
