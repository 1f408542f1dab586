package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/httpapi"
)

const (
	defaultSpread = time.Hour
	maxSpread     = 24 * time.Hour
)

// nightly starts the round of the night. Whoever calls it should try again where
// it fails: what was started then stays as it is.
func (wk worker) nightly(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	spread, err := decodeSpread(body)
	if err != nil {
		return err
	}
	started, left, err := wk.Recompute.Nightly(r.Context(), spread)
	if err := errors.Join(err, wk.orderAudits(r.Context(), spread)); err != nil {
		return fmt.Errorf("start the nightly round: %w", err)
	}
	wk.Log.LogAttrs(r.Context(), slog.LevelInfo, "nightly round started", slog.Int("apps", started), slog.Int("left out", left))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"started": started, "leftOut": left})
}

// decodeSpread reads {"spread":"2h"} or nothing at all.
func decodeSpread(body []byte) (time.Duration, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return defaultSpread, nil
	}
	var round struct {
		Spread *string `json:"spread"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&round); err != nil {
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, `The body must be empty or {"spread":"2h"}: %v`, err)
	}
	if round.Spread == nil {
		return defaultSpread, nil
	}
	spread, err := time.ParseDuration(*round.Spread)
	if err != nil || spread < 0 || spread > maxSpread {
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "spread must be a duration from 0s to %s", maxSpread)
	}
	return spread, nil
}
