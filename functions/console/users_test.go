package console_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/score/consent"
)

const hour = time.Hour

func TestUsersOfNoData(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.inOrder(u.get(200, "/console/users"), `aria-current="page"`, "No users yet")
	u.inOrder(u.get(404, "/console/users/nobody"), "There is no profile of this user", "none was ever accepted, or all have been removed")
	u.inOrder(u.get(200, "/console/users?q=nob"), "No user found", `href="/console/users/nob"`)
}

func TestFindUsers(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	for i := range 60 {
		u.did(fmt.Sprintf("ann-%02d", i), "view", "Product Viewed", hour, "brand:Acme")
	}
	u.did("a/b=c+d", "view", "Product Viewed", hour, "brand:Acme")
	u.did("bob", "view", "Product Viewed", hour, "brand:Acme")
	u.did("bobby", "view", "Product Viewed", hour, "brand:Acme")
	u.idle()
	u.inOrder(u.get(200, "/console/users"), "Just seen", "All users by token")
	first := u.get(200, "/console/users?by=token")
	u.inOrder(first, "Users by token", `href="/console/users/a%2Fb=c&#43;d"`, "ann-00", "Next page")
	_, next, _ := strings.Cut(first, `<a class="button" href="/console/users?after=`)
	cursor, _, _ := strings.Cut(next, "&amp;")
	last := u.get(200, "/console/users?by=token&after="+cursor)
	u.inOrder(last, "bobby", "First page", "This is the last page")
	u.inOrder(u.get(200, "/console/users?q=ann-0"), "Tokens that begin with", "ann-00", "ann-09")
	u.inOrder(u.get(200, "/console/users?q=bob"), ">bob<", "exactly this token", ">bobby<")
	u.inOrder(u.get(422, "/console/users?q=two+words"), `role="alert"`, "No token is like this")
	u.leads("/console/users?q=a%2Fb%3Dc%2Bd", nil, "/console/users/a%2Fb=c+d")
	u.inOrder(u.get(200, "/console/users/a%2Fb=c+d"), "a/b=c&#43;d", "Mostly", "Acme")
	u.inOrder(u.get(422, "/console/users/"+url.PathEscape("a/b?c#d%e")), "No user has this token")
}

// Tokens that name nobody are marked where users and their events are listed.
func TestTokensThatNameNobody(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	u.did("undefined", "view", "Product Viewed", hour, "brand:Acme")
	u.did("undefined", "view", "Product Viewed", 2*hour, "brand:N/A")
	u.did("ann", "view", "Product Viewed", hour, "brand:Acme")
	u.idle()
	const tag = `<span class="tag warn">names nobody</span>`
	for _, path := range []string{"/console/users", "/console/users?by=token"} {
		page := u.get(200, path)
		u.inOrder(page, ">undefined</bdi></a> "+tag)
		if strings.Count(page, tag) != 1 {
			t.Errorf("%s marks others:\n%s", path, page)
		}
	}
	u.inOrder(u.get(200, "/console/users/undefined"), "This token probably names nobody", "a random token that it keeps",
		"Have no value that scores", "brand:N/A (1)")
	u.inOrder(u.get(200, "/console/data"), "Tokens that name nobody", `href="/console/users/undefined"`, "<span>2</span>", "a random token that it keeps")
}

