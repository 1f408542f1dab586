package auth_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/algolia/algoliasearch-client-go/v3/algolia/opt"
	"github.com/algolia/algoliasearch-client-go/v3/algolia/search"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/seal"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// secure makes a secured key as Algolia's clients do.
func secure(parent, parameters string) string {
	mac := hmac.New(sha256.New, []byte(parent))
	mac.Write([]byte(parameters))
	return base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(mac.Sum(nil)) + parameters))
}

// family is a store whose app shop has the parents "parent", with the permissions
// search and recommendation, and "reader", with profilesRead, and the plain key
// "plain". App zoo has the parent "zoo".
type family struct {
	*config.Store
	config.Cipher
}

func newFamily(t testing.TB) family {
	t.Helper()
	f := family{config.NewMemory(), seal.New()}
	for _, app := range []string{"shop", "zoo"} {
		if err := f.CreateApp(t.Context(), config.App{ID: app}); err != nil {
			t.Fatal(err)
		}
	}
	f.add(t, "shop", "parent", config.Key{ACL: []string{auth.Search, auth.Recommendation}, Name: "server"})
	f.add(t, "shop", "reader", config.Key{ACL: []string{auth.ProfilesRead}})
	f.add(t, "zoo", "zoo", config.Key{ACL: auth.ParentPermissions})
	if err := f.PutKey(t.Context(), "shop", config.Key{Hash: auth.Hash("plain"), ACL: auth.All}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f family) add(t testing.TB, app, text string, key config.Key) {
	t.Helper()
	key.Hash = auth.Hash(text)
	if err := config.AddParent(t.Context(), f.Store, f.Cipher, app, key, text); err != nil {
		t.Fatal(err)
	}
}

func (f family) authenticator(env auth.Environment) *auth.Authenticator {
	return auth.New(config.NewCached(f.Store, config.TTL).WithCipher(f.Cipher), env, nil)
}

// wants checks the outcome of a secured key of shop.
func wants(t *testing.T, a *auth.Authenticator, what string, r auth.Request, want string, anyOf ...string) auth.Grant {
	t.Helper()
	if r.App == "" {
		r.App = "shop"
	}
	if r.Customer == "" {
		r.Customer = auth.AnyCustomer
	}
	g, err := a.Check(t.Context(), r, anyOf...)
	if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
		t.Errorf("%s: error %v, want %q", what, err, want)
	}
	return g
}

