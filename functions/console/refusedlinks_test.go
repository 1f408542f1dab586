package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// signIns gives the site links and refused links.
func (s *site) signIns() {
	s.t.Helper()
	s.link(false)
	s.must(s.stack.Backends.Config.PutKey(s.t.Context(), "shop", config.Key{Hash: auth.Hash("page"), ACL: []string{auth.Search}}))
	page, err := client.New(client.Config{URL: s.stack.URL, App: "shop", Key: "page"})
	s.must(err)
	signedIn := func(c *client.Client, token, known string) {
		s.must(c.Events().Send(s.t.Context(), api.Event{EventType: "view", EventName: "Product Viewed", Index: "products", UserToken: token,
			AuthenticatedUserToken: known, Filters: []string{"brand:Acme"}, Timestamp: time.Now().UnixMilli()}))
	}
	for i, known := range []string{"ann", "ann", "bob"} {
		signedIn(s.engine, fmt.Sprint("visitor-", i), known)
	}
	s.idle()
	signedIn(s.engine, "ann", "bob")
	signedIn(s.engine, "undefined", "ann")
	for i := range 3 {
		signedIn(page, fmt.Sprint("page/", i), "ann")
		s.idle() // so that the next is refused later
	}
}

// previewed starts a preview of links from the page of jobs, and returns the path of its page once it has ended.
func (p *person) previewed() string {
	p.t.Helper()
	answer, body := p.post("/console/jobs/start", url.Values{"kind": {"links"}})
	path, _, _ := strings.Cut(answer.Header.Get("Location"), "?")
	if !strings.HasPrefix(path, "/console/linkpreviews/") {
		p.t.Fatalf("preview: status %d: %s", answer.StatusCode, body)
	}
	p.eventually(func() bool { return !strings.Contains(p.page(path), "hx-trigger") })
	return path
}

// The page of refused links counts each reason by day, and has the newest example of each.
func TestRefusedLinks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.login(key)
	s.shows(p.page("/console/refusedlinks"), "No link was refused", "affinity identity refused")
	s.lacks(p.page("/"), "/console/refusedlinks")
	s.lacks(p.page(appPath), "/console/refusedlinks")
	s.signIns()
	for _, path := range []string{"/", appPath, "/console/users/ann"} {
		s.shows(p.page(path), `href="/console/refusedlinks"`)
	}
	all := p.page("/console/refusedlinks")
	s.inOrder(all, "The key stands in web pages", "<span>3</span>", `<svg class="bars"`, "at most in a day: 3, today: 3", "?reason=weak", "The latest", `href="/console/users/page%2F2"`, `href="/console/users/ann"`)
	s.shows(all, "The userToken has been named as an authenticatedUserToken before", "One of the tokens stands for no user", "/1/identities/refused")
	s.lacks(all, "ZgotmplZ", "%!", "<nil>")
	weak := p.page("/console/refusedlinks?reason=weak")
	s.inOrder(weak, "The key stands in web pages", "page%2F2", "page%2F1", "page%2F0", "affinity identity refused --reason weak")
	s.lacks(weak, "undefined", `id="by-reason"`)
	s.shows(p.page("/console/refusedlinks?reason=late"), "The userToken has been linked by later evidence", "None is kept")
	p.get(http.StatusUnprocessableEntity, "/console/refusedlinks?reason=%3Cb%3E")
	p.get(http.StatusUnprocessableEntity, "/console/refusedlinks?cursor=x")
	s.shows(s.as(auth.ProfilesRead).get(http.StatusForbidden, "/console/refusedlinks"), "needs a key with the permission admin")
}

// More refused links than a page lists are on further pages, and a reason whose links are on none of the first has
// its example.
func TestManyRefusedLinks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.link(false)
	sequence := int64(0)
	record := func(reason string, n int) {
		r := store.Refusals{Counts: map[string]int64{reason: int64(n)}}
		for range n {
			sequence++
			r.Events = append(r.Events, store.RefusedLink{User: fmt.Sprint("u", sequence), Known: "ann", Time: sequence, Event: "e", Reason: reason,
				At: time.Now(), Sequence: sequence}.Refusal())
		}
		s.must(s.stack.Backends.Store.Refused.RecordRefusedLinks(t.Context(), "shop", time.Now(), r))
	}
	record("late", 1)
	record("of another release", 1)
	for range 20 { // they are spread over rows
		for _, reason := range []string{"weak", "value", "limit", "shared", "deleted"} {
			record(reason, 10)
		}
	}
	p := s.login(key)
	first := p.page("/console/refusedlinks")
	s.inOrder(first, "The key stands in web pages", "<span>200</span>", "The userToken has been linked by later evidence", "u1<", "of another release", "Earlier ones")
	if n := strings.Count(first, "The latest, "); n != 6 {
		t.Errorf("%d reasons have an example, want 6", n)
	}
	_, rest, _ := strings.Cut(first, `aria-label="Pages of the list"><a class="button" href="`)
	next, _, _ := strings.Cut(rest, `"`)
	later := p.page(strings.ReplaceAll(next, "&amp;", "&"))
	s.shows(later, "Earlier ones", `<a href="/console/refusedlinks">Refused links</a>`)
	s.lacks(later, `id="by-reason"`)
}

// The page of jobs starts a preview of links and lists it, and its own page says what was found.
func TestLinkPreview(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.login(key)
	path := p.previewed()
	s.shows(p.page(path), "None of 0 events has both tokens")
	s.signIns()
	path = p.previewed()
	page := p.page(path)
	s.inOrder(page, "link 6 anonymous tokens to 2 users", "Tokens of a user", "<td>1</td>", "<td>5</td>", "Refused", "Such as", "Most tokens", "page/0", "visitor-1")
	s.lacks(page, "ZgotmplZ", "%!", "<nil>")
	s.inOrder(p.page("/console/jobs"), "Preview links", "Ended", `href="`+path+`"`, "Preview of links between tokens")
	p.sent(http.StatusConflict, "/console/jobs/cancel", url.Values{"kind": {"links"}, "id": {strings.TrimPrefix(path, "/console/linkpreviews/")}})
	p.get(http.StatusNotFound, "/console/linkpreviews/none")
	reader := s.as(auth.ProfilesRead)
	reader.get(http.StatusForbidden, path)
	s.lacks(reader.page("/console/jobs"), path)
}
