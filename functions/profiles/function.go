// Package profiles is the public function that serves users' profiles, explains
// them, lists and deletes users, and keeps who has opted out and what they consent to. It also lists recent events
// and their users. Profiles, opt-outs and consents are stored in
// the table users. A profile that is no longer valid is computed from the log when it is
// read.
package profiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/view"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Timeout is how long a request may take, as Terraform has it.
const Timeout = time.Minute

type handler struct {
	Backends
	reads     *atomic.Int64 // of stored profiles
	maxAnswer int           // bytes of the profiles of a batch
	members   membership
}

// New returns the function over its backends.
func New(b Backends) http.Handler { return newBounded(b, api.MaxProfilesAnswer) }

func newBounded(b Backends, maxAnswer int) http.Handler {
	h := handler{b, new(atomic.Int64), maxAnswer, newMembership(b.CachedConfig)}
	rt := b.Router(Timeout)
	read := func(handle func(http.ResponseWriter, *http.Request, config.App, string) error) httpapi.Handler {
		return auth.ServeBoth(h.user, handle, auth.Recommendation, auth.ProfilesRead)
	}
	rt.HandleOwn("GET /1/profiles/{userToken}", read(h.get), "limit", "halfLife", "consistency", "segments",
		"at", "strategyVersion", "surface", "holdout")
	rt.HandleOwn("POST /1/profiles/batch", auth.ServeBoth(h.Auth.TenantUserGrant, h.batch,
		auth.Recommendation, auth.ProfilesRead))
	rt.Handle("GET /1/profiles/personalization/{userToken}", read(h.personalization))
	rt.Handle("DELETE /1/profiles/{userToken}", auth.Serve(h.changedUser, h.deleteProfile,
		auth.Recommendation, auth.DeleteObject))
	rt.Handle("DELETE /1/usertokens/{userToken}", auth.Serve(h.changedUser, h.deleteUserToken, auth.DeleteObject))
	rt.HandleOwn("GET /1/usertokens", auth.Serve(h.Auth.Tenant, h.users, auth.Admin), "prefix", "limit", "cursor")
	rt.HandleOwn("GET /1/usertokens/recent", auth.Serve(h.Auth.Tenant, h.recentUsers, auth.Admin), "limit")
	rt.HandleOwn("GET /1/events/recent", auth.Serve(h.Auth.Tenant, h.recentEvents, auth.Admin), "limit", "after")
	rt.HandleOwn("GET /1/explain/{userToken}", read(h.explain), "facet", "value", "limit")
	rt.HandleOwn("GET /1/optouts/{userToken}", auth.Serve(h.changedUser, h.getOptOut, auth.DeleteObject))
	rt.HandleOwn("PUT /1/optouts/{userToken}", auth.Serve(h.changedUser, h.optOut, auth.DeleteObject))
	rt.HandleOwn("DELETE /1/optouts/{userToken}", auth.Serve(h.changedUser, h.optIn, auth.DeleteObject))
	rt.HandleOwn("GET /1/consents/{userToken}", auth.Serve(h.consenting, h.getConsents, auth.DeleteObject, auth.OwnUser))
	rt.HandleOwn("PUT /1/consents/{userToken}", auth.Serve(h.consenting, h.setConsents, auth.DeleteObject, auth.OwnUser))
	rt.HandleOwn("DELETE /1/consents/{userToken}",
		auth.Serve(h.consenting, h.forgetConsents, auth.DeleteObject, auth.OwnUser))
	rt.HandleOwn("GET /1/users/{userToken}/region", auth.Serve(h.changedUser, h.getRegion, auth.Admin))
	rt.HandleOwn("PUT /1/users/{userToken}/region", auth.Serve(h.changedUser, h.setRegion, auth.Admin))
	rt.HandleOwn("GET /1/identities", auth.Serve(h.Auth.Tenant, h.links, auth.Admin), "day", "strength", "by", "state",
		"key", "limit", "cursor")
	rt.HandleOwn("POST /1/identities/link", auth.Serve(h.tenantChange, h.link, auth.Admin))
	rt.HandleOwn("GET /1/identities/refused", auth.Serve(h.Auth.Tenant, h.refusedLinks, auth.Admin), "reason", "cursor")
	rt.HandleOwn("GET /1/identities/{userToken}", auth.Serve(h.changedUser, h.identity, auth.Admin))
	rt.HandleOwn("DELETE /1/identities/{userToken}/links/{authenticatedUserToken}",
		auth.Serve(h.changedUser, h.unlink, auth.Admin))
	return rt
}