func TestUserAndWhy(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	u.did("ann", "view", "Product Viewed", 30*24*hour-hour, "brand:Acme", "color:Blue")
	u.did("ann", "conversion", "Order Completed", 2*hour, "brand:Stridewell", "color:Blue", "tags:running")
	u.did("ann", "click", "Product Clicked", hour, "brand:Stridewell", "color:Red", "tags:trail")
	for i := range 7 {
		u.did("ann", "view", "Product Viewed", 3*hour, fmt.Sprintf("tags:t%d", i))
	}
	u.did("ann", "view", "Page Viewed", hour, "brand:Acme")
	u.idle()
	page := u.get(200, "/console/users/ann")
	u.inOrder(page, "Mostly <b><bdi class=\"text\" title=\"Stridewell\">", "; likes <b>", "Blue", " and <b>", "running", "Events that count", ">10<", "of 11 accepted", "strategy 1")
	u.inOrder(page, "2 events add up to", "Order Completed", "100 × 10", "Score", "Show all 9 values", "Do not score", "affinity profile ann", "curl -sS", "/1/explain/ann?facet=brand")
	u.inOrder(page, `aria-label="Half-life of the scores"`, `tag accent" href="/console/users/ann?halfLife=7" aria-current="true">7 days`, ">30 days<")
	u.inOrder(u.get(200, "/console/users/ann?halfLife=30"), `tag accent" href="/console/users/ann?halfLife=30"`, "counts half after 30 days", "--half-life=30 ann")
	u.inOrder(u.get(200, "/console/users/ann?all=tags"), "t6", "</table>")
	if len(page) > 40_000 {
		t.Errorf("the page has %d bytes", len(page))
	}

	path := "/console/users/ann/why?facet=color&value=Blue"
	u.inOrder(u.get(200, path), "<html", "Why", "Blue", "2 events add up to", "Product Viewed", "affinity explain --facet=color --value=Blue ann")
	u.inOrder(u.fragment(path), "2 events add up to", "<svg", "Score")
	u.inOrder(u.get(200, "/console/users/ann/why?facet=color&value=Green"), "No event that counts adds to this value now")
	u.inOrder(u.get(422, "/console/users/ann/why?facet=color"), "facet and value must be given together")
	u.inOrder(u.get(200, "/console/users/ann/json"), "&#34;userToken&#34;: &#34;ann&#34;")

	events := u.get(200, "/console/users/ann/events")
	u.inOrder(events, "Chart of", "by views", "by clicks", "by conversions", "half-life 7 days", "half-life 30 days", "11 events, the newest first", "Stridewell")
	u.lacks(u.fragment("/console/users/ann/events"), `<details class="user-rows" open`)
	u.get(404, "/console/users/nobody/events")
}

// An explanation of many events lists the newest and adds up the others.
func TestWhyOfManyEvents(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(strings.Replace(usersStrategy, `,"halfLives":[7,30]`, "", 1)), client.SetOptions{}))
	for i := range 20 {
		u.did("ann", "view", "Product Viewed", time.Duration(i+1)*hour, "brand:Acme")
	}
	u.idle()
	page := u.get(200, "/console/users/ann")
	u.inOrder(page, "20 events add up to <b>200</b>", "12 earlier events", ">120<", ">200<", "See all 20 events")
	if n := strings.Count(page, "1 × 10"); n != 8 {
		t.Errorf("%d events are listed", n)
	}
	if n := strings.Count(u.get(200, "/console/users/ann/why?facet=brand&value=Acme"), "1 × 10"); n != 20 {
		t.Errorf("%d events are listed on a page of their own", n)
	}
}

func TestCompareUsers(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	u.did("ann", "view", "Product Viewed", hour, "brand:Acme", "color:Blue")
	u.did("bob", "view", "Product Viewed", hour, "brand:Acme", "brand:Zeta", "tags:x")
	u.idle()
	u.inOrder(u.get(200, "/console/users/ann"), `action="/console/users/ann/compare"`)
	page := u.get(200, "/console/users/ann/compare?with=bob")
	u.inOrder(page, "brand", "50 % in common", "Acme", "100 %", "50 %", "Zeta", "–", "50 %", "color", "0 % in common", "tags")
	u.inOrder(u.get(404, "/console/users/ann/compare?with=nobody"), `role="alert"`, "nobody has no profile")
	u.inOrder(u.get(422, "/console/users/ann/compare?with=ann"), "This is the same user")
	u.lacks(u.get(422, "/console/users/ann/compare?with="+url.QueryEscape("<b>\u202e")), "<b>", "\u202e")
	u.leads("/console/users/nobody/compare?with=ann", nil, "/console/users/nobody")
}

func TestUserWithoutScores(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.did("ann", "view", "Product Viewed", hour, "brand:Acme")
	u.idle()
	u.inOrder(u.get(200, "/console/users/ann"), "Nothing scores.", "Nothing scores<", "no strategy is set", "Do not score")
}

// The page of a user whose objects are unknown says so, and which index has them.
func TestUserOfAnotherIndex(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	_, err := u.engine.Catalog().Batch(t.Context(), "shop", api.BatchAction{Action: api.ActionAddObject, Body: json.RawMessage(`{"objectID":"s1","brand":"Acme"}`)})
	u.must(err)
	u.must(u.engine.Events().Send(t.Context(), api.Event{EventType: "view", EventName: "Product Viewed", Index: "products", UserToken: "ann", ObjectIDs: []string{"s1"}, Timestamp: time.Now().UnixMilli()}))
	u.idle()
	page := u.get(200, "/console/users/ann")
	u.inOrder(page, "Nothing scores<", "1 of 1 event names objects that index products does not hold (such as s1; index shop holds it)")
	if n := strings.Count(page, "does not hold"); n != 1 {
		t.Errorf("the reason is on the page %d times", n)
	}
}

