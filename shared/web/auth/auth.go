// Package auth authenticates requests: it finds the app and the key of a request,
// and checks the key against the app's stored hashes and what each permits.
//
// It is separate so that every public function authenticates in the same way, and
// so that the app id in row keys comes only from here, never from a body. This
// package names the permissions; a function says which one each route needs. The keys
// are part of the configuration, see package config.
package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/fault"
)

// The permissions that a key's ACL can hold. The first five are Algolia's names.
// No permission includes another.
const (
	// Search sends events. Such a key is public: it is part of web pages.
	Search = "search"
	// Recommendation reads profiles, and reads and sets strategies.
	Recommendation = "recommendation"
	// AddObject puts objects into the catalog.
	AddObject = "addObject"
	// DeleteObject removes objects, and users.
	DeleteObject = "deleteObject"
	// Settings reads and sets the settings of an index.
	Settings = "settings"
	// ProfilesRead reads and explains profiles.
	ProfilesRead = "profilesRead"
	// Admin imports events and starts jobs over all users.
	Admin = "admin"
	// Usage reads what the app used by day.
	Usage = "usage"
)

// All names every ACL. It must not be modified.
var All = []string{Search, Recommendation, AddObject, DeleteObject, Settings, ProfilesRead, Admin, Usage}

var (
	// ErrCredentials says that the app and the key do not belong together, or that
	// the key has ended. It does not say which of the two is wrong.
	ErrCredentials error = fault.New(fault.Unauthenticated, "Invalid credentials")
	// ErrMissing says that the request names no app or no key. No secret was guessed.
	ErrMissing error = fault.New(fault.Unauthenticated,
		"Invalid credentials: send the headers X-Algolia-Application-Id and X-Algolia-API-Key")
	// ErrForbidden says that the key is the app's but lacks the ACL.
	ErrForbidden error = fault.New(fault.Forbidden, "Method not allowed with this API key")
	// ErrIndex says that the key is for other indexes.
	ErrIndex error = fault.New(fault.Forbidden, "Index not allowed with this API key")
	// ErrAnyIndex says that the key is for some indexes, and the route for all.
	ErrAnyIndex error = fault.New(fault.Forbidden,
		"This API key is restricted to indexes, and the request is not about one index")
	// ErrReferer says that the key is for other pages.
	ErrReferer error = fault.New(fault.Forbidden, "Referer not allowed with this API key")
	// ErrHost says that the key is valid, but the host does not serve its app.
	ErrHost error = fault.New(fault.Forbidden, "This host does not serve the key's app")
	// ErrNoCustomer says that nobody can tell which host the request came to.
	ErrNoCustomer error = fault.New(fault.Forbidden, "The load balancer did not name the customer of this host")
	// ErrAddressRate says that an address sends more than the key permits.
	ErrAddressRate error = fault.New(fault.TooMany, "Too many requests from this address with this API key")
	// ErrGuesses says that an address has failed to authenticate too often.
	ErrGuesses error = fault.New(fault.TooMany, "Too many requests with invalid credentials from this address")
)

// Authenticator checks credentials. It is safe for concurrent use.
type Authenticator struct {
	config    *config.Cached
	env       Environment
	addresses *limit.Addresses
	note      func(appID, hash string) // of an accepted key; nil: none
	refused   string                   // the hash of a key that is never accepted; empty: none
	why       error                    // it is not
}

// Environment is what a deployment says of the requests that reach it.
type Environment struct {
	// Hosts are the customers' own; nil if there are none.
	Hosts Hosts `env:"CUSTOMER_HOSTS"`
	// Forwarded is how many addresses the load balancer appends to X-Forwarded-For,
	// the client's first. 0: no load balancer stands before the function.
	Forwarded int `env:"FORWARDED_ADDRESSES"`
}

// New returns an Authenticator. It reads the app and the key from the cache for
// each request, so a new or deleted key takes up to one TTL to have an effect, and
// a deleted one up to five minutes while the store of the configuration fails. It
// accepts secured keys if the cache reads parents. used learns the app and the key's hash of
// every accepted request; nil: nobody does.
func New(c *config.Cached, env Environment, used func(appID, hash string)) *Authenticator {
	return &Authenticator{config: c, env: env, note: used, addresses: limit.NewAddresses()}
}

