package stack_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/functions/segments"
	"github.com/affinityengine/affinity/functions/strategies"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

var crossTenant = flag.Int("cross-tenant", 1_000, "how many random attempts of one app's customer on another app")

// attacker is a customer of app evil, who knows everything of their own app, and
// of app shop what is public: its id, its host, its users' tokens, the hashes of
// its keys.
type attacker struct {
	*rand.Rand
	known []string // keys and texts from which they make keys
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// key returns a key that is not shop's: one of evil, a secured key, or a
// corruption of one.
func (a attacker) key() string {
	text := pick(a.Rand, a.known...)
	switch a.IntN(5) {
	case 0:
		return text
	case 1:
		return auth.NewKey()
	}
	parameters := pick(a.Rand, "", "userToken=ann", "userToken=ann&appId=shop", "x-algolia-application-id=shop", "restrictIndices=*", "validUntil=99999999999")
	mac := hmac.New(sha256.New, []byte(text))
	mac.Write([]byte(pick(a.Rand, parameters, "shop"+parameters)))
	key := []byte(base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(mac.Sum(nil)) + parameters)))
	if a.IntN(4) == 0 {
		key[a.IntN(len(key))] = byte(32 + a.IntN(95))
	}
	return string(key)
}

// request returns a random request, with credentials in any place and the app
// shop in at least one, and the app of those in its body.
func (a attacker) request() (r *http.Request, inBody string) {
	app := func() string {
		return pick(a.Rand, "shop", "shop", "evil", "Shop", "shop,", "shop ", "", "evil,shop", "shop/keys")
	}
	inBody = app()
	writeKey, _ := json.Marshal(inBody + ":" + a.key())
	route := pick(a.Rand,
		[3]string{"POST", "/1/events", `{"app":"shop","events":[` + seenIn + `]}`},
		[3]string{"POST", "/v1/batch", `{"app":"shop","writeKey":` + string(writeKey) + `,"batch":[` + seenCall + `]}`},
		[3]string{"POST", "/v1/t", strings.Replace(seenCall, "{", `{"writeKey":`+string(writeKey)+`,`, 1)},
		[3]string{"GET", "/1/events/refused", ""},
		[3]string{"GET", "/1/events/seen", ""},
		[3]string{"GET", "/1/events/recent", ""},
		[3]string{"GET", "/1/usertokens/recent", ""},
		[3]string{"GET", "/1/profiles/ann", ""},
		[3]string{"GET", "/1/profiles/personalization/ann", ""},
		[3]string{"POST", "/1/profiles/batch", `{"userTokens":["ann"],"appId":"shop"}`},
		[3]string{"GET", "/1/explain/ann", ""},
		[3]string{"DELETE", "/1/profiles/ann", ""},
		[3]string{"DELETE", "/1/usertokens/ann", ""},
		[3]string{"GET", "/1/usertokens?prefix=a", ""},
		[3]string{"PUT", "/1/optouts/ann", ""},
		[3]string{"GET", "/1/optouts/ann", ""},
		[3]string{"GET", "/1/consents/ann", ""},
		[3]string{"PUT", "/1/consents/ann", `{"ads":true}`},
		[3]string{"GET", "/1/users/ann/region", ""},
		[3]string{"PUT", "/1/users/ann/region", `{"region":"us"}`},
		[3]string{"POST", "/1/rank", `{"userToken":"ann","index":"i","objectIDs":["1"]}`},
		[3]string{"POST", "/1/recommend", `{"model":"for-you","userToken":"ann","index":"i"}`},
		[3]string{"POST", "/1/recommend/1/indexes/*/recommendations", `{"requests":[{"indexName":"i","model":"recommended-for-you","threshold":0,"queryParameters":{"userToken":"ann"}}]}`},
		[3]string{"GET", "/1/boosts/ann?engine=algolia", ""},
		[3]string{"GET", "/1/feeds/f/suggested?userToken=ann", ""},
		[3]string{"GET", "/1/feeds/f/latest", ""},
		[3]string{"PUT", "/1/feeds/f", `{"index":"i","date":"d"}`},
		[3]string{"GET", "/1/feeds", ""},
		[3]string{"GET", "/1/strategies/personalization", ""},
		[3]string{"POST", "/1/strategies/personalization", `{}`},
		[3]string{"GET", "/1/indexes/i", ""},
		[3]string{"GET", "/1/indexes/i/1", ""},
		[3]string{"POST", "/1/indexes/i/batch", addOne},
		[3]string{"DELETE", "/1/indexes/i/1", ""},
		[3]string{"POST", "/1/segments/query", `{"where":{"filter":"color:Secret"}}`},
		[3]string{"GET", "/1/segments/histogram?facet=color&value=Secret", ""},
		[3]string{"GET", "/1/values?facet=color&sample=10", ""},
		[3]string{"GET", "/1/segments", ""},
		[3]string{"GET", "/1/segments/fans", ""},
		[3]string{"PUT", "/1/segments/fans", `{"where":{"filter":"color:Red"}}`},
		[3]string{"DELETE", "/1/segments/fans", ""},
		[3]string{"POST", "/1/segments/fans/export", ""},
		[3]string{"POST", "/1/segments/refresh", ""},
	)
	query := url.Values{}
	names := []string{"x-algolia-application-id", "X-Algolia-Application-Id", "X-ALGOLIA-APPLICATION-ID", "app", "appId"}
	keys := []string{"x-algolia-api-key", "X-Algolia-API-Key", "X-ALGOLIA-API-KEY", "key"}
	for range a.IntN(3) {
		query.Add(pick(a.Rand, names...), app())
		query.Add(pick(a.Rand, keys...), a.key())
	}
	if strings.HasPrefix(route[1], "/v1/") && a.IntN(2) == 0 {
		query.Add(auth.WriteKey, app()+":"+a.key())
	}
	separator := "?"
	if strings.Contains(route[1], "?") {
		separator = "&"
	}
	r = httptest.NewRequest(route[0], route[1]+separator+query.Encode(), strings.NewReader(route[2]))
	r.Host = pick(a.Rand, "localhost", "shop.example", "SHOP.example:443", "evil.example", "shop.example.")
	// From many addresses: after some failures an address is refused without a look at
	// the key.
	r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1234", a.IntN(256), a.IntN(256), a.IntN(256))
	// Whatever the load balancer says.
	r.Header.Set(auth.CustomerHeader, pick(a.Rand, "evil", "evil", "shop", auth.AnyCustomer))
	for range a.IntN(3) {
		r.Header.Add(names[0], app())
		r.Header.Add(keys[0], a.key())
	}
	if a.IntN(3) == 0 {
		r.SetBasicAuth(app()+":"+a.key(), "")
	}
	if a.IntN(3) == 0 {
		r.Header.Set(pick(a.Rand, "X-Forwarded-Host", "X-Forwarded-For", "Referer", "Authorization", "X-Original-URL"), "https://shop.example/")
	}
	return r, inBody
}

