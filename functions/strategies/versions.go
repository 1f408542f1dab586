package strategies

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// versions lists the kept strategies of an app.
func (h handler) versions(w http.ResponseWriter, r *http.Request, app config.App) error {
	list, err := h.Config.StrategyVersions(r.Context(), app.ID)
	if err != nil {
		return fmt.Errorf("list strategies: %w", err)
	}
	answer := api.StrategyVersions{Versions: make([]api.StrategyVersion, len(list))}
	for i, v := range list {
		// A version becomes active when it is set.
		answer.Versions[i] = api.StrategyVersion{Version: v.Version, ScoringVersion: v.ScoringVersion,
			SetAt: api.At(v.SetAt), Active: i == 0, Note: v.Note}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// restore makes a kept strategy the active one, as a new version.
func (h handler) restore(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	in, err := httpapi.Decode(w, r, api.MaxAdminBody, decodeRestore)
	if err != nil {
		return err
	}
	s, err := h.version(r, app.ID, in.Version)
	if err != nil {
		return err
	}
	return h.activate(w, r, auditlog.Change{
		App: app.ID, Actor: key, Action: auditlog.StrategyRestore, Subject: "version " + strconv.FormatInt(in.Version, 10),
	}, s, config.Publication{IfVersion: in.IfVersion})
}

// version returns a kept strategy.
func (h handler) version(r *http.Request, appID string, version int64) (strategy.Strategy, error) {
	s, err := h.Config.StrategyVersion(r.Context(), appID, version)
	switch {
	case errors.Is(err, config.ErrNotFound):
		return s, httpapi.Errorf(http.StatusNotFound, "No strategy: version %d never existed or is no longer kept", version)
	case err != nil:
		return s, fmt.Errorf("read strategy: %w", err)
	}
	return s, nil
}

// parseVersion returns the query option version, 0 if the request has none.
func parseVersion(r *http.Request) (int64, error) {
	values, given := r.URL.Query()["version"]
	if !given {
		return 0, nil
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || n < 1 {
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "version must be a positive integer")
	}
	return n, nil
}

// decodeRestore reads {"version":N} and its optional ifVersion.
func decodeRestore(body []byte) (in *api.RestoreStrategyRequest, err error) {
	if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is not valid JSON")
	}
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); err != nil || in == nil {
		return nil, httpapi.Errorf(http.StatusUnprocessableEntity,
			`The body must be {"version":N} or {"version":N,"ifVersion":M}, and no other key`)
	}
	if in.Version < 1 {
		return nil, httpapi.Errorf(http.StatusUnprocessableEntity, "version must be a positive integer")
	}
	return in, checkIfVersion(in.IfVersion)
}
