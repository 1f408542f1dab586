package auth_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// with returns an Authenticator of app shop, whose key "key" has every permission and
// the given attributes.
func with(t *testing.T, env auth.Environment, key config.Key) *auth.Authenticator {
	t.Helper()
	store := config.NewMemory()
	key.Hash, key.ACL = auth.Hash("key"), auth.All
	err := errors.Join(store.CreateApp(t.Context(), config.App{ID: "shop"}), store.PutKey(t.Context(), "shop", key))
	if err != nil {
		t.Fatal(err)
	}
	return auth.New(config.NewCached(store, config.TTL), env, nil)
}

func TestKeyEnds(t *testing.T) {
	for name, test := range map[string]struct {
		until time.Time
		want  error
	}{
		"without an end": {time.Time{}, nil},
		"later":          {time.Now().Add(time.Hour), nil},
		"now":            {time.Now(), auth.ErrCredentials},
		"long ago":       {time.Unix(1, 0), auth.ErrCredentials},
	} {
		a := with(t, auth.Environment{}, config.Key{ValidUntil: test.until})
		if _, err := a.Check(t.Context(), auth.Request{App: "shop", Key: "key"}); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func TestIndexes(t *testing.T) {
	for _, test := range []struct {
		pattern, index string
		want           bool
	}{
		{"products", "products", true}, {"products", "Products", false}, {"products", "products2", false}, {"products", "", false},
		{"*", "anything", true}, {"dev_*", "dev_products", true}, {"dev_*", "dev_", true}, {"dev_*", "a_dev_b", false},
		{"*_dev", "products_dev", true}, {"*_dev", "_dev2", false}, {"*_dev_*", "a_dev_b", true}, {"*_dev_*", "_dev", false},
		{"a*b*c", "aXbYc", true}, {"a*b*c", "abc", true}, {"a*b*c", "acb", false}, {"a*a", "a", false}, {"a*a", "aa", true},
		{"a**b", "ab", true}, {"a.c", "abc", false}, {"*ab", "aab", true}, {"*a*ab", "aab", true}, {"a?", "ab", false},
	} {
		a := with(t, auth.Environment{}, config.Key{Indexes: []string{"none", test.pattern}})
		g, err := a.Check(t.Context(), auth.Request{App: "shop", Key: "key"})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Index(test.index); (err == nil) != test.want {
			t.Errorf("pattern %q, index %q: %v, want allowed: %v", test.pattern, test.index, err, test.want)
		}
	}
}

// A route that asks for no index refuses a key that is for some.
func TestRestrictedKeyOnARouteOfTheApp(t *testing.T) {
	a := with(t, auth.Environment{}, config.Key{Indexes: []string{"*"}})
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Algolia-Application-Id", "shop")
	r.Header.Set("X-Algolia-API-Key", "key")
	if _, err := a.Tenant(r); !errors.Is(err, auth.ErrAnyIndex) {
		t.Errorf("Tenant: %v", err)
	}
	if _, err := a.AppID(r); !errors.Is(err, auth.ErrAnyIndex) {
		t.Errorf("AppID: %v", err)
	}
	if app, _, err := a.TenantGrant(r); app.ID != "shop" || err != nil {
		t.Errorf("TenantGrant: %v", err)
	}
}

func TestReferers(t *testing.T) {
	for _, test := range []struct {
		pattern, referer string
		want             bool
	}{
		{"https://shop.example/*", "https://shop.example/cart?x=1", true},
		{"https://shop.example/*", "https://shop.example", true}, // the header Origin
		{"https://shop.example", "https://SHOP.example/a", true},
		{"HTTPS://Shop.Example", "https://shop.example/a", true},
		{"https://shop.example/*", "http://shop.example/", false},
		{"shop.example", "http://shop.example/a", true},
		{"shop.example", "https://www.shop.example/", false},
		{"*.shop.example", "https://www.shop.example/", true},
		{"*.shop.example/*", "https://shop.example/", false},
		{"shop.example", "https://shop.example:8443/", false},
		{"shop.example:*", "https://shop.example:8443/", true},
		{"shop.example/cart/*", "https://shop.example/cart/1", true},
		{"shop.example/cart/*", "https://shop.example/", false},
		{"*.shop.example", "https://evil.example/a.shop.example", false},
		{"*.shop.example", "https://evil.example?a.shop.example", false},
		{"https://*.shop.example/*", "https://evil.example/.shop.example/", false},
		{"shop.example", "https://shop.example@evil.example/", false},
		{"shop.example", "https://evil.example#shop.example", false},
		{"shop.example", "shop.example", false},
		{"*", "https://anything.example/", true},
		{"*", "", false}, {"*", "null", false}, {"*", "https://%zz", false}, {"*", "data:text/html,x", false},
	} {
		a := with(t, auth.Environment{}, config.Key{Referers: []string{"none.example", test.pattern}})
		_, err := a.Check(t.Context(), auth.Request{App: "shop", Key: "key", Referer: test.referer})
		if test.want && err != nil || !test.want && !errors.Is(err, auth.ErrReferer) {
			t.Errorf("pattern %q, page %q: %v, want allowed: %v", test.pattern, test.referer, err, test.want)
		}
	}
}

func TestRefererOfARequest(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Origin", "https://origin.example")
	if got := auth.NewRequest(r).Referer; got != "https://origin.example" {
		t.Errorf("without Referer: %q", got)
	}
	r.Header.Set("Referer", "https://referer.example/")
	if got := auth.NewRequest(r).Referer; got != "https://referer.example/" {
		t.Errorf("with both: %q", got)
	}
}

// The client of a request is the one that the load balancer names, not one that
// the client names.
func TestAddressRate(t *testing.T) {
	for _, test := range []struct {
		name      string
		forwarded int
		requests  [3]string // values of X-Forwarded-For; with "remote " the address of the connection
		refused   int       // how many of them
	}{
		{"no load balancer: the connection's address", 0, [3]string{"remote 192.0.2.1:1", "remote 192.0.2.1:2", "remote 192.0.2.2:1"}, 1},
		{"no load balancer: the header is the client's", 0, [3]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, 2},
		{"the second to last", 2, [3]string{"1.1.1.1, 192.0.2.1, 10.0.0.1", "2.2.2.2,192.0.2.1,10.0.0.2", "192.0.2.2,10.0.0.1"}, 1},
		{"an IPv4 address as IPv6", 2, [3]string{"192.0.2.1,10.0.0.1", "::ffff:192.0.2.1,10.0.0.1", "192.0.2.2,10.0.0.1"}, 1},
		{"no address of the load balancer", 2, [3]string{"", "10.0.0.1", "x,10.0.0.1"}, 2},
	} {
		a, refused := with(t, auth.Environment{Forwarded: test.forwarded}, config.Key{AddressRate: 1}), 0
		for _, value := range test.requests {
			r := auth.Request{App: "shop", Key: "key", Remote: "192.0.2.9:1", ForwardedFor: []string{value}}
			if remote, ok := strings.CutPrefix(value, "remote "); ok {
				r.Remote, r.ForwardedFor = remote, nil
			}
			_, err := a.Check(t.Context(), r)
			if err != nil && !errors.Is(err, auth.ErrAddressRate) {
				t.Fatal(err)
			}
			if err != nil {
				refused++
			}
		}
		if refused != test.refused {
			t.Errorf("%s: %d refused, want %d", test.name, refused, test.refused)
		}
	}
}

func TestNameOfAKey(t *testing.T) {
	for name, want := range map[string]string{"web": "web", "": auth.Hash("key")[:12]} {
		g, err := with(t, auth.Environment{}, config.Key{Name: name}).Check(t.Context(), auth.Request{App: "shop", Key: "key"})
		if err != nil || g.Key != want {
			t.Errorf("name %q: %q, %v; want %q", name, g.Key, err, want)
		}
	}
}

// Of keys with one name, a grant is that of one.
func TestGrantIsOfOneKey(t *testing.T) {
	g, err := with(t, auth.Environment{}, config.Key{Name: "web"}).Check(t.Context(), auth.Request{App: "shop", Key: "key"})
	if err != nil {
		t.Fatal(err)
	}
	if old := (config.Key{Name: "web", Hash: auth.Hash("old")}); g.Is(old) || !g.Is(config.Key{Hash: auth.Hash("key")}) {
		t.Errorf("the grant is that of the old key: %v", g.Is(old))
	}
	if (auth.Grant{}).Is(config.Key{Hash: auth.Hash("key")}) {
		t.Error("a grant of no key is that of a key")
	}
}
