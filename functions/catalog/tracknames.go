package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// maxNamesBody is the size of the largest body that names types: the longest names fit.
const maxNamesBody = 100_000

// trackNames answers the types of events that the app has given names of track calls.
func (h handler) trackNames(w http.ResponseWriter, r *http.Request, appID string) error {
	app, err := h.Config.App(r.Context(), appID) // as of now
	if err != nil {
		return fmt.Errorf("read names of track calls: %w", err)
	}
	return writeNames(w, app.TrackNames)
}

// setTrackNames gives names types, or takes their types away.
func (h handler) setTrackNames(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	change, err := httpapi.Decode(w, r, maxNamesBody, decodeNames)
	if err != nil {
		return err
	}
	var all config.TrackNames
	err = auditlog.New(h.AuditLog()).Do(r.Context(), auditlog.Change{
		App: app.ID, Actor: key, Action: auditlog.SettingsSet, Detail: "trackNames " + namesDetail(change),
	}, func() (auditlog.End, error) {
		all, err = h.CachedConfig.SetTrackNames(r.Context(), app.ID, change)
		return auditlog.End{}, err
	})
	if err != nil {
		return fmt.Errorf("set names of track calls: %w", err)
	}
	return writeNames(w, all)
}

func writeNames(w http.ResponseWriter, names config.TrackNames) error {
	if names == nil {
		names = config.TrackNames{} // {} and never null
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.TrackNames{Names: names})
}

func decodeNames(body []byte) (config.TrackNames, error) {
	var sent struct {
		Names config.TrackNames `json:"names"`
	}
	if !json.Valid(body) {
		return nil, httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is not valid JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&sent); err != nil || sent.Names == nil {
		return nil, httpapi.Errorf(http.StatusUnprocessableEntity,
			`The body must be {"names":{"NAME":"TYPE"}}: each TYPE is view, click or conversion, or null to take it away`)
	}
	_, err := config.TrackNames(nil).With(sent.Names) // what a change breaks whatever the app has
	return sent.Names, err
}

// namesDetail is what the audit log says of a change of names.
func namesDetail(change config.TrackNames) string {
	parts := make([]string, 0, len(change))
	for _, name := range slices.Sorted(maps.Keys(change)) {
		parts = append(parts, name+"="+change[name])
	}
	return strings.Join(parts, ", ")
}
