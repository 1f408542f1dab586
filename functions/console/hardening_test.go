package console_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// A token with slashes leads to the page of its user, and not to a page of another one.
func TestTokensStayOneSegment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	event := func(user string) api.Event {
		return api.Event{EventType: "view", EventName: "Product Viewed", Index: "products", UserToken: user, Filters: []string{"brand:Acme"}}
	}
	s.must(s.engine.Events().Send(t.Context(), event("runner/delete"), event("//x")))
	s.idle()
	p := s.login(key)
	for _, path := range []string{"/console/data", "/console/users"} {
		page := p.page(path)
		s.shows(page, `"/console/users/runner%2Fdelete"`, `"/console/users/%2F%2Fx"`)
		s.lacks(page, `/console/users/runner/delete"`, `/console/users///x"`)
	}
	_, page := p.post("/console/data/event", url.Values{"type": {"view"}, "name": {"x"}, "index": {"products"}, "user": {"a/optout"}, "about": {"brand:Acme"}})
	s.shows(page, `"/console/users/a%2Foptout"`)
}

// What only looks whether a page is there makes no request of it: some are recorded.
func TestHeadAndPrefetchLoadNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(5)
	p := s.login(key)
	path := "/console/users/" + known + "/events"
	if answer, _ := p.send("HEAD", path, nil); answer.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %s", answer.Status)
	}
	r, err := http.NewRequest("GET", s.stack.URL+path, nil)
	s.must(err)
	r.Header.Set("Sec-Purpose", "prefetch")
	r.AddCookie(&http.Cookie{Name: p.cookie.Name, Value: p.cookie.Value})
	answer, err := http.DefaultTransport.RoundTrip(r)
	s.must(err)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("prefetch: %s", answer.Status)
	}
	exports := func() int {
		log, err := s.engine.AuditLog(t.Context(), api.AuditLogQuery{Action: "user.export"})
		s.must(err)
		return len(log.Entries)
	}
	if n := exports(); n != 0 {
		t.Errorf("%d exports are recorded", n)
	}
	p.page(path)
	if n := exports(); n != 1 {
		t.Errorf("%d exports are recorded after a person asked for one", n)
	}
}

// upload sends a file with a form.
func (p *person) upload(path string, content []byte) (*http.Response, string) {
	p.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	p.must(form.WriteField("csrf", p.csrf()))
	file, err := form.CreateFormFile("file", "events.ndjson")
	p.must(err)
	_, err = file.Write(content)
	p.must(err)
	p.must(form.Close())
	return p.send("POST", path, nil, func(r *http.Request) {
		r.Header.Set("Content-Type", form.FormDataContentType())
		r.Header.Set("Origin", p.stack.URL)
		r.Body, r.ContentLength = io.NopCloser(&body), int64(body.Len())
	})
}

// A file is taken by the import alone.
func TestOnlyTheImportTakesFiles(t *testing.T) {
	t.Parallel()
	race.Skip(t, "it sends one request at a time")
	s := newSite(t)
	p := s.login(key)
	for path, want := range map[string]int{"/console/data/import": http.StatusOK, "/console/data/event": http.StatusForbidden, "/console/strategy": http.StatusForbidden} {
		answer, _ := p.upload(path, []byte(strings.Repeat(`{"eventType":"view","eventName":"x","index":"products","userToken":"u","filters":["brand:Acme"],"timestamp":1795168800000}`+"\n", 20_000)))
		if answer.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, answer.Status, want)
		}
	}
}

// Another site ends nobody's session.
func TestLogoutIsAskedForByThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, err := http.NewRequest("POST", s.stack.URL+"/console/logout", nil)
	s.must(err)
	r.Header.Set("Sec-Fetch-Site", "cross-site") // without a cookie, as a browser sends it
	answer, err := http.DefaultTransport.RoundTrip(r)
	s.must(err)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden || len(answer.Cookies()) > 0 {
		t.Errorf("%s, cookies %v", answer.Status, answer.Cookies())
	}
}

// A key that is for some pages opens the console from them, and its session goes on.
func TestSessionOfAKeyWithReferers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const restricted = "a-key-for-some-pages-alone"
	s.must(s.stack.Backends.Config.PutKey(t.Context(), "shop", config.Key{Hash: auth.Hash(restricted), ACL: []string{auth.Recommendation}, Referers: []string{"127.0.0.1:*"}}))
	p := s.login(restricted)
	p.page("/console/strategy")
	s.must(s.stack.Backends.Config.PutKey(t.Context(), "shop", config.Key{Hash: auth.Hash("a-key-for-other-pages"), ACL: []string{auth.Recommendation}, Referers: []string{"shop.example"}}))
	if answer, body := (&person{site: s}).send("POST", "/console/login", url.Values{"app": {"shop"}, "key": {"a-key-for-other-pages"}}); answer.StatusCode != http.StatusForbidden {
		t.Errorf("%s: %s", answer.Status, body)
	}
}

// An import that ends early says what is in the log.
func TestImportThatEndsEarly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.must(s.stack.Backends.Config.SetLimits(t.Context(), "shop", limit.Numbers{ImportsPerSecond: 100}))
	p := s.login(key)
	line := `{"eventType":"view","eventName":"x","index":"products","userToken":"u","filters":["brand:Acme"],"timestamp":1795168800000}` + "\n"
	_, page := p.post("/console/data/import", url.Values{"lines": {strings.Repeat(line, 5000)}})
	s.shows(page, "The import ended early:", "2000 lines accepted")
}

// A file that holds no events ends its import soon, whatever its size, and a page unpacks none.
func TestImportOfAnotherKindOfFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.login(key)
	event := `{"eventType":"view","eventName":"x","index":"products","userToken":"u","filters":["brand:Acme"],"timestamp":1795168800000}` + "\n"
	_, page := p.upload("/console/data/import", []byte(strings.Repeat(event, 3)+strings.Repeat("x\n", 1_000_000)))
	s.shows(page, "3 lines accepted, 1,997 refused", "The import ended early: a page sends no more lines once 1,000 were refused. The first 2,000 lines were read, and none after them.",
		"events with a time count once, and those without one again", "And 1,897 more")
	if n := strings.Count(page, `<td class="n">`); n != 100 {
		t.Errorf("the page shows %d refused lines, want 100", n)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(event))
	s.must(errors.Join(err, w.Close()))
	for name, send := range map[string]func() (*http.Response, string){
		"a file": func() (*http.Response, string) { return p.upload("/console/data/import", packed.Bytes()) },
		"lines": func() (*http.Response, string) {
			return p.post("/console/data/import", url.Values{"lines": {packed.String()}})
		},
	} {
		answer, page := send()
		if answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page, "compressed with gzip") || !strings.Contains(page, "affinity import") {
			t.Errorf("%s of gzip: %s: %s", name, answer.Status, page)
		}
	}
}
