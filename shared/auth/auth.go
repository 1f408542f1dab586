// Package auth authenticates requests: it finds the app and the key of a request,
// and checks the key against the app's stored hashes and their ACL.
//
// It is separate so that every public function authenticates in the same way, and
// so that the app id in row keys comes only from here, never from a body. This
// package names the ACLs; a function says which one each route needs. The hashes
// are part of the configuration, see package config.
package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/affinityengine/affinity/shared/config"
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
	// Admin imports events and starts jobs over all users.
	Admin = "admin"
)

// All names every ACL. It must not be modified.
var All = []string{Search, Recommendation, AddObject, DeleteObject, Settings, Admin}

var (
	// ErrCredentials says that the app and the key do not belong together. It does
	// not say which of the two is wrong.
	ErrCredentials error = fault.New(fault.Unauthenticated, "Invalid credentials")
	// ErrForbidden says that the key is the app's but lacks the ACL.
	ErrForbidden error = fault.New(fault.Forbidden, "Method not allowed with this API key")
	// ErrHost says that the key is valid, but the customer's host serves another
	// app.
	ErrHost error = fault.New(fault.Forbidden, "This host serves another app than the key's")
)

// Authenticator checks credentials. It is safe for concurrent use.
type Authenticator struct {
	config *config.Cached
	hosts  Hosts
}

// New returns an Authenticator. It reads the app and the key from the cache for
// each request, so a new or deleted key takes up to one TTL to have an effect.
// hosts are the customers' own; nil if there are none.
func New(c *config.Cached, hosts Hosts) *Authenticator {
	return &Authenticator{c, hosts}
}

// Tenant returns the app of a request's key, if the key holds one of the ACLs. The
// app id never comes from a body.
func (a *Authenticator) Tenant(r *http.Request, anyOf ...string) (config.App, error) {
	appID, key := Credentials(r.Header.Get, r.URL.Query())
	app, err := a.AppAt(r.Context(), r.Host, appID, key, anyOf...)
	if err != nil {
		return config.App{}, fmt.Errorf("authenticate: %w", err)
	}
	return app, nil
}

// AppAt is App for a request to a host. A customer's own host serves only that
// customer's app: the key of another app gets ErrHost.
func (a *Authenticator) AppAt(ctx context.Context, host, appID, key string, anyOf ...string) (config.App, error) {
	app, err := a.App(ctx, appID, key, anyOf...)
	if err == nil && !a.hosts.serves(host, app.ID) {
		return config.App{}, ErrHost
	}
	return app, err
}

// App returns the app of a key, if the key holds one of the ACLs in anyOf or anyOf
// is empty. It returns ErrCredentials or ErrForbidden if the key does not permit
// the request. Any other error is a fault of the configuration's store.
func (a *Authenticator) App(ctx context.Context, appID, key string, anyOf ...string) (config.App, error) {
	if !config.ValidAppID(appID) || key == "" {
		return config.App{}, ErrCredentials
	}
	// Always look up both, at the same time. Then an unknown app and a wrong key look
	// alike, and a cold cache costs the time of one read.
	hash := Hash(key)
	var kept config.Key
	var keyErr error
	var lookup sync.WaitGroup
	lookup.Go(func() { kept, keyErr = a.config.Key(ctx, appID, hash) })
	app, appErr := a.config.App(ctx, appID)
	lookup.Wait()
	if err := errors.Join(appErr, keyErr); errors.Is(err, config.ErrNotFound) {
		return config.App{}, ErrCredentials
	} else if err != nil {
		return config.App{}, fmt.Errorf("look up app %q and its key: %w", appID, err)
	}
	if subtle.ConstantTimeCompare([]byte(hash), []byte(kept.Hash)) != 1 {
		return config.App{}, ErrCredentials
	}
	if len(anyOf) > 0 && !slices.ContainsFunc(kept.ACL, func(held string) bool { return slices.Contains(anyOf, held) }) {
		return config.App{}, ErrForbidden
	}
	return app, nil
}