func (h handler) get(w http.ResponseWriter, r *http.Request, app config.App, user string) error {
	began := time.Now()
	if err := setConsistency(&app, r); err != nil {
		return err
	}
	if err := setSurface(&app, r.URL.Query()["surface"]); err != nil {
		return err
	}
	limit, err := positive(r, "limit", api.DefaultAffinities)
	if err != nil {
		return err
	}
	halfLife, err := halfLife(r)
	if err != nil {
		return err
	}
	asked, err := httpapi.BoolOption(r, "segments")
	if err != nil {
		return err
	}
	q, err := parseAsOf(r)
	if err != nil {
		return err
	}
	saved, err := h.members.saved(r.Context(), app.ID, asked)
	if err != nil {
		return err
	}
	h.Usage.Reads(app.ID, 1)
	decode := limit
	if !halfLife.IsZero() || asked {
		decode = 0 // all: another half-life sorts affinities differently, and segments may name any
	}
	result, err := h.read(r.Context(), app, user, q, decode)
	if err != nil {
		return err
	}
	member := result
	if asked && app.Purposes.On() && app.Surface != consent.Segments {
		if member, err = h.memberOf(r.Context(), app, user, q); err != nil {
			return err
		}
	}
	segments, err := h.members.of(saved, member)
	if err != nil {
		return err
	}
	err = httpapi.WriteAppended(w, http.StatusOK, func(b []byte) ([]byte, error) {
		return view.AppendWithSegments(b, user, result, limit, halfLife, segments)
	})
	if err == nil && result.Stored {
		h.count(r.Context(), time.Since(began))
	}
	return err
}

// loggedReads is one in how many reads of stored profiles has a log line: a line costs more
// than a hundredth of a read.
const loggedReads = 16

// count records how long the read of a stored profile took. Cloud Monitoring counts the lines.
func (h handler) count(ctx context.Context, took time.Duration) {
	h.Metrics.RecordStoredRead(ctx, took)
	if h.reads.Add(1)%loggedReads == 1 {
		h.Log.LogAttrs(ctx, slog.LevelInfo, "stored profile read", slog.Float64("ms", float64(took.Microseconds())/1000))
	}
}

// user returns the app and the user whose profile a request reads. A profile is about no
// index, so a key may be restricted to some.
func (h handler) user(r *http.Request, anyOf ...string) (config.App, string, error) {
	app, grant, err := h.Auth.TenantUserGrant(r, anyOf...)
	if err != nil {
		return app, "", err
	}
	user, err := userToken(r)
	if err == nil {
		err = grant.User(user)
	}
	if err == nil && r.URL.Query().Has("holdout") {
		err = checkHoldout(grant, r.URL.Query().Get("holdout"))
	}
	return app, user, err
}

// userToken returns the token of the request's path, and checks it before it
// becomes part of a row key. Algolia's schema allows 129 characters, as this
// message says. The message of Algolia's Insights API says 128; package event
// keeps that one word for word.
func userToken(r *http.Request) (string, error) {
	token := r.PathValue("userToken")
	if !event.ValidUserToken(token) {
		return "", httpapi.Errorf(http.StatusUnprocessableEntity,
			"UserToken must contain only alphanumeric, equal, plus, slash, "+
				"hyphen, or underscore characters, and be between 1 and 129 characters long")
	}
	return token, nil
}

