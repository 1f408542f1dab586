package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

const (
	recomputesPath = "/1/recomputes"
	reenrichPath   = "/1/reenrich"
	crowdPath      = "/1/crowd"
	schemaPath     = "/1/schema"
	backtestsPath  = "/1/backtests"
)

// StartRecompute starts a recompute of all profiles. It supersedes one under
// way, so the request is never repeated. For this and the methods below the key
// needs the permission admin.
func (c Jobs) StartRecompute(ctx context.Context, request api.RecomputeRequest) (api.Recompute, error) {
	var answer api.Recompute
	err := c.call(ctx, never, http.MethodPost, recomputesPath, request, &answer)
	return answer, err
}

// RefreshUser computes the profile of one user from their events, whatever is stored,
// stores it and returns it. For an unknown user the error is an *api.Error with status
// 404.
func (c Jobs) RefreshUser(ctx context.Context, user string) (api.Profile, error) {
	var answer api.Profile
	err := c.call(ctx, always, http.MethodPost, recomputesPath, api.RecomputeRequest{UserToken: &user}, &answer)
	return answer, err
}

// Recomputes returns the latest recomputes, the newest first.
func (c Jobs) Recomputes(ctx context.Context) (api.Recomputes, error) {
	var answer api.Recomputes
	err := c.call(ctx, always, http.MethodGet, recomputesPath, nil, &answer)
	return answer, err
}

// Recompute returns a recompute by its ID.
func (c Jobs) Recompute(ctx context.Context, id string) (api.Recompute, error) {
	var answer api.Recompute
	err := c.call(ctx, always, http.MethodGet, recomputesPath+"/"+url.PathEscape(id), nil, &answer)
	return answer, err
}

// CancelRecompute cancels a recompute. If it has ended, the error is an
// *api.Error with status 409, so the request is never repeated.
func (c Jobs) CancelRecompute(ctx context.Context, id string) (api.Recompute, error) {
	var answer api.Recompute
	err := c.call(ctx, never, http.MethodPost, recomputesPath+"/"+url.PathEscape(id)+"/cancel", nil, &answer)
	return answer, err
}

// BuildCrowd starts a build of crowd statistics. It supersedes builds under way
// that build nothing more, so the request is never repeated. For this and Crowd
// the key needs the permission recommendation.
func (c Jobs) BuildCrowd(ctx context.Context, request api.CrowdRequest) (api.CrowdBuild, error) {
	var answer api.CrowdBuild
	err := c.call(ctx, never, http.MethodPost, crowdPath, request, &answer)
	return answer, err
}

// Crowd returns the crowd statistics of the app's indexes and the latest
// builds.
func (c Jobs) Crowd(ctx context.Context) (api.Crowd, error) {
	var answer api.Crowd
	err := c.call(ctx, always, http.MethodGet, crowdPath, nil, &answer)
	return answer, err
}

// CancelCrowd cancels a build of crowd statistics. If it has ended, the error is an
// *api.Error with status 409, so the request is never repeated.
func (c Jobs) CancelCrowd(ctx context.Context, id string) (api.CrowdBuild, error) {
	var answer api.CrowdBuild
	err := c.call(ctx, never, http.MethodPost, crowdPath+"/"+url.PathEscape(id)+"/cancel", nil, &answer)
	return answer, err
}

// StartReenrichment starts a re-enrichment, or returns the one under way, whose
// DryRun may differ.
func (c Jobs) StartReenrichment(ctx context.Context, request api.ReenrichRequest) (api.Reenrichment, error) {
	var answer api.Reenrichment
	err := c.call(ctx, always, http.MethodPost, reenrichPath, request, &answer)
	return answer, err
}

// Reenrichments returns the latest re-enrichments, the newest first.
func (c Jobs) Reenrichments(ctx context.Context) (api.Reenrichments, error) {
	var answer api.Reenrichments
	err := c.call(ctx, always, http.MethodGet, reenrichPath, nil, &answer)
	return answer, err
}

// Reenrichment returns a re-enrichment by its ID, with the first of its faults.
func (c Jobs) Reenrichment(ctx context.Context, id string) (api.Reenrichment, error) {
	var answer api.Reenrichment
	err := c.call(ctx, always, http.MethodGet, reenrichPath+"/"+url.PathEscape(id), nil, &answer)
	return answer, err
}