// The clients' own keys are understood: those of the Go client, and recorded ones
// of algoliasearch 5.64.0 for JavaScript.
func TestSecuredKeysOfClients(t *testing.T) {
	f := newFamily(t)
	a := f.authenticator(auth.Environment{})
	goKey := func(options ...any) string {
		t.Helper()
		key, err := search.GenerateSecuredAPIKey("parent", options...)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	later := opt.ValidUntil(time.Now().Add(time.Hour))
	for name, test := range map[string]struct{ key, user, index, want string }{
		"Go, nothing":           {goKey(), "", "any", ""},
		"Go, user":              {goKey(opt.UserToken("ann/b+c=")), "ann/b+c=", "any", ""},
		"Go, two indexes":       {goKey(opt.RestrictIndices("products", "dev_*"), later), "", "dev_1", ""},
		"Go, search parameters": {goKey(opt.Filters("brand:a AND b"), opt.HitsPerPage(5), opt.FacetFilter("a:b"), opt.Analytics(false), later), "", "any", ""},
		"Go, ended":             {goKey(opt.ValidUntil(time.Now().Add(-time.Second))), "", "", "Invalid credentials: the validity of this secured API key has ended"},
		"Go, source":            {goKey(opt.RestrictSources("192.0.2.0/24")), "", "any", ""},
		"Go, referers":          {goKey(opt.Referers("x")), "", "", `The restriction "referers" of this secured API key is not supported`},

		"JavaScript, nothing":     {"ZjRiODM0MWZmNWY0MWU4MGJlYTIzOTY0ODI2MzA0MWVhODI5MmJlN2U1MTNlYjNiMzAyNjQzNjU3MzcxOTZlMw==", "", "any", ""},
		"JavaScript, user":        {"NjEyZWUzNTlhNjNmNWNlZjU0NjQ2YmMzYmQ0NDQyODRmYzVlOTYxYWI3ZDkxYTMzYTg4Njc1YzRlY2IyMTBjZnVzZXJUb2tlbj1hbm4lMkZiJTJCYyUzRA==", "ann/b+c=", "any", ""},
		"JavaScript, two indexes": {"ZGVjOTI3ZmRmODRmNzA0ZDJhNjViNTc5MWEzYjNhNzk2N2I3NzJhNzk5YzE1N2RhMDAwY2ZkNWY2NWFmNTRiOHJlc3RyaWN0SW5kaWNlcz1wcm9kdWN0cyUyQ2Rldl8qJnZhbGlkVW50aWw9NDEwMjQ0NDgwMA==", "", "dev_1", ""},
		"JavaScript, everything":  {"ZGQwMzZiMzEwNGRjNWFkZWFlNDI1ODlmYjBhMTYyYTMwYzI0ZDIxYTZjMTJmMzI5NmE1OTUxMDY0ZjMzOTE1NGFuYWx5dGljcz1mYWxzZSZmaWx0ZXJzPWJyYW5kJTNBYSUyMEFORCUyMF90YWdzJTNBJTIyJUMzJUE5JTIwJUMzJUJDJTIyJmhpdHNQZXJQYWdlPTUmcmVzdHJpY3RJbmRpY2VzPXByb2R1Y3RzJTJDbmV3cyZyZXN0cmljdFNvdXJjZXM9MTkyLjAuMi4wJTJGMjQmdXNlclRva2VuPWFubg==", "ann", "news", ""},
		"JavaScript, referers":    {"NzQ0YjU2ZWY5ZWNmOTJjZmM0ODk2MmQyNTY0ZDQ3ZDQwNGI3YzA0ZWNhZGNkMDUzZmZlMzllYmZhZmE2MzMxY3JlZmVyZXJzPXg=", "", "", `The restriction "referers" of this secured API key is not supported`},
	} {
		g := wants(t, a, name, auth.Request{Key: test.key, Remote: "192.0.2.77:1"}, test.want, auth.Search)
		if test.want != "" {
			continue
		}
		if g.App != "shop" || g.Key != "server" {
			t.Errorf("%s: grant of %q by key %q", name, g.App, g.Key)
		}
		if err := errors.Join(g.User(test.user), g.Index(test.index)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := g.User("bob"); (err == nil) != (test.user == "") {
			t.Errorf("%s: another user: %v", name, err)
		}
		if err := g.Index("secret"); (err == nil) != (test.index == "any") {
			t.Errorf("%s: another index: %v", name, err)
		}
	}
}

func TestSecuredRestrictions(t *testing.T) {
	a := newFamily(t).authenticator(auth.Environment{Forwarded: 2})
	const ended = "Invalid credentials: the validity of this secured API key has ended"
	for parameters, want := range map[string]string{
		"": "", "userToken=ann": "", "validUntil=99999999999": "", "restrictIndices=%5B%22a%22%2C%22b%22%5D": "", "query=x&page=2&filters=a": "",
		"restrictSources=192.0.2.1": "", "restrictSources=10.0.0.0%2F8%2C192.0.2.0%2F24": "", "restrictSources=%3A%3A%2F0": auth.ErrSource.Error(),
		"restrictSources=10.0.0.0%2F8": auth.ErrSource.Error(), "restrictSources=10.0.0.9": auth.ErrSource.Error(),
		"validUntil=0": ended, "validUntil=-1": ended, "validUntil=1700000000": ended,
		"userToken=":               "The restriction userToken of this secured API key is malformed",
		"userToken=ann&userToken=": "The restriction userToken of this secured API key is malformed",
		"userToken=a&userToken=b":  "The restriction userToken of this secured API key is malformed",
		"validUntil=tomorrow":      "The restriction validUntil of this secured API key is malformed",
		"validUntil=1e12":          "The restriction validUntil of this secured API key is malformed",
		"restrictIndices=":         "The restriction restrictIndices of this secured API key is malformed",
		"restrictIndices=a%2C":     "The restriction restrictIndices of this secured API key is malformed",
		"restrictIndices=%5B%5D":   "The restriction restrictIndices of this secured API key is malformed",
		"restrictIndices=%5B1%5D":  "The restriction restrictIndices of this secured API key is malformed",
		"restrictSources=shop":     "The restriction restrictSources of this secured API key is malformed",
		"usertoken=ann":            `The restriction "usertoken" of this secured API key is not supported`,
		"a=1&userToken=ann":        `The restriction "a" of this secured API key is not supported`,
		"=1":                       `The restriction "" of this secured API key is not supported`,
		"a;b":                      "The parameters of this secured API key are malformed",
		"userToken=%zz":            "The parameters of this secured API key are malformed",
	} {
		r := auth.Request{Key: secure("parent", parameters), ForwardedFor: []string{"10.0.0.9, 192.0.2.1, 10.0.0.1"}}
		wants(t, a, parameters, r, want)
	}
}

func TestSecuredKeyIsNotSecure(t *testing.T) {
	f := newFamily(t)
	a := f.authenticator(auth.Environment{Hosts: auth.Hosts{"zoo.example": "zoo"}})
	const ann = "userToken=ann"
	good := secure("parent", ann)
	wants(t, a, "of a parent", auth.Request{Key: good}, "", auth.Search)
	wants(t, a, "without padding", auth.Request{Key: strings.TrimRight(good, "=")}, "", auth.Search)
	wants(t, a, "a parent itself", auth.Request{Key: "parent"}, "", auth.Search)
	wants(t, a, "a permission of another parent", auth.Request{Key: good}, auth.ErrForbidden.Error(), auth.ProfilesRead)
	wants(t, a, "a permission of none", auth.Request{Key: good}, auth.ErrForbidden.Error(), auth.Admin)
	wants(t, a, "the user's permission", auth.Request{Key: good}, "", auth.OwnUser)
	wants(t, a, "the user's permission without a user", auth.Request{Key: secure("parent", "")}, auth.ErrForbidden.Error(), auth.OwnUser)
	wants(t, a, "the user's permission without search", auth.Request{Key: secure("reader", ann)}, auth.ErrForbidden.Error(), auth.OwnUser)
	wants(t, a, "the host of another app", auth.Request{Key: good, Customer: "zoo"}, auth.ErrHost.Error(), auth.Search)
	wants(t, a, "an app without parents", auth.Request{Key: good, App: "nowhere"}, auth.ErrCredentials.Error(), auth.Search)
	decoded, _ := base64.StdEncoding.DecodeString(good)
	for name, key := range map[string]string{
		"of another app":             secure("zoo", ann),
		"of a plain key":             secure("plain", ann),
		"of the hash of a parent":    secure(auth.Hash("parent"), ann),
		"of a secured key":           secure(good, ann),
		"of nothing":                 secure("", ann),
		"with another user":          base64.StdEncoding.EncodeToString(append(decoded[:64:64], "userToken=bob"...)),
		"with one more restriction":  base64.StdEncoding.EncodeToString(append(decoded[:len(decoded):len(decoded)], "&userToken=bob"...)),
		"with fewer":                 base64.StdEncoding.EncodeToString(decoded[:64]),
		"with the MAC in upper case": base64.StdEncoding.EncodeToString([]byte(strings.ToUpper(string(decoded[:64])) + ann)),
		"cut short":                  good[:60],
		"too long":                   secure("parent", ann+"&query="+strings.Repeat("a", 4_096)),
		"twice":                      good + good,
		"with a line break":          good[:90] + "\r" + good[90:],
		"with bits after its end":    strings.Replace(good, "bm4=", "bm7=", 1),
	} {
		wants(t, a, name, auth.Request{Key: key}, auth.ErrCredentials.Error(), auth.Search)
	}
	plain := auth.New(config.NewCached(f.Store, config.TTL), auth.Environment{}, nil)
	wants(t, plain, "without parents", auth.Request{Key: good}, auth.ErrSecured.Error(), auth.Search)
}

// A restriction of the parent holds for its secured keys too.
func TestSecuredKeyOfARestrictedParent(t *testing.T) {
	f := newFamily(t)
	f.add(t, "shop", "narrow", config.Key{ACL: []string{auth.Search}, Indexes: []string{"a*"}, Referers: []string{"shop.example"}, AddressRate: 1})
	f.add(t, "shop", "ended", config.Key{ACL: []string{auth.Search}, ValidUntil: time.Now()})
	a := f.authenticator(auth.Environment{})
	key := secure("narrow", "restrictIndices=*b")
	wants(t, a, "another page", auth.Request{Key: key}, auth.ErrReferer.Error())
	g := wants(t, a, "its page", auth.Request{Key: key, Referer: "https://shop.example/"}, "")
	for index, want := range map[string]error{"ab": nil, "a": auth.ErrIndex, "b": auth.ErrIndex, "": auth.ErrAnyIndex} {
		if err := g.Index(index); !errors.Is(err, want) {
			t.Errorf("index %q: %v, want %v", index, err, want)
		}
	}
	wants(t, a, "the second request in a minute", auth.Request{Key: secure("narrow", "userToken=ann"), Referer: "https://shop.example/"}, auth.ErrAddressRate.Error())
	wants(t, a, "of an ended parent", auth.Request{Key: secure("ended", "")}, auth.ErrCredentials.Error())
}

// failing is a Cipher that can fail.
type failing struct {
	config.Cipher
	err   error
	calls int
}

func (f *failing) Decrypt(ctx context.Context, sealed, owner []byte) ([]byte, error) {
	f.calls++
	if f.err != nil {
		return nil, f.err
	}
	return f.Cipher.Decrypt(ctx, sealed, owner)
}

func TestCipherFails(t *testing.T) {
	f := newFamily(t)
	c := &failing{Cipher: f.Cipher}
	a := auth.New(config.NewCached(f.Store, time.Nanosecond).WithCipher(c), auth.Environment{}, nil)
	r := auth.Request{App: "shop", Key: secure("parent", "userToken=ann")}
	c.err = errBackend
	if _, err := a.Check(t.Context(), r); !errors.Is(err, errBackend) || errors.Is(err, auth.ErrCredentials) {
		t.Errorf("before the first decryption: %v, want the fault", err)
	}
	c.err = nil
	for range 3 {
		if _, err := a.Check(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	if c.calls > 3 {
		t.Errorf("%d decryptions of two texts, want one each", c.calls-1)
	}
	c.err = errBackend
	if _, err := a.Check(t.Context(), r); err != nil {
		t.Errorf("known parents in an outage: %v", err)
	}
}

// A parent that cannot be decrypted does not stop the others. A key that none of
// these made may be its, so it is not said to be wrong.
func TestDamagedParent(t *testing.T) {
	f := newFamily(t)
	for name, sealed := range map[string][]byte{"garbage": []byte("garbage"), "of another app": parentOf(t, f, "zoo").Parent} {
		key := config.Key{Hash: auth.Hash("damaged"), ACL: []string{auth.Search}, Parent: sealed}
		if err := f.PutKey(t.Context(), "shop", key); err != nil {
			t.Fatal(err)
		}
		a := f.authenticator(auth.Environment{})
		wants(t, a, name+": another parent", auth.Request{Key: secure("parent", "")}, "")
		for _, parent := range []string{"damaged", "zoo"} {
			if _, err := a.Check(t.Context(), auth.Request{App: "shop", Key: secure(parent, "")}); !errors.Is(err, config.ErrSealed) {
				t.Errorf("%s: a key of %s: %v", name, parent, err)
			}
		}
	}
}

func parentOf(t *testing.T, f family, app string) config.Key {
	t.Helper()
	keys, err := f.Parents(t.Context(), app)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%d parents, %v", len(keys), err)
	}
	return keys[0]
}

// Only a text that a parent has signed is accepted, whatever else it holds, and
// what it restricts holds.
func FuzzSecuredKey(f *testing.F) {
	a := newFamily(f).authenticator(auth.Environment{})
	for _, seed := range []string{"userToken=ann", "validUntil=1", "restrictIndices=a", "a=%zz", "", "userToken=a&userToken=b", "restrictSources=::1"} {
		f.Add(secure("parent", seed), seed)
		f.Add(secure("zoo", seed), seed)
	}
	f.Add("====", "\xff")
	f.Add(strings.Replace(secure("parent", "userToken=ann"), "Z", "Z\n", 1), "0")
	f.Fuzz(func(t *testing.T, key, parameters string) {
		if _, err := a.Check(t.Context(), auth.Request{App: "shop", Key: key}); err == nil && !knownKeys[key] {
			text, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(key, "="))
			if len(text) < 64 || strings.TrimRight(secure("parent", string(text[64:])), "=") != strings.TrimRight(key, "=") &&
				strings.TrimRight(secure("reader", string(text[64:])), "=") != strings.TrimRight(key, "=") {
				t.Fatalf("%q is accepted", key)
			}
		}
		g, err := a.Check(t.Context(), auth.Request{App: "shop", Key: secure("parent", parameters)})
		if err != nil {
			return
		}
		query, err := url.ParseQuery(parameters)
		if err != nil {
			t.Fatalf("%q is accepted: %v", parameters, err)
		}
		if user := query.Get("userToken"); query.Has("userToken") && (g.User(user) != nil || g.User(user+"x") == nil || g.User("") == nil) {
			t.Errorf("%q does not hold the user", parameters)
		}
		if query.Has("restrictIndices") && g.Index("") == nil {
			t.Errorf("%q does not hold the indexes", parameters)
		}
	})
}

var knownKeys = map[string]bool{"parent": true, "reader": true, "plain": true}

// A use of a secured key is noted as one of its parent, and a refused one is not.
func TestUseOfASecuredKeyIsItsParents(t *testing.T) {
	var used []string
	f := newFamily(t)
	a := auth.New(config.NewCached(f.Store, config.TTL).WithCipher(f.Cipher), auth.Environment{}, func(app, hash string) { used = append(used, app+","+hash) })
	wants(t, a, "secured", auth.Request{Key: secure("parent", "userToken=ann")}, "", auth.Search)
	wants(t, a, "ended", auth.Request{Key: secure("reader", "validUntil=1")},
		"Invalid credentials: the validity of this secured API key has ended")
	if want := "shop," + auth.Hash("parent"); len(used) != 1 || used[0] != want {
		t.Errorf("noted %v, want %s", used, want)
	}
}