func unknown(user string) error {
	return httpapi.Errorf(http.StatusNotFound, "No profile: user token %q has no event within the retention", user)
}

// positive returns a query parameter that must be a positive integer, or absent
// if the request has none.
func positive(r *http.Request, name string, absent int) (int, error) {
	values, given := r.URL.Query()[name]
	if !given {
		return absent, nil
	}
	n, err := strconv.Atoi(values[0]) // the largest int if the number is larger
	if err != nil && !errors.Is(err, strconv.ErrRange) || n < 1 {
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "%s must be a positive integer", name)
	}
	return n, nil
}

// setConsistency makes the query parameter consistency that of the reads of this
// request. Without one the app's default stays.
func setConsistency(app *config.App, r *http.Request) error {
	values, given := r.URL.Query()["consistency"]
	if !given {
		return nil
	}
	return overrideConsistency(app, values[0])
}

func overrideConsistency(app *config.App, name string) error {
	c, err := config.ParseConsistency(name)
	if err != nil {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "%v", err)
	}
	app.Consistency = c
	return nil
}

// halfLife returns the query parameter of that name, or the zero value if the
// request has none.
func halfLife(r *http.Request) (strategy.HalfLife, error) {
	values, given := r.URL.Query()["halfLife"]
	if !given {
		return strategy.HalfLife{}, nil
	}
	h, err := strategy.ParseHalfLife(values[0])
	if err != nil {
		return h, httpapi.Errorf(http.StatusUnprocessableEntity, "halfLife %v", err)
	}
	return h, nil
}