// CancelReenrichment cancels a re-enrichment. If it has ended, the error is an
// *api.Error with status 409, so the request is never repeated.
func (c Jobs) CancelReenrichment(ctx context.Context, id string) (api.Reenrichment, error) {
	var answer api.Reenrichment
	err := c.call(ctx, never, http.MethodPost, reenrichPath+"/"+url.PathEscape(id)+"/cancel", nil, &answer)
	return answer, err
}

// StartBacktest judges strategies on the app's log. If a backtest is under way,
// the error is an *api.Error with status 409, so the request is never repeated.
func (c Jobs) StartBacktest(ctx context.Context, request api.BacktestRequest) (api.BacktestJob, error) {
	var answer api.BacktestJob
	err := c.call(ctx, never, http.MethodPost, backtestsPath, request, &answer)
	return answer, err
}

// Backtest returns a backtest by its ID, with its report once it is done.
func (c Jobs) Backtest(ctx context.Context, id string) (api.BacktestJob, error) {
	var answer api.BacktestJob
	err := c.call(ctx, always, http.MethodGet, backtestsPath+"/"+url.PathEscape(id), nil, &answer)
	return answer, err
}

// Backtests returns the latest backtests without their reports, the newest first.
func (c Jobs) Backtests(ctx context.Context) (api.Backtests, error) {
	var answer api.Backtests
	err := c.call(ctx, always, http.MethodGet, backtestsPath, nil, &answer)
	return answer, err
}

// CancelBacktest cancels a backtest. If it has ended, the error is an *api.Error
// with status 409, so the request is never repeated.
func (c Jobs) CancelBacktest(ctx context.Context, id string) (api.BacktestSummary, error) {
	var answer api.BacktestSummary
	err := c.call(ctx, never, http.MethodPost, backtestsPath+"/"+url.PathEscape(id)+"/cancel", nil, &answer)
	return answer, err
}

// Audit compares profiles of some users with the log. It takes up to a minute.
func (c Jobs) Audit(ctx context.Context, request api.AuditRequest) (api.Audit, error) {
	var answer api.Audit
	err := c.call(ctx, always, http.MethodPost, "/1/audits", request, &answer)
	return answer, err
}

// Get returns the schemas of the log, and how far its migration is.
func (c Schema) Get(ctx context.Context) (api.Schema, error) {
	var answer api.Schema
	err := c.call(ctx, always, http.MethodGet, schemaPath, nil, &answer)
	return answer, err
}

// Start starts a migration of the log to another schema. This and the
// other steps are never repeated. If a step is not possible now, the error is
// an *api.Error with status 409.
func (c Schema) Start(ctx context.Context, request api.SchemaStartRequest) (api.Schema, error) {
	return c.schemaStep(ctx, api.StepStart, request)
}

// Backfill copies the events that were written before the start.
func (c Schema) Backfill(ctx context.Context, request api.SchemaBackfillRequest) (api.Schema, error) {
	return c.schemaStep(ctx, api.StepBackfill, request)
}

// Verify compares the two schemas row by row.
func (c Schema) Verify(ctx context.Context) (api.Schema, error) {
	return c.schemaStep(ctx, api.StepVerify, nil)
}

// Cutover makes reads use the new schema.
func (c Schema) Cutover(ctx context.Context) (api.Schema, error) {
	return c.schemaStep(ctx, api.StepCutover, nil)
}

// Rollback makes reads use the old schema again. Before the cutover, it
// abandons the migration.
func (c Schema) Rollback(ctx context.Context) (api.Schema, error) {
	return c.schemaStep(ctx, api.StepRollback, nil)
}

// Drop removes the old schema.
func (c Schema) Drop(ctx context.Context, request api.SchemaDropRequest) (api.Schema, error) {
	return c.schemaStep(ctx, api.StepDrop, request)
}

func (c *Client) schemaStep(ctx context.Context, step string, request any) (api.Schema, error) {
	var answer api.Schema
	err := c.call(ctx, never, http.MethodPost, schemaPath+"/"+step, request, &answer)
	return answer, err
}
