package profiles

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// asOf says as of which instant a request reads a profile, and under which strategy.
type asOf struct {
	at      time.Time // the zero value: now
	version int64     // of the strategy; 0: the active one
	// heldOutToo asks for the affinities of users who are held out, too.
	heldOutToo bool
}

// parseAsOf returns the query options at, strategyVersion and holdout.
func parseAsOf(r *http.Request) (q asOf, err error) {
	query := r.URL.Query()
	q.heldOutToo = query.Has("holdout")
	if !query.Has("at") {
		if query.Has("strategyVersion") {
			return q, httpapi.Errorf(http.StatusUnprocessableEntity,
				"strategyVersion needs at: a profile without it is as of now, by the active strategy")
		}
		return q, nil
	}
	ms, err := event.ParseDate(query.Get("at"))
	if err != nil {
		return q, httpapi.Errorf(http.StatusUnprocessableEntity,
			"at must be a time such as 2026-11-21T10:00:00Z, or milliseconds since 1970, got %q", query.Get("at"))
	}
	q.at = time.UnixMilli(ms)
	if query.Has("strategyVersion") {
		q.version, err = strconv.ParseInt(query.Get("strategyVersion"), 10, 64)
		if err != nil || q.version < 1 {
			return q, httpapi.Errorf(http.StatusUnprocessableEntity, "strategyVersion must be a positive integer")
		}
	}
	return q, nil
}

// read reads a profile of which the caller uses so many affinities, 0 for all.
func (h handler) read(ctx context.Context, app config.App, user string, q asOf,
	affinities int) (result profile.Result, err error) {
	app.HeldOutToo = true // or a surface knows nothing of them
	if !q.at.IsZero() {
		result, err = h.compute(ctx, app, user, q)
	} else if result, err = h.Profiles.Read(ctx, app, user, affinities); err != nil {
		err = fmt.Errorf("read profile: %w", err)
	} else if !result.Known {
		err = unknown(user)
	}
	if result.HeldOut && !q.heldOutToo {
		result = result.Withheld()
	}
	return result, err
}

// checkHoldout checks the option that asks for the affinities of users who are held out, too.
func checkHoldout(grant auth.Grant, value string) error {
	if value != "ignore" {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "holdout %.50q must be ignore, or left out", value)
	}
	return grant.Require(auth.Admin)
}

// compute computes a profile as of an instant of the past, from blocks and log. It takes as long
// as an explanation and counts against the same limit.
func (h handler) compute(ctx context.Context, app config.App, user string, q asOf) (result profile.Result, err error) {
	now := h.Now()
	if q.at.After(now) {
		return result, httpapi.Errorf(http.StatusUnprocessableEntity,
			"at must not be in the future: the engine's clock says %s", event.FormatTime(now.UnixMilli()))
	}
	window := affinity.Window{Now: now.UnixMilli(), RetentionDays: app.RetentionDays}
	if from := window.From(); q.at.UnixMilli() < from {
		return result, httpapi.Errorf(http.StatusUnprocessableEntity,
			"at must not be before %s: older events have left the app's retention of %d days", event.FormatTime(from),
			app.RetentionDays)
	}
	leave, err := h.Limits.Enter(app.ID, limit.Explain)
	if err != nil {
		return result, err
	}
	defer leave()
	if app, err = h.CachedConfig.Under(ctx, app, q.version); err != nil {
		return result, err
	}
	if result, err = h.Profiles.ComputeAt(ctx, app, user, q.at, now); err != nil {
		return result, fmt.Errorf("compute profile as of %s: %w", q.at, err)
	}
	if !result.Known {
		return result, httpapi.Errorf(http.StatusNotFound,
			"No profile: user token %q has no event up to %s that the engine holds", user, event.FormatTime(q.at.UnixMilli()))
	}
	return result, nil
}
