// Package admin is the public function for the operator of an app. It starts,
// lists and cancels recomputes of the profiles and re-enrichments of the log,
// builds crowd statistics, judges strategies on past events, runs experiments and makes reports of them, previews
// links between tokens, migrates the log to another schema, and compares profiles with the log. It also answers with
// what an app used, with the audit log, and with the app's settings and keys.
//
// It exports users, dumps apps, and starts the jobs that follow an import when the client says
// that it has ended.
//
// Jobs are stored in Firestore, and function worker runs them. An audit runs
// within its request.
package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/view"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 10 * time.Minute

type handler struct {
	Backends
	jobs answers.Jobs
}

// New returns the function over its backends.
func New(b Backends) http.Handler {
	h := handler{b, answers.Jobs{Base: b.Base, Before: b.Before}}
	rt := b.Router(Timeout)
	rt.Count(limit.Jobs, "POST /1/recomputes", "POST /1/backtests", "POST /1/reenrich", "POST /1/crowd",
		"POST /1/identities/preview", "POST /1/reports", "POST /1/schema/start", "POST /1/schema/backfill",
		"POST /1/schema/verify")
	rt.Count(limit.Imports, "POST /1/imports/end")
	rt.HandleOwn("POST /1/recomputes", auth.ServeBoth(h.Auth.TenantKey, h.start, auth.Admin))
	recomputes := h.recomputes()
	rt.HandleOwn("GET /1/recomputes", recomputes.latest)
	rt.HandleOwn("GET /1/recomputes/{id}", recomputes.get)
	rt.HandleOwn("POST /1/recomputes/{id}/cancel", recomputes.cancel)
	rt.HandleOwn("DELETE /1/recomputes/{id}", recomputes.cancel)
	rt.HandleOwn("POST /1/imports/end", auth.Serve(h.Auth.Tenant, h.endImport, auth.Admin))
	rt.HandleOwn("POST /1/audits", auth.Serve(h.Auth.Tenant, h.audit, auth.Admin))
	rt.HandleOwn("GET /1/usage", auth.Serve(h.Auth.AppID, h.usage, auth.Usage), "from", "to")
	rt.HandleOwn("GET /1/app", h.appSettings, "limit", "cursor")
	rt.HandleOwn("GET /1/export/{userToken}", auth.ServeBoth(h.Auth.TenantKey, h.export, auth.Admin))
	rt.HandleOwn("GET /1/dump", auth.ServeBoth(h.Auth.TenantKey, h.dump, auth.Admin), "cursor")
	rt.HandleOwn("GET /1/audit-log", auth.Serve(h.Auth.AppID, h.auditLog, auth.Admin),
		"limit", "cursor", "action", "userToken")
	h.registerReenrich(rt)
	h.registerCrowd(rt)
	rt.HandleOwn("POST /1/backtests", auth.ServeBoth(h.Auth.TenantGrant, h.startBacktest, auth.Admin))
	backtests := h.backtests()
	rt.HandleOwn("GET /1/backtests", backtests.latest)
	rt.HandleOwn("GET /1/backtests/{id}", backtests.get)
	rt.HandleOwn("POST /1/backtests/{id}/cancel", backtests.cancel)
	h.registerExperiments(rt)
	h.registerIdentityPreview(rt)
	h.registerReports(rt)
	h.registerSchema(rt)
	return rt
}

// recomputes are the routes that recomputes have in common with other jobs.
func (h handler) recomputes() resource[api.Recompute] {
	return resource[api.Recompute]{
		handler: h, runner: h.Recompute.Runner, path: "/1/recomputes", noun: "recompute",
		permission: auth.Admin, cancelled: auditlog.RecomputeCancel, render: h.render,
		list: func(all []api.Recompute) any { return api.Recomputes{Recomputes: all} },
		detailed: func(ctx context.Context, j job.Job, faults []string) (any, error) {
			answer := h.render(ctx, j)
			answer.Faults = faults
			return answer, nil
		},
	}
}

