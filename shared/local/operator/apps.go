package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Paths of the operations on apps and keys. Each is a POST of a request.
const (
	appsPath        = "/local/apps/list"
	appPath         = "/local/apps/get"
	createPath      = "/local/apps/create"
	retentionPath   = "/local/apps/retention"
	consistencyPath = "/local/apps/consistency"
	rankingPath     = "/local/apps/ranking"
	segmentsPath    = "/local/apps/segments"
	identityPath    = "/local/apps/identity"
	residencyPath   = "/local/apps/residency"
	purposesPath    = "/local/apps/purposes"
	holdoutPath     = "/local/apps/holdout"
	limitsPath      = "/local/apps/limits"
	defaultsPath    = "/local/apps/limits/defaults"
	encodingPath    = "/local/apps/encoding"
	keysPath        = "/local/apps/keys/list"
	putKeyPath      = "/local/apps/keys/put"
	parentPath      = "/local/apps/keys/parent"
	deleteKeyPath   = "/local/apps/keys/delete"
)

// maxRequest is the size in bytes of the largest request.
const maxRequest = 64 << 10

// request names the app and the key of an operation, with the settings that it
// changes.
type request struct {
	App config.App `json:"app"`
	Key config.Key `json:"key"`
	// Text is the text of a parent.
	Text string `json:"text,omitempty"`
	// On turns a setting on.
	On bool `json:"on,omitempty"`
	// Again deletes a deleted app again.
	Again bool `json:"again,omitempty"`
	// Back asks for the common tables of a region.
	Back bool `json:"back,omitempty"`
}

// Store reads and changes apps and keys. Its methods and errors are those of config.Store.
type Store interface {
	Apps(ctx context.Context) ([]string, error)
	App(ctx context.Context, appID string) (config.App, error)
	CreateApp(ctx context.Context, app config.App) error
	SetRetention(ctx context.Context, appID string, days int) error
	SetConsistency(ctx context.Context, appID string, c config.Consistency) error
	SetBrowserRanking(ctx context.Context, appID string, on bool) error
	SetSegments(ctx context.Context, appID string, on bool) error
	SetIdentity(ctx context.Context, appID string, to config.Identity, settle time.Duration) (config.App, error)
	SetResidency(ctx context.Context, appID string, to config.Residency, settle time.Duration) (config.App, error)
	SetPurposes(ctx context.Context, appID string, to []consent.Purpose) (config.App, error)
	SetLimits(ctx context.Context, appID string, n limit.Numbers) error
	SetEncoding(ctx context.Context, appID string, e schema.Encoding) (config.App, error)
	Keys(ctx context.Context, appID string) ([]config.Key, error)
	PutKey(ctx context.Context, appID string, key config.Key) error
	DeleteKey(ctx context.Context, appID, hash string) error
}

// Holdouts changes who gets no personalization, as config.Store does.
type Holdouts interface {
	SetHoldout(ctx context.Context, appID string, to experiment.Holdout) (config.App, error)
}

// handleApps adds the operations to a router.
func handleApps(rt *httpapi.Router, s Store, defaults limit.Numbers, c config.Cipher, regions config.Regions) {
	handle(rt, defaultsPath, func(context.Context, request) (any, error) { return defaults, nil })
	handle(rt, appsPath, func(ctx context.Context, _ request) (any, error) { return s.Apps(ctx) })
	handle(rt, appPath, func(ctx context.Context, r request) (any, error) { return s.App(ctx, r.App.ID) })
	handle(rt, createPath, func(ctx context.Context, r request) (any, error) {
		if _, err := r.App.Prepare(); err != nil {
			return nil, invalid(err)
		}
		if err := regions.Takes(r.App.Region); err != nil {
			return nil, invalid(err)
		}
		return nil, s.CreateApp(ctx, r.App)
	})
	handle(rt, retentionPath, func(ctx context.Context, r request) (any, error) {
		if err := config.CheckRetention(r.App.RetentionDays); err != nil {
			return nil, invalid(err)
		}
		return nil, s.SetRetention(ctx, r.App.ID, r.App.RetentionDays)
	})
	handle(rt, consistencyPath, func(ctx context.Context, r request) (any, error) {
		if _, err := config.ParseConsistency(string(r.App.Consistency)); err != nil {
			return nil, invalid(err)
		}
		return nil, s.SetConsistency(ctx, r.App.ID, r.App.Consistency)
	})
	handle(rt, rankingPath, func(ctx context.Context, r request) (any, error) {
		return nil, s.SetBrowserRanking(ctx, r.App.ID, r.App.BrowserRanking)
	})
	handle(rt, segmentsPath, func(ctx context.Context, r request) (any, error) {
		return nil, s.SetSegments(ctx, r.App.ID, r.On)
	})
	handle(rt, identityPath, func(ctx context.Context, r request) (any, error) {
		app, err := s.SetIdentity(ctx, r.App.ID, r.App.Identity, config.IdentitySettle)
		if _, ok := errors.AsType[*config.SettlingError](err); ok {
			err = invalid(err)
		}
		return app, err
	})
	handle(rt, residencyPath, func(ctx context.Context, r request) (any, error) {
		to, err := ResidencyIn(regions, r.App.Residency)
		if err != nil {
			return nil, invalid(err)
		}
		app, err := s.SetResidency(ctx, r.App.ID, to, config.IdentitySettle)
		if _, ok := errors.AsType[*config.SettlingError](err); ok {
			err = invalid(err)
		}
		return app, err
	})
	handle(rt, purposesPath, func(ctx context.Context, r request) (any, error) {
		app, err := s.SetPurposes(ctx, r.App.ID, r.App.Purposes.Purposes)
		if errors.Is(err, config.ErrMoving) {
			err = invalid(err)
		}
		return app, err
	})
	handle(rt, limitsPath, func(ctx context.Context, r request) (any, error) {
		if err := r.App.Limits.Check(); err != nil {
			return nil, invalid(err)
		}
		return nil, s.SetLimits(ctx, r.App.ID, r.App.Limits)
	})
	handle(rt, encodingPath, func(ctx context.Context, r request) (any, error) {
		e, err := schema.ParseEncoding(string(r.App.Log.Encoding))
		if err != nil {
			return nil, invalid(err)
		}
		return s.SetEncoding(ctx, r.App.ID, e)
	})
	handleKeys(rt, s, c)
}