func TestDeleteUser(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	u.did("ann/1", "view", "Product Viewed", hour, "brand:Acme")
	u.idle()
	u.inOrder(u.get(200, "/console/users/ann%2F1"), `href="/console/users/ann%2F1/delete"`)
	u.inOrder(u.get(200, "/console/users/ann%2F1/delete"), "This cannot be undone", "A task then removes the events", "Delete this user", "affinity user delete ann/1")
	u.leads("/console/users/ann%2F1/delete", url.Values{}, "/console/users?done=user-deleted")
	u.inOrder(u.get(200, "/console/users?done=user-deleted"), `role="status"`, "The user is deleted.")
	u.get(404, "/console/users/ann%2F1")
	if answer, _ := u.send("POST", "/console/users/ann%2F1/delete", url.Values{}); answer.StatusCode != 403 {
		t.Errorf("without the token of the session: %d", answer.StatusCode)
	}
	u.get(422, "/console/users/a%20b/delete")
}

func TestOptOut(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	u.did("ann", "view", "Product Viewed", hour, "brand:Acme")
	u.idle()
	const path = "/console/users/ann/optout"
	u.inOrder(u.get(200, path), "has not opted out", "All that the engine has of the user is deleted", "Opt out and delete")
	u.shows(u.sent(422, path, nil), "Choose at least one type")
	u.lacks(u.sent(422, path, url.Values{"type": {"<b>"}}), "<b>")
	u.leads(path, url.Values{"type": {"view"}}, path+"?done=user-out")
	u.inOrder(u.get(200, path+"?done=user-out"), "The opt-out is set", "out of some types", "Opt in again", "Change the opt-out")
	u.leads(path, url.Values{"type": {"view", "click", "conversion"}}, path+"?done=user-out")
	u.inOrder(u.get(404, "/console/users/ann"), "See their opt-out", "This user has opted out")
	u.leads("/console/users/ann/optin", url.Values{}, path+"?done=user-in")
	u.inOrder(u.get(200, path+"?done=user-in"), "The opt-out has ended", "has not opted out")
}

func TestUserConsents(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.lacks(u.get(404, "/console/users/ann"), "What this user grants")
	_, err := u.stack.Backends.CachedConfig.SetPurposes(t.Context(), "shop", []consent.Purpose{{Name: "ads"}, {Name: "analytics", Default: true}})
	u.must(err)
	_, err = u.engine.Profiles().SetConsents(t.Context(), "ann", map[string]bool{"ads": true})
	u.must(err)
	u.inOrder(u.get(404, "/console/users/ann"), "What this user grants", "ads", "granted", "the user", "analytics", "granted", "the default")
	const path = "/console/users/ann/consents"
	u.shows(u.get(404, "/console/users/ann"), `href="`+path+`"`)
	u.inOrder(u.get(200, path), "ads", "granted", "by the user, since", `name="purpose:ads"`, "analytics", "by default", "Take the answers back", "affinity consent show ann")
	u.shows(u.sent(422, path, url.Values{"purpose:ads": {""}}), "Grant or withdraw at least one purpose")
	u.lacks(u.sent(422, path, url.Values{"purpose:<b>": {"grant"}}), "<b>")
	u.leads(path, url.Values{"purpose:ads": {"withdraw"}, "purpose:analytics": {""}}, path+"?done=user-consents")
	u.inOrder(u.get(200, path+"?done=user-consents"), "The purposes are set", "ads", "not granted", "by the user", "analytics", "by default")
	u.leads(path+"/forget", url.Values{}, path+"?done=user-consents-forgotten")
	u.lacks(u.get(200, path+"?done=user-consents-forgotten"), "by the user", "Take the answers back</h2>")
	if answer, _ := u.send("POST", path, url.Values{"purpose:ads": {"grant"}}); answer.StatusCode != 403 {
		t.Errorf("without the token of the session: %d", answer.StatusCode)
	}
	log, err := u.engine.AuditLog(t.Context(), api.AuditLogQuery{UserToken: "ann"})
	u.must(err)
	if e := log.Entries; len(e) != 3 || e[0].Action != "consent.forget" || e[1].Action != "consent.set" || e[1].Detail != "ads withdrawn" {
		t.Errorf("the audit log has %+v", e)
	}
	u.inOrder(u.get(200, "/console/app"), "Purposes", "ads, analytics", "affinity app purposes shop")
}

