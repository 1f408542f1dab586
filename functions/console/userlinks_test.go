package console_test

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// link has the app link tokens.
func (s *site) link(trustPages bool) {
	s.t.Helper()
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := s.stack.Backends.CachedConfig.SetIdentity(s.t.Context(), "shop", config.Identity{Mode: mode, Lookback: 36 * hour, TrustPages: trustPages}, 0)
		s.must(err)
	}
}

// signedIn sends an event that names who has signed in.
func (u *usersSite) signedIn(c *client.Client, token, known string, filters ...string) {
	u.t.Helper()
	u.must(c.Events().Send(u.t.Context(), api.Event{EventType: "view", EventName: "Product Viewed", Index: "products", UserToken: token,
		AuthenticatedUserToken: known, Filters: filters, Timestamp: time.Now().UnixMilli()}))
}

// The page of a user shows the tokens of before, and an unlink takes what was done under one of them away.
func TestLinksOfAUser(t *testing.T) {
	t.Parallel()
	u := newUsersSite(t)
	u.must(u.engine.Strategies().SetJSON(t.Context(), json.RawMessage(usersStrategy), client.SetOptions{}))
	u.did("ann", "view", "Product Viewed", hour, "brand:Own")
	u.idle()
	u.lacks(u.get(200, "/console/users/ann"), "Tokens of this user", "signed in")

	u.link(true)
	u.did("a/1", "view", "Product Viewed", 2*hour, "brand:Acme")
	u.signedIn(u.engine, "a/1", "ann", "color:Red")
	u.must(u.stack.Backends.Config.PutKey(t.Context(), "shop", config.Key{Hash: auth.Hash("page"), ACL: []string{auth.Search}}))
	page, err := client.New(client.Config{URL: u.stack.URL, App: "shop", Key: "page"})
	u.must(err)
	u.signedIn(page, "a2", "ann", "brand:Zeta")
	u.idle()
	_, err = u.engine.Profiles().Link(t.Context(), api.LinkRequest{UserToken: "a3", AuthenticatedUserToken: "ann", Reason: "asked <b> by mail"})
	u.must(err)

	ann := u.get(200, "/console/users/ann")
	u.inOrder(ann, "Tokens of this user", "they had other tokens", `href="/console/users/a%2F1"`, `<span class="tag good">open</span>`, "an event with both tokens",
		`href="/console/users/a%2F1/unlink?from=ann"`, ">a2<", `<span class="tag warn"`, ">weak<", ">a3<", "a request", "asked &lt;b&gt; by mail")
	u.inOrder(ann, "/1/identities/ann")
	u.shows(ann, "Acme", "Zeta")
	u.inOrder(u.get(200, "/console/users/a%2F1"), "Who signed in under this token", "an anonymous token", `href="/console/users/ann"`, "/unlink?from=ann")

	const path = "/console/users/a%2F1/unlink"
	u.inOrder(u.get(200, path+"?from=ann"), "Unlink", "a/1", "from", "ann", "counts for", "no more", "The audit log records it", `name="from" value="ann"`, "affinity identity unlink a/1 ann")
	u.leads(path, url.Values{"from": {"ann"}}, "/console/users/ann?done=tokens-unlinked")
	after := u.get(200, "/console/users/ann?done=tokens-unlinked")
	u.inOrder(after, `role="status"`, "The link is undone", "undone")
	u.lacks(after, "Acme", "a%2F1/unlink")
	u.get(404, path+"?from=ann")
	u.get(422, path+"?from="+url.QueryEscape("a b"))
	u.get(422, path)
	u.sent(404, path, url.Values{"from": {"bob"}})
	if answer, _ := u.send("POST", "/console/users/a2/unlink", url.Values{"from": {"ann"}}); answer.StatusCode != 403 {
		t.Errorf("without the token of the session: %d", answer.StatusCode)
	}

	u.enter("recommendation")
	u.lacks(u.get(200, "/console/users/ann"), "Tokens of this user", "/unlink")
	u.get(403, "/console/users/a2/unlink?from=ann")
	u.sent(403, "/console/users/a2/unlink", url.Values{"from": {"ann"}})
	u.shows(u.login(key).page("/console/users/ann"), "a2/unlink")
}

func TestAppPageShowsIdentity(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.login(key)
	s.shows(p.page(appPath), "Links between tokens", "affinity app identity shop --mode collect")
	_, err := s.stack.Backends.CachedConfig.SetIdentity(t.Context(), "shop", config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour}, 0)
	s.must(err)
	s.shows(p.page(appPath), "Collected", "nothing counts by them yet", "affinity app identity shop --mode link")
	s.link(true)
	s.shows(p.page(appPath), "What a visitor did in the 36h before they signed in counts", "Keys in web pages may say who has signed in")
	s.lacks(p.page(appPath), "gets the order of the user")
	_, err = s.stack.Backends.CachedConfig.SetIdentity(t.Context(), "shop", config.Identity{Mode: config.IdentityLink, ServePersons: true}, 0)
	s.must(err)
	s.shows(p.page(appPath), "in the 0d before", "gets the order of the user")
}