// Refuse makes the Authenticator refuse a key of any app, and secured keys of it: the error is why, and
// ErrCredentials for a session of the key. It must be called before any other method.
func (a *Authenticator) Refuse(key string, why error) *Authenticator {
	a.refused, a.why = Hash(key), why
	return a
}

// Tenant returns the app of a request's key, if the key holds one of the ACLs. The
// app id never comes from a body. It refuses a key that is restricted to a part of
// the app: a route that can be about that part asks for the Grant.
func (a *Authenticator) Tenant(r *http.Request, anyOf ...string) (config.App, error) {
	appID, err := a.AppID(r, anyOf...)
	if err != nil {
		return config.App{}, err
	}
	return a.app(r.Context(), appID)
}

// TenantKey is Tenant for a change, which the audit log records: it also returns
// what people call the key.
func (a *Authenticator) TenantKey(r *http.Request, anyOf ...string) (config.App, string, error) {
	app, grant, err := a.TenantGrant(r, anyOf...)
	if err == nil {
		err = grant.Index("")
	}
	return app, grant.Key, err
}

// AppID is Tenant for a request that needs nothing else of the app. While the
// store of the configuration fails, it permits what it permitted up to five
// minutes ago; Tenant returns the store's error.
func (a *Authenticator) AppID(r *http.Request, anyOf ...string) (string, error) {
	g, err := a.Grant(r, anyOf...)
	if err == nil {
		err = g.Index("")
	}
	if err != nil {
		return "", err
	}
	return g.App, nil
}

// Grant returns what the key of a request permits, if it holds one of the ACLs.
// The caller asks the Grant for each index that the request names. A key that is
// restricted to a user is refused.
func (a *Authenticator) Grant(r *http.Request, anyOf ...string) (Grant, error) {
	g, err := a.UserGrant(r, anyOf...)
	if err == nil {
		err = g.User("")
	}
	if err != nil {
		return Grant{}, err
	}
	return g, nil
}

// UserGrant is Grant for a route that is about users. The caller also asks the
// Grant for each user that the request names.
func (a *Authenticator) UserGrant(r *http.Request, anyOf ...string) (Grant, error) {
	g, err := a.guarded(r.Context(), NewRequest(r), anyOf)
	if err == nil {
		err = limit.Authenticated(r.Context(), g.App,
			func() (limit.Numbers, error) { return a.config.Limits(r.Context(), g.App) })
	}
	if err != nil {
		return Grant{}, fmt.Errorf("authenticate: %w", err)
	}
	return g, nil
}

// failuresPerMinute is how often an address may fail to authenticate, in ten seconds
// a sixth of it. Then it is refused without a lookup, unless this process knows its
// key: clients of many customers may share an address.
const failuresPerMinute = 3_000

// failures names the buckets of failures. No app id is empty, so it names no key.
const failures = ","

// guarded is Check for a client that may not guess for ever.
func (a *Authenticator) guarded(ctx context.Context, r Request, anyOf []string) (Grant, error) {
	now, address := time.Now(), r.address(a.env.Forwarded)
	if address.IsValid() && a.addresses.Empty(failures, address, now) && !a.held(r) {
		return Grant{}, ErrGuesses
	}
	g, err := a.Check(ctx, r, anyOf...)
	if errors.Is(err, ErrCredentials) {
		a.addresses.Allow(failures, address, failuresPerMinute, now)
	}
	return g, err
}

// held reports whether Check needs no lookup to accept the request.
func (a *Authenticator) held(r Request) bool {
	if _, secured := parseSecured(r.Key); secured {
		return a.config.HoldsParents(r.App)
	}
	return a.config.Holds(r.App, r.hash())
}

// TenantGrant is Grant and the app.
func (a *Authenticator) TenantGrant(r *http.Request, anyOf ...string) (config.App, Grant, error) {
	return a.withApp(r, a.Grant, anyOf)
}

// TenantUserGrant is UserGrant and the app.
func (a *Authenticator) TenantUserGrant(r *http.Request, anyOf ...string) (config.App, Grant, error) {
	return a.withApp(r, a.UserGrant, anyOf)
}

func (a *Authenticator) withApp(r *http.Request,
	grant func(*http.Request, ...string) (Grant, error), anyOf []string) (config.App, Grant, error) {
	g, err := grant(r, anyOf...)
	if err != nil {
		return config.App{}, Grant{}, err
	}
	app, err := a.app(r.Context(), g.App)
	return app, g, err
}

