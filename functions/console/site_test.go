package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/shop"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// key is that of the app shop of every site.
const key = "a-key-with-every-permission"

// site is an engine with a console.
type site struct {
	t      testing.TB
	stack  *stack.Stack
	engine *client.Client
}

// newSite starts an engine without data.
func newSite(t testing.TB) *site {
	t.Helper()
	o := stack.Options{Apps: []stack.App{{ID: "shop", Key: key}}, ConfigTTL: 10 * time.Millisecond, RetentionDays: 90}
	if _, ok := t.(*testing.B); ok {
		o.Limits.ReadsPerSecond = 1_000_000 // a benchmark is faster than a person
	}
	s, err := stack.Start(context.Background(), o)
	must.Succeed(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(client.Config{URL: s.URL, App: "shop", Key: key})
	must.Succeed(t, err)
	return &site{t: t, stack: s, engine: c}
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// shopStrategy scores what the simulated shop sends.
const shopStrategy = `{"eventsScoring":[{"eventName":"Product Viewed","eventType":"view","score":5},{"eventName":"Product Clicked","eventType":"click","score":20},
	{"eventName":"Order Completed","eventType":"conversion","score":80}],
	"facetsScoring":[{"facetName":"brand","score":90},{"facetName":"color","score":40},{"facetName":"categories.lvl0","score":60}],"personalizationImpact":60}`

// known is a user of every site that is filled.
const known = "runner-000"

// fill gives the engine a catalog, a strategy and the events of some users.
func (s *site) fill(users int) {
	s.t.Helper()
	ctx, simulated, now := context.Background(), shop.New(1), time.Now()
	var actions []api.BatchAction
	for _, o := range simulated.Objects() {
		body, err := json.Marshal(o)
		s.must(err)
		actions = append(actions, api.BatchAction{Action: "addObject", ObjectID: o.ObjectID, Body: body})
	}
	_, err := s.engine.Catalog().Batch(ctx, shop.Index, actions...)
	s.must(err)
	s.must(s.engine.Strategies().SetJSON(ctx, json.RawMessage(shopStrategy), client.SetOptions{}))
	kept, lines := map[string]bool{}, bytes.Buffer{}
	for _, e := range simulated.History(now) {
		if !kept[e.UserToken] && len(kept) >= users && e.UserToken != known {
			continue
		}
		kept[e.UserToken] = true
		s.must(json.NewEncoder(&lines).Encode(e))
	}
	answer, err := s.engine.Events().ImportAll(ctx, "", &lines)
	s.must(err)
	if len(answer.Refused) > 0 {
		s.t.Fatalf("refused: %+v", answer.Refused[0])
	}
	s.idle()
}

func (s *site) idle() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.must(s.stack.Idle(ctx))
	s.must(s.stack.Backends.Usage.Flush(ctx))
}

// person is a client that has logged in.
type person struct {
	*site
	cookie *http.Cookie
}

// login logs in with a key.
func (s *site) login(key string) *person {
	s.t.Helper()
	p := &person{site: s}
	answer, body := p.send("POST", "/console/login", url.Values{"app": {"shop"}, "key": {key}})
	for _, c := range answer.Cookies() {
		p.cookie = c
	}
	if p.cookie == nil {
		s.t.Fatalf("login: status %d: %s", answer.StatusCode, body)
	}
	return p
}

// htmx makes a request one of htmx.
func htmx(r *http.Request) { r.Header.Set("Hx-Request", "true") }

// htmxIf is what makes a request one of htmx, if it is to be one.
func htmxIf(live bool) (with []func(*http.Request)) {
	if live {
		with = append(with, htmx)
	}
	return with
}

// send sends a request as a browser does, and follows nothing.
func (p *person) send(method, path string, form url.Values, with ...func(*http.Request)) (*http.Response, string) {
	p.t.Helper()
	var in io.Reader
	if form != nil {
		in = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(context.Background(), method, p.stack.URL+path, in)
	p.must(err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", p.stack.URL)
	}
	if p.cookie != nil {
		r.AddCookie(&http.Cookie{Name: p.cookie.Name, Value: p.cookie.Value}) // a client's jar sends it only over TLS
	}
	for _, change := range with {
		change(r)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	p.must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	p.must(err)
	return answer, string(body)
}

// page returns a page that must be there.
func (p *person) page(path string) string {
	p.t.Helper()
	return p.get(http.StatusOK, path)
}

// get returns a page that answers with a status.
func (p *person) get(status int, path string) string {
	p.t.Helper()
	answer, body := p.send("GET", path, nil)
	if answer.StatusCode != status {
		p.t.Fatalf("GET %s: %d, want %d: %s", path, answer.StatusCode, status, body)
	}
	return body
}

// sent returns the page that answers a form with a status.
func (p *person) sent(status int, path string, form url.Values) string {
	p.t.Helper()
	answer, body := p.post(path, form)
	if answer.StatusCode != status {
		p.t.Fatalf("POST %s %v: %d, want %d: %s", path, form, answer.StatusCode, status, body)
	}
	return body
}

// leads fails unless a request, or a form if there is one, leads to a page.
func (p *person) leads(path string, form url.Values, to string) {
	p.t.Helper()
	ask := func() (*http.Response, string) { return p.send("GET", path, nil) }
	if form != nil {
		ask = func() (*http.Response, string) { return p.post(path, form) }
	}
	answer, body := ask()
	if got := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || got != to {
		p.t.Fatalf("%s: %d, to %q, want to %q: %s", path, answer.StatusCode, got, to, body)
	}
}

// post sends a form of a page, and returns where it leads.
func (p *person) post(path string, form url.Values) (*http.Response, string) {
	p.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	if !form.Has("csrf") {
		form.Set("csrf", p.csrf())
	}
	return p.send("POST", path, form)
}

// csrf returns what the forms of the session hold.
func (p *person) csrf() string {
	p.t.Helper()
	_, rest, ok := strings.Cut(p.page("/"), `name="csrf" value="`)
	token, _, found := strings.Cut(rest, `"`)
	if !ok || !found {
		p.t.Fatal("the page has no form")
	}
	return token
}

// as logs in with a key that has one permission.
func (s *site) as(permission string) *person {
	s.t.Helper()
	name := "a-key-for-" + permission
	s.must(s.stack.Backends.Config.PutKey(context.Background(), "shop", config.Key{Hash: auth.Hash(name), ACL: []string{permission}}))
	return s.login(name)
}

// eventually waits until something that other processes do is true.
func (s *site) eventually(is func() bool) {
	s.t.Helper()
	for until := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatal("it does not become true")
		}
	}
}

// inOrder fails unless a page has texts one after the other.
func (s *site) inOrder(page string, texts ...string) {
	s.t.Helper()
	rest := page
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			s.t.Errorf("the page lacks %q after the texts before it:\n%s", text, page)
			return
		}
		rest = after
	}
}

