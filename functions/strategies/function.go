// Package strategies is the public function that reads, previews and sets the
// strategy of an app. Strategies and their versions are stored in Firestore. A
// new strategy applies to every read that begins 5 s later or after, and starts
// a recompute of the stored profiles.
package strategies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 2 * time.Minute

type handler struct{ Backends }

// New returns the function over its backends.
func New(b Backends) http.Handler {
	h := handler{b}
	rt := b.Router(Timeout)
	rt.Handle("GET /1/strategies/personalization", auth.Serve(h.Auth.Tenant, h.get, auth.Recommendation))
	rt.Count(limit.Strategies, "POST /1/strategies/personalization", "POST /1/strategies/personalization/restore")
	rt.Handle("POST /1/strategies/personalization", auth.ServeBoth(h.Auth.TenantKey, h.set, auth.Recommendation))
	rt.HandleOwn("POST /1/strategies/personalization/preview", auth.Serve(h.Auth.Tenant, h.preview, auth.Recommendation))
	rt.HandleOwn("GET /1/strategies/personalization/versions", auth.Serve(h.Auth.Tenant, h.versions, auth.Recommendation))
	rt.HandleOwn("GET /1/strategies/personalization/suggestion",
		auth.Serve(h.Auth.AppID, h.suggestion, auth.Recommendation), "days")
	rt.HandleOwn("POST /1/strategies/personalization/restore",
		auth.ServeBoth(h.Auth.TenantKey, h.restore, auth.Recommendation))
	return rt
}

// get does not read the cache, so that a client sees the strategy it has just
// set.
func (h handler) get(w http.ResponseWriter, r *http.Request, app config.App) error {
	version, err := parseVersion(r)
	if err != nil {
		return err
	}
	if version != 0 {
		s, err := h.version(r, app.ID, version)
		if err != nil {
			return err
		}
		return httpapi.WriteJSON(w, http.StatusOK, s)
	}
	if app, err = h.Config.App(r.Context(), app.ID); err != nil {
		return fmt.Errorf("read strategy: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, app.Strategy)
}

func (h handler) set(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	wanted, err := httpapi.Decode(w, r, api.MaxStrategyBody, strategy.Decode)
	if err != nil {
		return err
	}
	var p config.Publication
	if p.Note, err = parseNote(r); err != nil {
		return err
	}
	if p.IfVersion, err = parseIfVersion(r); err != nil {
		return err
	}
	return h.activate(w, r, auditlog.Change{App: app.ID, Actor: key, Action: auditlog.StrategySet}, wanted, p)
}

// parseNote returns the query option note: why the strategy is set, "" if the request
// does not say.
func parseNote(r *http.Request) (string, error) {
	note := strings.TrimSpace(r.URL.Query().Get("note"))
	if !utf8.ValidString(note) || utf8.RuneCountInString(note) > api.MaxStrategyNote {
		return "", httpapi.Errorf(http.StatusUnprocessableEntity, "note must have at most %d characters", api.MaxStrategyNote)
	}
	return note, nil
}

// parseIfVersion returns the query option ifVersion: the version that must be active.
// It is nil if the request has none.
func parseIfVersion(r *http.Request) (*int64, error) {
	values, given := r.URL.Query()["ifVersion"]
	if !given {
		return nil, nil
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		n = -1
	}
	return &n, checkIfVersion(&n)
}

func checkIfVersion(n *int64) error {
	if n != nil && *n < 0 {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "ifVersion must be an integer of at least 0")
	}
	return nil
}

// activate makes a strategy the active one and records the change.
func (h handler) activate(w http.ResponseWriter, r *http.Request, c auditlog.Change, s strategy.Strategy,
	p config.Publication) error {
	err := auditlog.New(h.AuditLog()).Do(r.Context(), c, func() (end auditlog.End, err error) {
		end.Detail, err = h.makeActive(r.Context(), c.App, s, p)
		return end, err
	})
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.Message{Status: http.StatusOK,
		Message: "Strategy was successfully updated.", Warnings: s.Warnings()})
}

// makeActive makes a strategy the active one. If no recompute of its scoring has
// been started, it starts one. It returns the change of the version in words.
func (h handler) makeActive(ctx context.Context, appID string, s strategy.Strategy,
	p config.Publication) (string, error) {
	app, changed, err := h.CachedConfig.PublishStrategy(ctx, appID, s, p)
	if other, ok := errors.AsType[*config.OtherVersionError](err); ok {
		return "", httpapi.Errorf(http.StatusConflict,
			"Version %d is active, not %d: look at it and send the strategy again", other.Active, other.Expected)
	}
	if err != nil {
		return "", fmt.Errorf("set strategy: %w", err)
	}
	detail := fmt.Sprintf("version %d, unchanged", app.StrategyVersion)
	if changed {
		if detail = fmt.Sprintf("version %d to %d", app.StrategyVersion-1, app.StrategyVersion); p.Note != "" {
			detail += ": " + p.Note
		}
	}
	h.Log.LogAttrs(ctx, slog.LevelInfo, "strategy set", slog.String("app", appID),
		slog.Int64("version", app.StrategyVersion),
		slog.Int64("scoringVersion", app.ScoringVersion), slog.Bool("changed", changed))
	// An unchanged scoring starts it too: the request that set it may have failed
	// before this line. If it had not, the job exists, and nothing starts.
	needed, err := h.needsRecompute(ctx, app)
	if err == nil && needed {
		_, err = h.Recompute.StartStrategy(ctx, appID)
	}
	if err != nil {
		return detail, fmt.Errorf("the strategy is set, its recompute is not started: %w", err)
	}
	return detail, nil
}

// needsRecompute reports whether the recompute of the active scoring may not have
// been started yet. That of a scoring set long ago has been: a nightly round has
// followed, and the document of its job may have expired, so that a start would
// run it again.
func (h handler) needsRecompute(ctx context.Context, app config.App) (bool, error) {
	if app.ScoringVersion == app.StrategyVersion {
		return true, nil
	}
	versions, err := h.Config.StrategyVersions(ctx, app.ID)
	if err != nil {
		return false, fmt.Errorf("list strategies: %w", err)
	}
	for _, v := range versions {
		if v.Version == app.ScoringVersion {
			return h.Now().Sub(v.SetAt) < job.Kept, nil
		}
	}
	return false, nil // versions of that time are no longer kept
}
