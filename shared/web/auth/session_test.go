package auth_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// keyed returns a request with credentials.
func keyed(app, key string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Algolia-Application-Id", app)
	r.Header.Set("X-Algolia-API-Key", key)
	return r
}

func put(t *testing.T, store *config.Store, key config.Key) {
	t.Helper()
	if err := store.PutKey(t.Context(), "shop", key); err != nil {
		t.Fatal(err)
	}
}

// A session permits what its key permits now, and no more than the key did at its beginning.
func TestSessionPermitsNoMoreThanAtItsBeginning(t *testing.T) {
	store := newStore(t)
	a := auth.New(config.NewCached(store, 0), auth.Environment{}, nil)
	hash := auth.Hash("person")
	put(t, store, config.Key{Hash: hash, ACL: []string{auth.Recommendation, auth.Usage}})
	s, err := a.Begin(keyed("shop", "person"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{auth.Recommendation, auth.Usage}; s.App != "shop" || s.Key != hash || !slices.Equal(s.Permissions, want) {
		t.Fatalf("began %+v", s)
	}
	for _, step := range []struct{ acl, want []string }{
		{[]string{auth.Recommendation, auth.Usage}, []string{auth.Recommendation, auth.Usage}},
		{auth.All, []string{auth.Recommendation, auth.Usage}},
		{[]string{auth.Usage, auth.Admin}, []string{auth.Usage}},
		{[]string{auth.Admin}, nil},
	} {
		put(t, store, config.Key{Hash: hash, ACL: step.acl})
		g, err := a.Resume(t.Context(), s)
		got := g.Permissions()
		slices.Sort(got)
		if err != nil || g.App != "shop" || !slices.Equal(got, step.want) {
			t.Errorf("a key with %q resumes with %q, %v; want %q", step.acl, got, err, step.want)
		}
		r := keyed("", "")
		_, err = a.Grant(r.WithContext(auth.WithSession(r.Context(), s)), auth.Admin)
		if !errors.Is(err, auth.ErrForbidden) {
			t.Errorf("a key with %q permits admin: %v", step.acl, err)
		}
	}
}

// A session ends when its key is deleted, with the end of the key, and with its app.
func TestSessionEndsWithItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(*config.Store) error{
			"deleted": func(s *config.Store) error { return s.DeleteKey(t.Context(), "shop", auth.Hash("person")) },
			"ended":   func(*config.Store) error { time.Sleep(time.Hour); return nil },
			"its app": func(s *config.Store) error { _, err := s.DeleteApp(t.Context(), "shop"); return err },
		} {
			store := newStore(t)
			a := auth.New(config.NewCached(store, 0), auth.Environment{}, nil)
			put(t, store, config.Key{Hash: auth.Hash("person"), ACL: auth.All, ValidUntil: time.Now().Add(time.Hour)})
			s, err := a.Begin(keyed("shop", "person"))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour - time.Second)
			if _, err := a.Resume(t.Context(), s); err != nil {
				t.Errorf("%s: before its end: %v", name, err)
			}
			if err := end(store); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Resume(t.Context(), s); !errors.Is(err, auth.ErrCredentials) {
				t.Errorf("%s: %v, want %v", name, err, auth.ErrCredentials)
			}
			r := keyed("shop", "admin") // the app's, but not the session's
			if _, err := a.Grant(r.WithContext(auth.WithSession(r.Context(), s))); !errors.Is(err, auth.ErrCredentials) {
				t.Errorf("%s: a request in the session: %v, want %v", name, err, auth.ErrCredentials)
			}
		}
	})
}

// What a request in a session carries of credentials counts for nothing.
func TestSessionIgnoresCredentials(t *testing.T) {
	a := auth.New(config.NewCached(newStore(t), 0), auth.Environment{}, nil)
	s, err := a.Begin(keyed("shop", "admin"))
	if err != nil {
		t.Fatal(err)
	}
	r := keyed("zoo", "zoo")
	r.URL.RawQuery = "x-algolia-application-id=zoo&x-algolia-api-key=zoo"
	r.SetBasicAuth("zoo", "zoo")
	r = r.WithContext(auth.WithSession(r.Context(), s))
	if g, err := a.Grant(r, auth.Admin); err != nil || g.App != "shop" {
		t.Errorf("%+v, %v, want the session's app", g, err)
	}
	if _, err := a.Grant(r, auth.Recommendation); !errors.Is(err, auth.ErrForbidden) {
		t.Errorf("the permission of the key in the request: %v", err)
	}
}