// handleKeys adds those on keys.
func handleKeys(rt *httpapi.Router, s Store, c config.Cipher) {
	handle(rt, keysPath, func(ctx context.Context, r request) (any, error) { return s.Keys(ctx, r.App.ID) })
	handle(rt, putKeyPath, func(ctx context.Context, r request) (any, error) {
		if _, err := r.Key.Prepare(); err != nil {
			return nil, invalid(err)
		}
		return nil, s.PutKey(ctx, r.App.ID, r.Key)
	})
	handle(rt, parentPath, func(ctx context.Context, r request) (any, error) {
		if _, err := r.Key.Prepare(); err != nil {
			return nil, invalid(err)
		}
		return nil, config.AddParent(ctx, s, c, r.App.ID, r.Key, r.Text)
	})
	handle(rt, deleteKeyPath, func(ctx context.Context, r request) (any, error) {
		return nil, s.DeleteKey(ctx, r.App.ID, r.Key.Hash)
	})
}

// handle adds an operation. do returns the answer.
func handle(rt *httpapi.Router, path string, do func(context.Context, request) (any, error)) {
	rt.Handle("POST "+path, func(w http.ResponseWriter, r *http.Request) error {
		body, err := httpapi.ReadBody(w, r, maxRequest)
		if err != nil {
			return err
		}
		var in request
		if err := json.Unmarshal(body, &in); err != nil {
			return httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is not a request of the operator: %v", err)
		}
		answer, err := do(r.Context(), in)
		switch {
		case errors.Is(err, config.ErrNotFound):
			return httpapi.Errorf(http.StatusNotFound, "%s", config.ErrNotFound)
		case errors.Is(err, config.ErrExists):
			return httpapi.Errorf(http.StatusConflict, "%s", config.ErrExists)
		case errors.Is(err, config.ErrTooManyParents):
			return invalid(config.ErrTooManyParents)
		case config.IsDeleted(err):
			return invalid(err)
		case err != nil:
			return err
		}
		return httpapi.WriteJSON(w, http.StatusOK, answer)
	})
}

// invalid refuses a request that breaks a rule of the store.
func invalid(err error) error { return fault.New(fault.Invalid, "%v", err) }

// The methods below are those of config.Store with its errors, and AddParent.

var _ Store = (*Client)(nil)

// Apps returns the ids of all apps, sorted.
func (c *Client) Apps(ctx context.Context) ([]string, error) {
	return post[[]string](ctx, c, appsPath, request{})
}

// App returns an app.
func (c *Client) App(ctx context.Context, appID string) (config.App, error) {
	return post[config.App](ctx, c, appPath, request{App: config.App{ID: appID}})
}

// CreateApp stores a new app.
func (c *Client) CreateApp(ctx context.Context, app config.App) error {
	_, err := post[any](ctx, c, createPath, request{App: app})
	return err
}

// SetRetention changes how long an app's events count.
func (c *Client) SetRetention(ctx context.Context, appID string, days int) error {
	_, err := post[any](ctx, c, retentionPath, request{App: config.App{ID: appID, RetentionDays: days}})
	return err
}

