package console_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/client"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// simSite is an engine whose simulator a person uses.
type simSite struct {
	testing.TB
	stack  *stack.Stack
	engine *client.Client
	cookie *http.Cookie
}

const simStrategy = `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":10}],
	"facetsScoring":[{"facetName":"brand","score":60},{"facetName":"color","score":40}],"personalizationImpact":50,"halfLives":[7,30]}`

// newSimSite starts an engine and logs in with every right.
func newSimSite(t testing.TB) *simSite {
	t.Helper()
	s := &simSite{TB: t, stack: functiontest.Start(t)}
	var err error
	s.engine, err = client.New(client.Config{URL: s.stack.URL, App: functiontest.App, Key: "all"})
	s.must(err)
	s.login("all")
	return s
}

func (s *simSite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// login begins a session with a key. The keys of a test have the names of their rights.
func (s *simSite) login(key string) {
	s.Helper()
	answer, body := s.send("POST", "/console/login", url.Values{"app": {functiontest.App}, "key": {key}}, false)
	if len(answer.Cookies()) == 0 {
		s.Fatal(answer.Status, body)
	}
	s.cookie = answer.Cookies()[0]
}

func (s *simSite) send(method, path string, form url.Values, htmx bool) (*http.Response, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.stack.URL+path, strings.NewReader(form.Encode()))
	s.must(err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if htmx {
		r.Header.Set("Hx-Request", "true")
	}
	if s.cookie != nil {
		r.AddCookie(&http.Cookie{Name: s.cookie.Name, Value: s.cookie.Value}) // a client's jar sends it only over TLS
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	s.must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	s.must(err)
	return answer, string(body)
}

// get returns the page with query parameters, given as name and value in turn.
func (s *simSite) get(status int, parameters ...string) string {
	s.Helper()
	path := "/console/simulator"
	if values := simValues(parameters); len(values) > 0 {
		path += "?" + values.Encode()
	}
	answer, body := s.send("GET", path, nil, false)
	if answer.StatusCode != status {
		s.Fatalf("%s: %d, want %d: %s", path, answer.StatusCode, status, body)
	}
	return body
}

var simCSRF = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// post sends the form of the page.
func (s *simSite) post(htmx bool, parameters ...string) string {
	s.Helper()
	form := simValues(parameters)
	form.Set("csrf", simCSRF.FindStringSubmatch(s.get(http.StatusOK, "ids", "x"))[1])
	answer, body := s.send("POST", "/console/simulator", form, htmx)
	if answer.StatusCode != http.StatusOK {
		s.Fatalf("%v: %d: %s", parameters, answer.StatusCode, body)
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
	s.Helper()
	s.must(s.engine.SetStrategyJSON(s.Context(), []byte(simStrategy)))
	s.object("acme-red", map[string]any{"name": "Red Shoe", "brand": "Acme", "color": "Red", "price": 49.5})
	s.object("acme-blue", map[string]any{"name": "Blue Shoe", "brand": "Acme", "color": "Blue"})
	s.object("zeta-red", map[string]any{"name": "Red Boot", "brand": "Zeta", "color": "Red"})
	s.object("zeta-blue", map[string]any{"name": "Blue Boot", "brand": "Zeta", "color": "Blue"})
}

func (s *simSite) object(id string, record map[string]any) {
	s.Helper()
	body, err := json.Marshal(record)
	s.must(err)
	_, err = s.engine.Batch(s.Context(), "products", api.BatchAction{Action: api.ActionUpdateObject, ObjectID: id, Body: body})
	s.must(err)
}

// views sends events of a user and waits until they count.
func (s *simSite) views(user string, ids ...string) {
	s.Helper()
	for _, id := range ids {
		s.must(s.engine.SendEvents(s.Context(), api.Event{
			EventType: "view", EventName: "Viewed", Index: "products", UserToken: user, ObjectIDs: []string{id}, Timestamp: time.Now().UnixMilli(),
		}))
	}
	s.must(s.stack.Idle(s.Context()))
}

// has fails unless a page has texts one after the other.
func (s *simSite) has(page string, texts ...string) {
	s.Helper()
	rest := page
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			_, main, _ := strings.Cut(page, "<main")
			s.Errorf("the page lacks %q after the texts before it:\n%s", text, main)
			return
		}
		rest = after
	}
}

func (s *simSite) lacks(page string, texts ...string) {
	s.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			s.Errorf("the page has %q", text)
		}
	}
}