func (h handler) batch(w http.ResponseWriter, r *http.Request, app config.App, grant auth.Grant) error {
	asked, err := httpapi.Decode(w, r, api.MaxProfilesBody, decodeBatch)
	if err != nil {
		return err
	}
	// Before anything is read: neither the time nor the size of an answer may tell of
	// users that the key is not for.
	for _, user := range asked.users {
		if err := grant.User(user); err != nil {
			return err
		}
	}
	if asked.holdout != "" {
		if err := checkHoldout(grant, asked.holdout); err != nil {
			return err
		}
	}
	if asked.consistency != nil {
		if err := overrideConsistency(&app, *asked.consistency); err != nil {
			return err
		}
	}
	if err := setSurface(&app, asked.surface); err != nil {
		return err
	}
	if err := h.Charge(r.Context(), app.ID, limit.Reads, len(asked.users)-1); err != nil {
		return err
	}
	h.Usage.Reads(app.ID, len(asked.users))
	read, err := h.encodeEach(r.Context(), app, asked)
	var faulty profile.Faulty
	if err != nil && !errors.As(err, &faulty) {
		return fmt.Errorf("read profiles: %w", err)
	}
	answer := profiles{Profiles: make([]json.RawMessage, 0, len(read)), NotFound: []string{}}
	for _, user := range asked.users {
		if encoded, known := read[user]; known {
			answer.Profiles = append(answer.Profiles, encoded)
		} else if faulty[user] != nil {
			answer.Faulty = append(answer.Faulty, user)
		} else {
			answer.NotFound = append(answer.NotFound, user)
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// encodeEach reads and encodes the profiles of a batch, by user. Unknown users have
// none. An error of type profile.Faulty names users that cannot be read; the others
// are encoded.
func (h handler) encodeEach(ctx context.Context, app config.App, asked batch) (map[string]json.RawMessage, error) {
	saved, err := h.members.saved(ctx, app.ID, asked.segments)
	if err != nil {
		return nil, err
	}
	decode := asked.limit
	if asked.segments {
		decode = 0 // segments may name any affinity
	}
	names, err := h.membersOf(ctx, app, asked, saved)
	if err != nil {
		return nil, err
	}
	read, size := make(map[string]json.RawMessage, len(asked.users)), 0
	app.HeldOutToo = true
	err = h.Profiles.ReadEach(ctx, app, asked.users, decode, func(user string, result profile.Result) error {
		if !result.Known {
			return nil
		}
		if result.HeldOut && asked.holdout == "" {
			result = result.Withheld()
		}
		segments, err := names[user], error(nil)
		if names == nil {
			segments, err = h.members.of(saved, result)
		}
		if err != nil {
			return err
		}
		encoded, err := view.AppendWithSegments(nil, user, result, asked.limit, strategy.HalfLife{}, segments)
		if err != nil {
			return err
		}
		if size += len(encoded); size > h.maxAnswer {
			return httpapi.Errorf(http.StatusUnprocessableEntity,
				"The answer has more than %d bytes: send fewer userTokens in a request, or a lower limit", h.maxAnswer)
		}
		read[user] = encoded
		return admission.Take(ctx, answerWeight*int64(len(encoded)))
	})
	return read, err
}

// answerWeight is how many bytes a batch takes from the process's gate for each byte
// of its answer: the encoded profiles and the answer made of them.
const answerWeight = 3

// profiles is api.Profiles with its profiles encoded.
type profiles struct {
	Profiles []json.RawMessage `json:"profiles"`
	NotFound []string          `json:"notFound"`
	Faulty   []string          `json:"faulty,omitempty"`
}

func (h handler) personalization(w http.ResponseWriter, r *http.Request, app config.App, user string) error {
	if err := setConsistency(&app, r); err != nil {
		return err
	}
	if r.URL.Query().Has("at") {
		return httpapi.Errorf(http.StatusUnprocessableEntity,
			"This route answers profiles as of now: GET /1/profiles/{userToken} takes at")
	}
	h.Usage.Reads(app.ID, 1)
	result, err := h.read(r.Context(), app, user, asOf{heldOutToo: r.URL.Query().Has("holdout")}, 0)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.PersonalizationProfile{
		UserToken: user, LastEventAt: api.AtMillis(result.LastEventAt), Scores: result.Scaled(result.App.Strategy),
	})
}

func (h handler) deleteProfile(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	until, err := h.delete(r, c)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.DeletedUser{UserToken: c.User, DeletedUntil: api.At(until)})
}

func (h handler) deleteUserToken(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	if _, err := h.delete(r, c); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// delete deletes a user: after it returns, no earlier event counts in any read.
// It enqueues a task of worker that removes these events from the log. The
// client may repeat the request after an error.
func (h handler) delete(r *http.Request, c auditlog.Change) (until time.Time, err error) {
	c.Action = auditlog.UserDelete
	err = auditlog.New(h.AuditLog()).Do(r.Context(), c, func() (end auditlog.End, err error) {
		until, err = h.forget(r.Context(), c.App, c.User)
		return end, err
	})
	return until, err
}

// changedUser returns the app, the name of the key and the user of a request that needs
// one of some permissions and is about one user, whom it deletes or opts out.
func (h handler) changedUser(r *http.Request, anyOf ...string) (auditlog.Change, error) {
	app, key, err := h.Auth.TenantKey(r, anyOf...)
	if err != nil {
		return auditlog.Change{}, err
	}
	user, err := userToken(r)
	return auditlog.Change{App: app.ID, Actor: key, User: user}, err
}

// forget deletes a user and enqueues the purge.
func (h handler) forget(ctx context.Context, app, user string) (time.Time, error) {
	until, err := h.Profiles.Delete(ctx, app, user)
	if err != nil {
		return time.Time{}, fmt.Errorf("delete user: %w", err)
	}
	return until, h.enqueuePurge(ctx, app, user, until)
}

func (h handler) enqueuePurge(ctx context.Context, appID, user string, until time.Time) error {
	request := purge.Request{App: appID, User: user, DeletedUntil: until.UnixMilli()}
	return purge.Enqueue(ctx, h.Queue, profile.ResidentsOf(h.Profiles), request)
}