// shows fails unless a page holds all texts.
func (s *site) shows(page string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			s.t.Errorf("the page lacks %q:\n%s", text, page)
			return
		}
	}
}

// lacks fails if a page holds one of the texts.
func (s *site) lacks(page string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if i := strings.Index(page, text); i >= 0 {
			s.t.Errorf("the page has %q: …%s…", text, page[max(0, i-80):min(len(page), i+80)])
		}
	}
}

// hostile are texts that an attacker may send as a name or a value.
var hostile = []string{
	"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "'; alert(1) //", "{{.}}", "javascript:alert(1)", "\u202egnp.exe", "\u0000\u0007\u001b[2J", "a\u200bb", strings.Repeat("long ", 800),
}

// raw are texts that no page may contain: each would be one of hostile that is not escaped.
var raw = []string{"<script>alert", "<img src=x", "\u202e", "\u0007", "\u001b", "\u200b", strings.Repeat("long ", 300)}

// fillHostile sends events and objects with hostile texts, as far as the engine takes them.
func (s *site) fillHostile() {
	s.t.Helper()
	ctx := context.Background()
	s.must(s.engine.Strategies().SetJSON(ctx, json.RawMessage(shopStrategy), client.SetOptions{}))
	for i, text := range hostile {
		filters := []string{"brand:" + url.PathEscape(text), "color:Red"}
		for _, e := range []api.Event{
			{EventType: "view", EventName: "Product Viewed", Index: shop.Index, UserToken: "attacked", Filters: filters},
			{EventType: "view", EventName: printable(text), Index: shop.Index, UserToken: fmt.Sprintf("attacker/%d", i), Filters: filters},
			{EventType: "view", EventName: "Product Viewed", Index: shop.Index, UserToken: "attacked", Filters: []string{url.PathEscape(text[:min(len(text), 60)]) + ":x"}},
		} {
			_ = s.engine.Events().Send(ctx, e) // the engine may refuse it, and shows that on a page
		}
		body, err := json.Marshal(map[string]any{"name": text, "brand": text, "color": []string{text}})
		s.must(err)
		_, _ = s.engine.Catalog().Batch(ctx, shop.Index, api.BatchAction{Action: "addObject", ObjectID: fmt.Sprint("H", i), Body: body})
	}
	s.fillHostileKeys()
	s.idle()
}

// printable is a name of an event that the engine takes.
func printable(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c >= ' ' && c < 0x7f && b.Len() < 60 {
			b.WriteRune(c)
		}
	}
	if b.Len() == 0 {
		return "x"
	}
	return b.String()
}