// A session is for its app on every host, also where customers have hosts of their own.
func TestSessionOnCustomersHosts(t *testing.T) {
	a := auth.New(config.NewCached(newStore(t), 0), auth.Environment{Hosts: auth.Hosts{"shop.example.com": "shop"}}, nil)
	r := keyed("shop", "admin")
	r.Header.Set(auth.CustomerHeader, "shop") // as the login of the console does
	s, err := a.Begin(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, customer := range []string{"", auth.AnyCustomer, "shop", "zoo"} {
		r := keyed("", "")
		r.Header.Set(auth.CustomerHeader, customer)
		if g, err := a.Grant(r.WithContext(auth.WithSession(r.Context(), s)), auth.Admin); err != nil || g.App != "shop" {
			t.Errorf("customer %q: %+v, %v", customer, g, err)
		}
	}
	if _, err := a.Begin(keyed("shop", "admin")); !errors.Is(err, auth.ErrNoCustomer) {
		t.Errorf("begun by no host: %v", err)
	}
}

func TestSessionOfNoKey(t *testing.T) {
	f := newFamily(t)
	a := auth.New(config.NewCached(f.Store, 0).WithCipher(f.Cipher), auth.Environment{}, nil)
	for name, c := range map[string]struct {
		app, key string
		want     error
	}{
		"a secured key": {"shop", secure("parent", "userToken=ann"), auth.ErrSecured},
		"a wrong key":   {"shop", "guess", auth.ErrCredentials},
		"the hash":      {"shop", auth.Hash("plain"), auth.ErrCredentials},
		"no key":        {"shop", "", auth.ErrMissing},
		"no app":        {"", "plain", auth.ErrMissing},
	} {
		if s, err := a.Begin(keyed(c.app, c.key)); !errors.Is(err, c.want) || s.App != "" {
			t.Errorf("%s begins %+v, %v, want %v", name, s, err, c.want)
		}
	}
	for _, s := range []auth.Session{{}, {App: "shop"}, {Key: auth.Hash("plain")}, {App: "shop", Key: "plain"}, {App: "zoo", Key: auth.Hash("plain")}} {
		if g, err := a.Resume(t.Context(), s); err == nil {
			t.Errorf("%+v resumes as %+v", s, g)
		}
	}
}

// A client that guesses keys at the login is refused, as anywhere else.
func TestSessionsAreNotGuessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		a := auth.New(config.NewCached(counted(t, &reads), config.TTL), auth.Environment{}, nil)
		for guesses := 0; ; guesses++ {
			if guesses == 2_000 {
				t.Fatal("an address may guess for ever")
			}
			if _, err := a.Begin(keyed("shop", fmt.Sprint("guess", guesses))); errors.Is(err, auth.ErrGuesses) {
				break
			} else if !errors.Is(err, auth.ErrCredentials) {
				t.Fatal(err)
			}
		}
		before := reads
		if _, err := a.Begin(keyed("shop", "admin")); !errors.Is(err, auth.ErrGuesses) || reads != before {
			t.Errorf("a key at an address that guesses: %v, %d reads", err, reads-before)
		}
	})
}

// The other restrictions of a key are those of its session.
func TestSessionOfARestrictedKey(t *testing.T) {
	store := newStore(t)
	a := auth.New(config.NewCached(store, 0), auth.Environment{}, nil)
	put(t, store, config.Key{Hash: auth.Hash("part"), ACL: auth.All, Indexes: []string{"shoes*"}})
	s, err := a.Begin(keyed("shop", "part"))
	if err != nil {
		t.Fatal(err)
	}
	r := keyed("", "")
	r = r.WithContext(auth.WithSession(r.Context(), s))
	g, err := a.Grant(r, auth.Settings)
	if err != nil {
		t.Fatal(err)
	}
	if g.Index("shoes-de") != nil || !errors.Is(g.Index("hats"), auth.ErrIndex) {
		t.Errorf("shoes: %v, hats: %v", g.Index("shoes-de"), g.Index("hats"))
	}
	if _, err := a.Tenant(r, auth.Settings); !errors.Is(err, auth.ErrAnyIndex) {
		t.Errorf("all indexes: %v", err)
	}
	// A key that is added to the pages of one site opens no console.
	put(t, store, config.Key{Hash: auth.Hash("site"), ACL: auth.All, Referers: []string{"shop.example"}})
	if _, err := a.Begin(keyed("shop", "site")); !errors.Is(err, auth.ErrReferer) {
		t.Errorf("a key for pages: %v", err)
	}
}