func (h handler) render(ctx context.Context, j job.Job) api.Recompute {
	p, c := job.ParamsOf[recompute.Params](j), job.CountsOf[recompute.Counts](j.Totals.Counts)
	answer := api.Recompute{
		ID: j.ID, State: api.JobState(j.State), StrategyVersion: p.StrategyVersion, Shards: answers.Shards(j),
		Users: c.Known, Events: c.Events, StartedAt: api.At(j.StartedAt), FinishedAt: answers.Finished(j),
		Wait: h.jobs.Wait(ctx, j), Trigger: string(p.Trigger), RetentionDays: p.RetentionDays, OnlyStale: p.OnlyStale,
		Maintain: p.Maintain,
		Fold:     p.Fold, FoldedUsers: c.Folded,
		PlannedUsers: j.Totals.PlannedUsers, VisitedUsers: c.Users, StaleUsers: j.Totals.Stale, Faulty: c.Faulty,
		Error: j.Error,
	}
	if p.Scoring() != p.StrategyVersion {
		answer.ScoringVersion = p.Scoring()
	}
	return answer
}

func (h handler) start(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	body, err := httpapi.ReadBody(w, r, api.MaxAdminBody)
	if err != nil {
		return err
	}
	var request api.RecomputeRequest
	if err := decodeBody(body, &request, "empty or an object with no other keys than onlyStale, fold and full, "+
		"each true or false, or userToken"); err != nil {
		return err
	}
	if bytes.Contains(body, []byte(`"userToken"`)) { // also null: it does not stand for all users
		return h.refreshUser(w, r, app, key, request)
	}
	if request.OnlyStale && request.Full {
		return httpapi.Errorf(http.StatusUnprocessableEntity,
			"onlyStale and full cannot both be true: full computes every profile")
	}
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.RecomputeStart}
	change.Detail = detail(request)
	j, err := h.jobs.Record(r.Context(), change, func() (job.Job, error) {
		return h.Recompute.StartManual(r.Context(), app.ID,
			recompute.Options{OnlyStale: request.OnlyStale, Fold: request.Fold, Full: request.Full})
	})
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, h.render(r.Context(), j))
}

// detail is what the audit log says of a recompute.
func detail(r api.RecomputeRequest) string {
	var parts []string
	if r.OnlyStale {
		parts = append(parts, "only stale profiles")
	}
	if r.Full {
		parts = append(parts, "all profiles and histories")
	}
	if r.Fold {
		parts = append(parts, "folds histories")
	}
	return strings.Join(parts, ", ")
}

// readRequest reads a body and decodes it, as decodeBody does.
func readRequest[T any](w http.ResponseWriter, r *http.Request, most int64, want string) (T, error) {
	return httpapi.Decode(w, r, most, func(body []byte) (request T, err error) {
		err = decodeBody(body, &request, want)
		return request, err
	})
}

// decodeBody decodes a JSON object into request. It leaves request as it is if
// the body is empty, and refuses unknown keys. want is the end of the message
// "The body must be ...".
func decodeBody(body []byte, request any, want string) error {
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return nil
	}
	if !json.Valid(body) {
		return httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is not valid JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(request); err != nil || body[0] != '{' {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "The body must be %s", want)
	}
	return nil
}

// refreshUser computes and stores the profile of one user, and answers it.
func (h handler) refreshUser(w http.ResponseWriter, r *http.Request, app config.App, key string,
	request api.RecomputeRequest) error {
	if request.UserToken == nil {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "userToken must be a text")
	}
	user := *request.UserToken
	if request != (api.RecomputeRequest{UserToken: request.UserToken}) {
		return httpapi.Errorf(http.StatusUnprocessableEntity,
			"userToken must be the only key of the body: the others are about all users")
	}
	if !event.ValidUserToken(user) {
		return httpapi.Errorf(http.StatusUnprocessableEntity,
			"userToken must contain only alphanumeric, equal, plus, slash, "+
				"hyphen, or underscore characters, and be between 1 and 129 characters long")
	}
	var result profile.Result
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.RecomputeStart, User: user, Detail: "one user"}
	err := auditlog.New(h.AuditLog()).Do(r.Context(), change, func() (end auditlog.End, err error) {
		result, err = h.Profiles.Refresh(r.Context(), app, user)
		return end, err
	})
	if err != nil {
		return fmt.Errorf("refresh one user: %w", err)
	}
	if !result.Known {
		return httpapi.Errorf(http.StatusNotFound, "No profile: user token %q has no event within the retention", user)
	}
	// It is a read, and no job.
	limit.GiveBack(r.Context())
	if err := h.Charge(r.Context(), app.ID, limit.Reads, 1); err != nil {
		return err
	}
	h.Usage.Reads(app.ID, 1)
	return httpapi.WriteAppended(w, http.StatusOK, func(b []byte) ([]byte, error) {
		return view.Append(b, user, result, api.DefaultAffinities, strategy.HalfLife{})
	})
}
