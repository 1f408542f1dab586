package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
)

// simSite is an engine whose simulator a person uses.
type simSite struct{ *person }

const simStrategy = `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":10}],
	"facetsScoring":[{"facetName":"brand","score":60},{"facetName":"color","score":40}],"personalizationImpact":50,"halfLives":[7,30]}`

// newSimSite starts an engine and logs in with every permission.
func newSimSite(t testing.TB) *simSite {
	t.Helper()
	return &simSite{newSite(t).login(key)}
}

// enter logs in with a key that has one permission.
func (s *simSite) enter(permission string) { s.person = s.as(permission) }

// get returns the page with query parameters, given as name and value in turn.
func (s *simSite) get(status int, parameters ...string) string {
	s.t.Helper()
	path := "/console/simulator"
	if values := simValues(parameters); len(values) > 0 {
		path += "?" + values.Encode()
	}
	return s.person.get(status, path)
}

// post sends the form of the page, as htmx does if it is live.
func (s *simSite) post(live bool, parameters ...string) string {
	s.t.Helper()
	form := simValues(parameters)
	form.Set("csrf", s.csrf())
	answer, body := s.send("POST", "/console/simulator", form, htmxIf(live)...)
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%v: %d: %s", parameters, answer.StatusCode, body)
	}
	return body
}

func simValues(parameters []string) url.Values {
	values := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	return values
}

// shop stores a strategy and objects: a red and a blue shoe of two makers.
func (s *simSite) shop() {
	s.t.Helper()
	s.must(s.engine.Strategies().SetJSON(s.t.Context(), []byte(simStrategy), client.SetOptions{}))
	s.object("acme-red", map[string]any{"name": "Red Shoe", "brand": "Acme", "color": "Red", "price": 49.5})
	s.object("acme-blue", map[string]any{"name": "Blue Shoe", "brand": "Acme", "color": "Blue"})
	s.object("zeta-red", map[string]any{"name": "Red Boot", "brand": "Zeta", "color": "Red"})
	s.object("zeta-blue", map[string]any{"name": "Blue Boot", "brand": "Zeta", "color": "Blue"})
}

func (s *simSite) object(id string, record map[string]any) {
	s.t.Helper()
	body, err := json.Marshal(record)
	s.must(err)
	_, err = s.engine.Catalog().Batch(s.t.Context(), "products", api.BatchAction{Action: api.ActionUpdateObject, ObjectID: id, Body: body})
	s.must(err)
}

// views sends events of a user and waits until they count.
func (s *simSite) views(user string, ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.must(s.engine.Events().Send(s.t.Context(), api.Event{
			EventType: "view", EventName: "Viewed", Index: "products", UserToken: user, ObjectIDs: []string{id}, Timestamp: time.Now().UnixMilli(),
		}))
	}
	s.must(s.stack.Idle(s.t.Context()))
}