func TestUsersByPermissions(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	u.did("ann", "view", "Product Viewed", hour, "brand:Acme")
	u.idle()
	for _, test := range []struct {
		permission  string
		user        int
		shows, hide []string
	}{
		{"profilesRead", 200, []string{"Acme", "needs a key with the permission <code>admin</code>"}, []string{"/delete", "/optout", "ann/events"}},
		{"recommendation", 200, []string{"ann/delete", "Acme"}, []string{"/optout", "ann/events"}},
		{"deleteObject", 403, []string{"Not permitted"}, []string{"ann/events"}},
	} {
		u.enter(test.permission)
		u.lacks(u.get(200, "/console/users"), ">ann<")
		u.inOrder(u.get(200, "/console/users"), "Enter a whole token", "admin")
		u.leads("/console/users?q=ann", nil, "/console/users/ann")
		page := u.get(test.user, "/console/users/ann")
		u.inOrder(page, test.shows...)
		u.lacks(page, test.hide...)
		u.get(403, "/console/users/ann/events")
		if test.permission == "profilesRead" {
			u.get(403, "/console/users/ann/delete")
			for _, path := range []string{"delete", "optout", "optin", "consents", "consents/forget"} {
				u.sent(403, "/console/users/ann/"+path, url.Values{"type": {"view"}})
			}
		}
	}
}

func TestUsersEscape(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	attacks := []string{"<script>alert(1)</script>", "\u202egnp.exe", "\x00\x07\x1b[2J", `"><img src=x onerror=alert(1)>'`, "{{.}}", strings.Repeat("long ", 400), "a/b?c#d%e"}
	leaks := []string{"<script>alert", "<img src=x", "\u202e", "\x07", "\x1b", "ZgotmplZ", strings.Repeat("long ", 250)}
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	for _, text := range attacks {
		filter := "brand:" + url.PathEscape(text)
		u.did("attacked", "view", "Product Viewed", hour, filter, "color:Red")
		u.did("attacked", "conversion", "Order Completed", hour, filter)
	}
	u.did("attacked-too", "view", "Product Viewed", hour, "brand:"+url.PathEscape(attacks[0]))
	u.did("attacked", "click", `<script>alert(1)</script>"'`, hour, "color:<script>alert(1)</script>")
	u.idle()
	profile, err := u.engine.Profiles().Get(t.Context(), "attacked", api.ProfileQuery{})
	u.must(err)
	paths := []string{"/console/users", "/console/users?by=token", "/console/users/attacked", "/console/users/attacked?all=brand", "/console/users/attacked/events", "/console/users/attacked/optout", "/console/users/attacked/compare?with=attacked-too"}
	values := 0
	for _, a := range profile.Affinities {
		if a.Facet == "brand" {
			values++
			paths = append(paths, "/console/users/attacked/why?"+url.Values{"facet": {a.Facet}, "value": {a.Value}}.Encode())
		}
	}
	if values < len(attacks)-1 {
		t.Fatalf("the engine took only %d values", values)
	}
	for _, path := range paths {
		page := u.get(200, path)
		u.lacks(page, leaks...)
		if strings.Contains(path, "why") && !strings.Contains(page, "add up to") {
			t.Errorf("%s explains nothing: %s", path, page)
		}
	}
	u.lacks(u.get(200, "/console/users/attacked/json"), leaks[:len(leaks)-1]...)
	for _, text := range slices.Concat(attacks, []string{strings.Repeat("4k", 2048)}) {
		for _, path := range []string{"/console/users?q=", "/console/users?by=token&after=", "/console/users/attacked?halfLife=", "/console/users/attacked?all=", "/console/users?done="} {
			_, page := u.send("GET", path+url.QueryEscape(text), nil)
			u.lacks(page, leaks...)
		}
		_, page := u.send("GET", "/console/users/"+url.PathEscape(text), nil)
		u.lacks(page, leaks...)
	}
}
