package auth_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/configtest"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// newStore holds two apps. The keys of shop are "search", "admin" and "none",
// each with the ACL of its name; that of zoo is "zoo", with all of them.
func newStore(t *testing.T) *config.Store {
	t.Helper()
	store := config.NewMemory()
	keys := map[string]map[string][]string{
		"shop": {"search": {auth.Search}, "admin": {auth.Admin}, "none": nil},
		"zoo":  {"zoo": auth.All},
	}
	for app, acls := range keys {
		if err := store.CreateApp(t.Context(), config.App{ID: app, RetentionDays: 90}); err != nil {
			t.Fatal(err)
		}
		for key, acl := range acls {
			if err := store.PutKey(t.Context(), app, config.Key{Hash: auth.Hash(key), ACL: acl}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return store
}

func TestApp(t *testing.T) {
	tests := []struct {
		name     string
		app, key string
		anyOf    []string
		want     error
	}{
		{"the one ACL", "shop", "search", []string{auth.Search}, nil},
		{"one of two ACLs", "shop", "search", []string{auth.AddObject, auth.Search}, nil},
		{"no ACL asked for", "shop", "none", nil, nil},
		{"another ACL", "shop", "search", []string{auth.Recommendation}, auth.ErrForbidden},
		{"neither of two ACLs", "shop", "search", []string{auth.AddObject, auth.Settings}, auth.ErrForbidden},
		{"key without any ACL", "shop", "none", []string{auth.Search}, auth.ErrForbidden},
		{"admin does not include others", "shop", "admin", []string{auth.Search, auth.Recommendation}, auth.ErrForbidden},
		{"every ACL", "zoo", "zoo", []string{auth.DeleteObject}, nil},
		{"wrong key", "shop", "Search", []string{auth.Search}, auth.ErrCredentials},
		{"wrong key where no ACL is asked for", "shop", "x", nil, auth.ErrCredentials},
		{"key of another app", "shop", "zoo", []string{auth.Search}, auth.ErrCredentials},
		{"hash in the place of the key", "shop", auth.Hash("search"), []string{auth.Search}, auth.ErrCredentials},
		{"unknown app", "shop2", "search", []string{auth.Search}, auth.ErrCredentials},
		{"app of another case", "Shop", "search", []string{auth.Search}, auth.ErrCredentials},
		{"no app", "", "search", []string{auth.Search}, auth.ErrMissing},
		{"no key", "shop", "", []string{auth.Search}, auth.ErrMissing},
		{"malformed app", "shop,", "search", []string{auth.Search}, auth.ErrCredentials},
		{"app that is no text", "\xff", "search", []string{auth.Search}, auth.ErrCredentials},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("X-Algolia-Application-Id", tt.app)
			r.Header.Set("X-Algolia-API-Key", tt.key)
			a := auth.New(config.NewCached(newStore(t), 0), auth.Environment{}, nil)
			got, err := a.Tenant(r, tt.anyOf...)
			if id, same := a.AppID(r, tt.anyOf...); id != got.ID || !errors.Is(same, tt.want) {
				t.Errorf("the app's id alone: %q, %v; want %q", id, same, got.ID)
			}
			if !errors.Is(err, tt.want) {
				t.Fatalf("got error %v, want %v", err, tt.want)
			}
			if err == nil && (got.ID != tt.app || got.RetentionDays != 90) {
				t.Errorf("got app %+v, want %q", got, tt.app)
			}
			if err != nil && (got.ID != "" || got.RetentionDays != 0) {
				t.Errorf("got app %+v along with an error", got)
			}
		})
	}
}

// A caller with a wrong key must not learn whether the app exists.
func TestUnknownAppLooksLikeWrongKey(t *testing.T) {
	a := auth.New(config.NewCached(newStore(t), 0), auth.Environment{}, nil)
	_, wrongKey := a.Check(t.Context(), auth.Request{App: "shop", Key: "x"}, auth.Search)
	_, unknownApp := a.Check(t.Context(), auth.Request{App: "nobody", Key: "x"}, auth.Search)
	if wrongKey == nil || unknownApp == nil || wrongKey.Error() != unknownApp.Error() {
		t.Errorf("wrong key: %v, unknown app: %v; want the same", wrongKey, unknownApp)
	}
}

// A key is valid until it is deleted.
func TestDeletedKeyIsRejected(t *testing.T) {
	store := newStore(t)
	a := auth.New(config.NewCached(store, 0), auth.Environment{}, nil)
	check := func(when string, want error) {
		t.Helper()
		if _, err := a.Check(t.Context(), auth.Request{App: "shop", Key: "search"}, auth.Settings); !errors.Is(err, want) {
			t.Errorf("%s: got error %v, want %v", when, err, want)
		}
	}
	check("as created", auth.ErrForbidden)
	key := config.Key{Hash: auth.Hash("search"), ACL: []string{auth.Settings}}
	if err := store.PutKey(t.Context(), "shop", key); err != nil {
		t.Fatal(err)
	}
	check("with another ACL", nil)
	if err := store.DeleteKey(t.Context(), "shop", key.Hash); err != nil {
		t.Fatal(err)
	}
	check("deleted", auth.ErrCredentials)
}

var errBackend = errors.New("backend is down")

// broken returns the store of newStore, except that some reads fail.
func broken(t *testing.T, fails *[]string) config.Source {
	return configtest.Hooked(newStore(t), func(_ context.Context, read string) error {
		if slices.Contains(*fails, read) {
			return errBackend
		}
		return nil
	})
}

// If the store fails, the key is neither accepted nor rejected.
func TestAppReturnsStoreErrors(t *testing.T) {
	for name, fails := range map[string][]string{
		"app":  {"app"},
		"key":  {"key"},
		"both": {"app", "key"},
	} {
		t.Run(name, func(t *testing.T) {
			a := auth.New(config.NewCached(broken(t, &fails), 0), auth.Environment{}, nil)
			_, err := a.Check(t.Context(), auth.Request{App: "shop", Key: "search"}, auth.Search)
			if !errors.Is(err, errBackend) || errors.Is(err, auth.ErrCredentials) || errors.Is(err, auth.ErrForbidden) {
				t.Errorf("got error %v, want the store's error", err)
			}
		})
	}
}

// basic is the header that an SDK sends.
func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

// The write key of a body is the credentials of a request.
func TestWithWriteKey(t *testing.T) {
	for writeKey, want := range map[string][2]string{"shop:k": {"shop", "k"}, "shop:a:b": {"shop", "a:b"}, "shop": {"shop", ""}, "": {}, ":": {}, " :k": {" ", "k"}} {
		r := httptest.NewRequest("POST", "/v1/t?index=i", nil)
		r.Header.Set("X-Algolia-Application-Id", "another")
		with := auth.WithWriteKey(r, writeKey)
		if app, key := auth.Credentials(with.Header.Get, with.URL.Query()); app != want[0] || key != want[1] || len(r.Header) != 1 {
			t.Errorf("write key %q: %q, %q; want %q", writeKey, app, key, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	tests := []struct {
		name     string
		header   map[string]string
		query    string
		app, key string
	}{
		{"none", nil, "x=1", "", ""},
		{"headers", map[string]string{"X-Algolia-Application-Id": "shop", "X-Algolia-API-Key": "k"}, "", "shop", "k"},
		{"query in mixed case", nil, "X-Algolia-Application-Id=shop&X-Algolia-API-Key=k&X-Algolia-Agent=a", "shop", "k"},
		{"query in lower case", nil, "x-algolia-agent=a&x-algolia-application-id=shop&x-algolia-api-key=k", "shop", "k"},
		{"header wins", map[string]string{"x-algolia-application-id": "h", "x-algolia-api-key": "hk"}, "x-algolia-application-id=q&x-algolia-api-key=qk", "h", "hk"},
		{"one of each", map[string]string{"x-algolia-application-id": "h"}, "x-algolia-api-key=qk", "h", "qk"},
		{"bare plus in the query", nil, "x-algolia-api-key=a+b", "", "a+b"},
		{"encoded plus in the query", nil, "x-algolia-api-key=a%2Bb%20c", "", "a+b+c"},
		{"space in the header", map[string]string{"x-algolia-api-key": "a b"}, "", "", "a b"},
		{"several values", nil, "x-algolia-api-key=first&x-algolia-api-key=second", "", "first"},
		{"several spellings", nil, "x-algolia-api-key=lower&X-ALGOLIA-API-KEY=upper", "", "upper"},
		{"write key", map[string]string{"Authorization": basic("shop:k:")}, "", "shop", "k"},
		{"write key as name and password", map[string]string{"Authorization": strings.Replace(basic("shop:k"), "Basic", "basic", 1)}, "", "shop", "k"},
		{"write key without an app", map[string]string{"Authorization": basic("k:")}, "", "k", ""},
		{"write key beside a header", map[string]string{"Authorization": basic("shop:k:"), "x-algolia-application-id": "h"}, "", "h", ""},
		{"write key beside a query", map[string]string{"Authorization": basic("shop:k:")}, "x-algolia-application-id=q&x-algolia-api-key=qk", "q", "qk"},
		{"write key in the query", nil, "writeKey=shop:k", "shop", "k"},
		{"write key in the query with colons, a plus and padding", nil, "index=i&writeKey=shop:a+b:c==", "shop", "a+b:c=="},
		{"encoded write key in the query", nil, "writeKey=shop%3Ak", "shop", "k"},
		{"write key in the query without an app", nil, "writeKey=k", "k", ""},
		{"write key in the query beside a header", map[string]string{"Authorization": basic("shop:k:")}, "writeKey=q:qk", "shop", "k"},
		{"write key in the query beside another authorization", map[string]string{"Authorization": "Bearer x"}, "writeKey=q:qk", "q", "qk"},
		{"write key in the query beside an app", nil, "writeKey=q:qk&x-algolia-application-id=shop", "shop", ""},
		{"write key of another spelling", nil, "writekey=shop:k", "", ""},
		{"another authorization", map[string]string{"Authorization": "Bearer c2hvcDprOg=="}, "", "", ""},
		{"damaged authorization", map[string]string{"Authorization": "Basic shop:k:"}, "", "", ""},
		{"empty spelling", nil, "x-algolia-api-key=lower&X-ALGOLIA-API-KEY=", "", "lower"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := make(http.Header)
			for name, value := range tt.header {
				header.Set(name, value)
			}
			query, err := url.ParseQuery(tt.query)
			if err != nil {
				t.Fatal(err)
			}
			app, key := auth.Credentials(header.Get, query)
			if app != tt.app || key != tt.key {
				t.Errorf("got %q, %q; want %q, %q", app, key, tt.app, tt.key)
			}
		})
	}
}

func TestHash(t *testing.T) {
	// The example of FIPS 180-2.
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := auth.Hash("abc"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNewKey(t *testing.T) {
	form := regexp.MustCompile(`^[A-Za-z0-9]{40}$`)
	seen := make(map[string]bool)
	letters := make(map[rune]bool)
	for range 1000 {
		key := auth.NewKey()
		if !form.MatchString(key) {
			t.Fatalf("got %q, want 40 letters and digits", key)
		}
		if seen[key] {
			t.Fatalf("%q was returned twice", key)
		}
		seen[key] = true
		for _, letter := range key {
			letters[letter] = true
		}
	}
	// 40,000 draws miss one of 62 letters once in 10^280.
	if len(letters) != 62 {
		t.Errorf("%d different letters, want all 62", len(letters))
	}
}

// In an outage a route that needs only the app's id works with a known key, and
// one that needs the app's settings does not.
func TestKnownKeyInAnOutage(t *testing.T) {
	var fails []string
	a := auth.New(config.NewCached(broken(t, &fails), time.Nanosecond), auth.Environment{}, nil)
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Algolia-Application-Id", "shop")
	r.Header.Set("X-Algolia-API-Key", "search")
	if _, err := a.Tenant(r, auth.Search); err != nil {
		t.Fatal(err)
	}
	fails = []string{"app", "key"}
	if id, err := a.AppID(r, auth.Search); id != "shop" || err != nil {
		t.Errorf("known key: %q, %v", id, err)
	}
	if _, err := a.AppID(r, auth.Admin); !errors.Is(err, auth.ErrForbidden) {
		t.Errorf("known key without the permission: %v", err)
	}
	if _, err := a.Tenant(r, auth.Search); !errors.Is(err, errBackend) {
		t.Errorf("known key where settings are needed: %v", err)
	}
	r.Header.Set("X-Algolia-API-Key", "admin")
	if _, err := a.AppID(r, auth.Admin); !errors.Is(err, errBackend) {
		t.Errorf("key that was not read before: %v", err)
	}
}