func (a *Authenticator) app(ctx context.Context, appID string) (config.App, error) {
	app, err := a.config.App(ctx, appID)
	if err != nil {
		return config.App{}, fmt.Errorf("authenticate: %w", credentials(err))
	}
	return app, nil
}

// Check returns what the key of a request permits. It returns ErrMissing if there is none,
// ErrCredentials if the key is not the app's or has ended, ErrForbidden if it holds none of the ACLs
// in anyOf and anyOf is not empty, ErrReferer if it is for other pages, ErrHost if
// the host does not serve the app, ErrNoCustomer, and ErrAddressRate; of a secured
// key also ErrSecured, ErrSource, and errors that name a restriction; and that of
// Refuse. Any other error is a fault of the configuration's store or of its Cipher.
//
// A caller cannot tell an unknown app from a wrong key: the answers are equal, and
// either costs one read of the store the first time, if the process has served
// the app before, and none when it is repeated. A process that has not served
// the app reads twice for a wrong key; app ids are no secrets, web pages hold them.
func (a *Authenticator) Check(ctx context.Context, r Request, anyOf ...string) (Grant, error) {
	if r.App == "" || r.Key == "" && r.session == nil {
		return Grant{}, ErrMissing
	}
	if !config.ValidAppID(r.App) {
		return Grant{}, ErrCredentials
	}
	if s, ok := parseSecured(r.Key); ok {
		return a.checkSecured(ctx, r, s, anyOf)
	}
	hash := r.hash()
	key, err := a.config.Access(ctx, r.App, hash)
	if err != nil {
		return Grant{}, credentials(fmt.Errorf("look up app %q and its key: %w", r.App, err))
	}
	now := time.Now()
	if subtle.ConstantTimeCompare([]byte(hash), []byte(key.Hash)) != 1 || key.Ended(now) {
		return Grant{}, ErrCredentials
	}
	return a.permit(r, now, key, restrictions{}, anyOf)
}

// permit returns what a request's key permits under further restrictions, if it
// permits the request.
func (a *Authenticator) permit(r Request, now time.Time, key config.Key, only restrictions,
	anyOf []string) (Grant, error) {
	if a.refused != "" && key.Hash == a.refused {
		if r.session != nil {
			return Grant{}, ErrCredentials
		}
		return Grant{}, a.why
	}
	g := Grant{App: r.App, Key: key.Called(), HashTokens: key.HashTokens, Region: key.Region, hash: key.Hash,
		acl: r.permissions(key.ACL), user: only.user}
	for _, patterns := range [][]string{key.Indexes, only.indexes} {
		if len(patterns) > 0 {
			g.indexes = append(g.indexes, patterns)
		}
	}
	if only.user != "" && slices.Contains(key.ACL, Search) {
		g.acl = append(slices.Clone(key.ACL), OwnUser)
	}
	if err := g.Require(anyOf...); err != nil {
		return Grant{}, err
	}
	if r.session == nil && !refererAllowed(key.Referers, r.Referer) { // which it was when the session began
		return Grant{}, wrongPage(r.Referer)
	}
	if err := a.env.Hosts.check(r.Customer, r.App); err != nil {
		return Grant{}, err
	}
	if key.AddressRate > 0 && !a.addresses.Allow(r.App+","+key.Hash, r.address(a.env.Forwarded), key.AddressRate, now) {
		return Grant{}, ErrAddressRate
	}
	if a.note != nil {
		a.note(r.App, key.Hash)
	}
	return g, nil
}

// wrongPage is ErrReferer with the page that the request named.
func wrongPage(referer string) error {
	if referer == "" {
		return hinted(ErrReferer, "The request names no page, neither as Referer nor as Origin")
	}
	return hinted(ErrReferer, "The request comes from %.200q, which no referer of the key permits", referer)
}

// hinted is a fault of this package with a hint. Its message stays as it is.
func hinted(of error, format string, args ...any) error {
	with := fault.New(fault.Forbidden, "%s", of)
	with.Hint = fmt.Sprintf(format, args...)
	return with
}

// credentials is the error of a lookup: ErrCredentials if it found nothing.
func credentials(err error) error {
	if errors.Is(err, config.ErrNotFound) {
		return ErrCredentials
	}
	return err
}