// No request without a key of an app is answered for it, whatever else the request
// names.
func TestCrossTenant(t *testing.T) {
	s := start(t, stack.Options{
		Apps:  []stack.App{{ID: "shop", Key: "the-shops-own-key"}, {ID: "evil", Key: "the-evil-key"}},
		Hosts: auth.Hosts{"shop.example": "shop", "evil.example": "evil"},
	})
	for _, app := range []string{"shop", "evil"} {
		must.Succeed(t, s.Backends.Config.SetSegments(t.Context(), app, true))
	}
	for _, of := range []struct{ app, key, method, path, body string }{
		{"shop", "the-shops-own-key", "POST", "/1/events", `{"events":[` + strings.NewReplacer(`"u"`, `"ann"`, "Red", "Secret").Replace(seenIn) + `]}`},
		{"shop", "the-shops-own-key", "POST", "/1/strategies/personalization", seenStrategy},
		{"shop", "the-shops-own-key", "POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Secret"}}]}`},
		{"shop", "the-shops-own-key", "PUT", "/1/segments/fans", `{"where":{"filter":"color:Secret"}}`},
	} {
		if code, answer := callAt(t, s, "shop.example", of.app, of.key, of.method, of.path, of.body); code != http.StatusOK {
			t.Fatal(code, answer)
		}
	}
	must.Succeed(t, s.Idle(t.Context()))
	shops := func() (state string) {
		for _, path := range []string{"/1/profiles/personalization/ann", "/1/strategies/personalization", "/1/indexes/i/1", "/1/feeds", "/1/events/refused", "/1/explain/ann?facet=color&value=Secret", "/1/segments/fans"} {
			_, answer := callAt(t, s, "shop.example", "shop", "the-shops-own-key", "GET", path, "")
			answer, _, _ = strings.Cut(answer, `"asOf"`) // the instant of the answer
			state += answer
		}
		return state
	}
	before := shops()
	if !strings.Contains(before, "Secret") {
		t.Fatalf("the shop's data are not there: %s", before)
	}
	a := attacker{rand.New(rand.NewPCG(1, 2)), []string{"the-evil-key", "page", auth.Hash("the-shops-own-key"), "shop", "", "demokey"}}
	page := config.Key{Hash: auth.Hash("page"), ACL: []string{auth.Search}}
	must.Succeed(t, config.AddParent(t.Context(), s.Backends.Config, s.Backends.Cipher, "evil", page, "page"))
	b := s.Backends
	public := http.NewServeMux()
	public.Handle("/1/events", ingest.New(b.ForIngest()))
	public.Handle("/v1/", ingest.New(b.ForIngest()))
	public.Handle("/1/events/refused", ingest.New(b.ForIngest()))
	public.Handle("/1/events/seen", ingest.New(b.ForIngest()))
	for _, path := range []string{"/1/events/recent", "/1/profiles/", "/1/explain/", "/1/usertokens", "/1/usertokens/", "/1/optouts/", "/1/consents/", "/1/users/", "/1/identities", "/1/identities/"} {
		public.Handle(path, profiles.New(b.ForProfiles()))
	}
	public.Handle("/1/rank", rank.New(b.ForRank()))
	public.Handle("/1/recommend", rank.New(b.ForRank()))
	public.Handle("/1/recommend/", rank.New(b.ForRank()))
	public.Handle("/1/boosts/", rank.New(b.ForRank()))
	public.Handle("/1/feeds", rank.New(b.ForRank()))
	public.Handle("/1/feeds/", rank.New(b.ForRank()))
	public.Handle("/1/strategies/", strategies.New(b.ForStrategies()))
	public.Handle("/1/indexes/", catalog.New(b.ForCatalog()))
	for _, path := range []string{"/1/segments", "/1/segments/", "/1/values"} {
		public.Handle(path, segments.New(b.ForSegments()))
	}
	own, refused := 0, 0
	for range *crossTenant {
		r, inBody := a.request()
		app, key := auth.Credentials(r.Header.Get, r.URL.Query())
		if app == "" || key == "" {
			app = inBody
		}
		w := httptest.NewRecorder()
		public.ServeHTTP(w, r)
		switch {
		case w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden:
			refused++
		case w.Code == http.StatusUnprocessableEntity && strings.Contains(w.Body.String(), "Unknown query option"):
			refused++ // some routes check the form of the query before the key
		case app != "evil" || strings.Contains(w.Body.String(), "Secret"):
			t.Fatalf("answered: %s %s at %s, headers %v: %d %s", r.Method, r.URL, r.Host, r.Header, w.Code, w.Body)
		default:
			own++
		}
	}
	must.Succeed(t, s.Idle(t.Context()))
	if after := shops(); after != before {
		t.Errorf("the shop's data changed:\n%s\n%s", before, after)
	}
	t.Logf("%d refused, %d answered for the attacker's own app, 0 for the other", refused, own)
}