// SetConsistency changes how reads of an app's profiles see replicas.
func (c *Client) SetConsistency(ctx context.Context, appID string, to config.Consistency) error {
	_, err := post[any](ctx, c, consistencyPath, request{App: config.App{ID: appID, Consistency: to}})
	return err
}

// SetBrowserRanking changes whether web pages may ask for orders.
func (c *Client) SetBrowserRanking(ctx context.Context, appID string, on bool) error {
	_, err := post[any](ctx, c, rankingPath, request{App: config.App{ID: appID, BrowserRanking: on}})
	return err
}

// SetSegments turns segments on or off.
func (c *Client) SetSegments(ctx context.Context, appID string, on bool) error {
	_, err := post[any](ctx, c, segmentsPath, request{App: config.App{ID: appID}, On: on})
	return err
}

// SetIdentity changes whether the tokens of one person are linked. When a change has settled, the engine says.
func (c *Client) SetIdentity(ctx context.Context, appID string, to config.Identity,
	_ time.Duration) (config.App, error) {
	return post[config.App](ctx, c, identityPath, request{App: config.App{ID: appID, Identity: to}})
}

// SetResidency changes whether each user of an app has a region of their own. When a change has settled, the engine
// says.
func (c *Client) SetResidency(ctx context.Context, appID string, to config.Residency,
	_ time.Duration) (config.App, error) {
	return post[config.App](ctx, c, residencyPath, request{App: config.App{ID: appID, Residency: to}})
}

// SetPurposes changes what an app uses events for.
func (c *Client) SetPurposes(ctx context.Context, appID string, to []consent.Purpose) (config.App, error) {
	app := config.App{ID: appID, Purposes: consent.Setting{Purposes: to}}
	return post[config.App](ctx, c, purposesPath, request{App: app})
}

// SetHoldout changes who gets no personalization.
func (c *Client) SetHoldout(ctx context.Context, appID string, to experiment.Holdout) (config.App, error) {
	return post[config.App](ctx, c, holdoutPath, request{App: config.App{ID: appID, Holdout: to}})
}

// ResidencyIn returns a setting of residency for a deployment, or an error if it names regions that are not there. An
// app that names no region lives in the first one.
func ResidencyIn(regions config.Regions, to config.Residency) (config.Residency, error) {
	for _, region := range to.Regions {
		if err := regions.Takes(region); err != nil {
			return to, err
		}
		if one, _ := regions.Find(region); one.In != "" {
			return to, fmt.Errorf("region %s is a set of tables within %s, which an app has to itself: name %s", region,
				one.In, one.In)
		}
	}
	if to.On() && to.Home == "" {
		to.Home = regions.First()
	}
	return to, nil
}

// SetLimits changes what an app may ask for.
func (c *Client) SetLimits(ctx context.Context, appID string, n limit.Numbers) error {
	_, err := post[any](ctx, c, limitsPath, request{App: config.App{ID: appID, Limits: n}})
	return err
}

// DefaultLimits returns the limits of an app that has no others.
func (c *Client) DefaultLimits(ctx context.Context) (limit.Numbers, error) {
	return post[limit.Numbers](ctx, c, defaultsPath, request{})
}

// SetEncoding changes the encoding of an app's new events.
func (c *Client) SetEncoding(ctx context.Context, appID string, e schema.Encoding) (config.App, error) {
	return post[config.App](ctx, c, encodingPath, request{App: config.App{ID: appID, Log: schema.Layout{Encoding: e}}})
}

// Keys returns the keys of an app, sorted by hash.
func (c *Client) Keys(ctx context.Context, appID string) ([]config.Key, error) {
	return post[[]config.Key](ctx, c, keysPath, request{App: config.App{ID: appID}})
}

// PutKey stores a key.
func (c *Client) PutKey(ctx context.Context, appID string, key config.Key) error {
	_, err := post[any](ctx, c, putKeyPath, request{App: config.App{ID: appID}, Key: key})
	return err
}

// AddParent stores a key as a parent; text is the key itself.
func (c *Client) AddParent(ctx context.Context, appID string, key config.Key, text string) error {
	_, err := post[any](ctx, c, parentPath, request{App: config.App{ID: appID}, Key: key, Text: text})
	return err
}

// DeleteKey removes a key.
func (c *Client) DeleteKey(ctx context.Context, appID, hash string) error {
	_, err := post[any](ctx, c, deleteKeyPath, request{App: config.App{ID: appID}, Key: config.Key{Hash: hash}})
	return err
}

// post calls an operation and returns its answer.
func post[T any](ctx context.Context, c *Client, path string, r request) (answer T, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return answer, fmt.Errorf("encode a request of the operator: %w", err)
	}
	err = c.call(ctx, http.MethodPost, path, body, &answer)
	return answer, err
}
