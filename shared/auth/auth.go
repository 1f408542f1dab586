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
// each request, so a new or deleted key takes up to one TTL to have an effect, and
// a deleted one up to five minutes while the store of the configuration fails.
// hosts are the customers' own; nil if there are none.
func New(c *config.Cached, hosts Hosts) *Authenticator {
	return &Authenticator{c, hosts}
}

// Tenant returns the app of a request's key, if the key holds one of the ACLs. The
// app id never comes from a body.
func (a *Authenticator) Tenant(r *http.Request, anyOf ...string) (config.App, error) {
	appID, err := a.AppID(r, anyOf...)
	if err != nil {
		return config.App{}, err
	}
	app, err := a.config.App(r.Context(), appID)
	if err != nil {
		return config.App{}, fmt.Errorf("authenticate: %w", credentials(err))
	}
	return app, nil
}

// AppID is Tenant for a request that needs nothing else of the app. While the
// store of the configuration fails, it permits what it permitted up to five
// minutes ago; Tenant returns the store's error.
func (a *Authenticator) AppID(r *http.Request, anyOf ...string) (string, error) {
	appID, key := Credentials(r.Header.Get, r.URL.Query())
	if err := a.Check(r.Context(), r.Host, appID, key, anyOf...); err != nil {
		return "", fmt.Errorf("authenticate: %w", err)
	}
	return appID, nil
}

// Check reports whether a key of an app permits a request to a host. It returns
// ErrCredentials if the key is not the app's, ErrForbidden if it holds none of the
// ACLs in anyOf and anyOf is not empty, and ErrHost if the host is a customer's
// own and serves another app. Any other error is a fault of the configuration's
// store.
//
// A caller cannot tell an unknown app from a wrong key: the answers are equal, and
// either costs one read of the store the first time, if the process has served
// the app before, and none when it is repeated. A process that has not served
// the app reads twice for a wrong key; app ids are no secrets, web pages hold them.
func (a *Authenticator) Check(ctx context.Context, host, appID, key string, anyOf ...string) error {
	if !config.ValidAppID(appID) || key == "" {
		return ErrCredentials
	}
	hash := Hash(key)
	kept, err := a.config.Access(ctx, appID, hash)
	if err != nil {
		return credentials(fmt.Errorf("look up app %q and its key: %w", appID, err))
	}
	if subtle.ConstantTimeCompare([]byte(hash), []byte(kept.Hash)) != 1 {
		return ErrCredentials
	}
	if len(anyOf) > 0 && !slices.ContainsFunc(kept.ACL, func(held string) bool { return slices.Contains(anyOf, held) }) {
		return ErrForbidden
	}
	if !a.hosts.serves(host, appID) {
		return ErrHost
	}
	return nil
}

// credentials is the error of a lookup: ErrCredentials if it found nothing.
func credentials(err error) error {
	if errors.Is(err, config.ErrNotFound) {
		return ErrCredentials
	}
	return err
}
