package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/httpapi"
)

const (
	defaultSpread = time.Hour
	maxSpread     = 24 * time.Hour
)

// round is what Scheduler asks for: {"spread":"2h"}, which is how long the
// beginnings of the apps' jobs are spread over, for one "app", or for all but those
// "except"; nothing at all is every app in an hour.
type round struct {
	Spread *string  `json:"spread"`
	App    *string  `json:"app"`
	Except []string `json:"except"`
}

// nightly starts the round of the night. Whoever calls it should try again where
// it fails: what was started then stays as it is.
func (h handler) nightly(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	order, spread, err := decodeRound(body)
	if err != nil {
		return err
	}
	apps, err := h.Config.Apps(r.Context())
	if err != nil {
		return fmt.Errorf("start the nightly round: %w", err)
	}
	if apps, err = order.of(apps); err != nil {
		return err
	}
	started, left, err := h.Recompute.Nightly(r.Context(), apps, spread)
	if err := errors.Join(err, h.orderAudits(r.Context(), apps, spread), h.resume(r.Context(), order)); err != nil {
		return fmt.Errorf("start the nightly round: %w", err)
	}
	h.Log.LogAttrs(r.Context(), slog.LevelInfo, "nightly round started", slog.Int("apps", started), slog.Int("left out", left))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"started": started, "leftOut": left})
}

// resume orders again what jobs of other kinds wait for, in case it was lost.
func (h handler) resume(ctx context.Context, order round) error {
	if order.App != nil {
		return nil // the common round does
	}
	return errors.Join(h.Moves.Resume(ctx), h.Reenrich.Resume(ctx))
}

// of are the apps that the round is of.
func (o round) of(apps []string) ([]string, error) {
	if o.App != nil {
		if !slices.Contains(apps, *o.App) {
			return nil, httpapi.Errorf(http.StatusNotFound, "No app %q", *o.App)
		}
		return []string{*o.App}, nil
	}
	return slices.DeleteFunc(slices.Clone(apps), func(app string) bool { return slices.Contains(o.Except, app) }), nil
}

func decodeRound(body []byte) (round, time.Duration, error) {
	var order round
	if len(bytes.TrimSpace(body)) == 0 {
		return order, defaultSpread, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&order); err != nil {
		return order, 0, httpapi.Errorf(http.StatusUnprocessableEntity, `The body must be empty or {"spread":"2h"} with "app":"ID" or "except":["ID"]: %v`, err)
	}
	if order.App != nil && order.Except != nil {
		return order, 0, httpapi.Errorf(http.StatusUnprocessableEntity, "app and except cannot both be given")
	}
	if order.Spread == nil {
		return order, defaultSpread, nil
	}
	spread, err := time.ParseDuration(*order.Spread)
	if err != nil || spread < 0 || spread > maxSpread {
		return order, 0, httpapi.Errorf(http.StatusUnprocessableEntity, "spread must be a duration from 0s to %s", maxSpread)
	}
	return order, spread, nil
}
