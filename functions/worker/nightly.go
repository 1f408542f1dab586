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

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	defaultSpread = time.Hour
	maxSpread     = 24 * time.Hour
)

// round is the body of POST /nightly. The round starts what is due: recomputes, builds of
// crowd statistics and of segments, repairs of date rows, and re-enrichments of numeric
// bands. It spreads the starts evenly over Spread. It covers App if set, otherwise every
// app that is not in Except. An empty body covers all apps within an hour. The recomputes
// store stale profiles, or with Full all of them.
type round struct {
	Spread *string  `json:"spread"`
	App    *string  `json:"app"`
	Except []string `json:"except"`
	Full   bool     `json:"full"`
}

// nightly starts the nightly round. After an error, the caller may call it
// again: it starts only what has not started yet.
func (h handler) nightly(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	wanted, spread, err := decodeRound(body)
	if err != nil {
		return err
	}
	apps, err := h.Config.Apps(r.Context())
	if err != nil {
		return fmt.Errorf("start the nightly round: %w", err)
	}
	if apps, err = wanted.choose(apps); err != nil {
		return err
	}
	started, left, err := h.Recompute.StartNight(r.Context(), apps, spread, wanted.Full)
	faults := []error{err}
	for _, k := range h.kinds() {
		if due, ok := k.(job.Nightly); ok {
			faults = append(faults, due.Nightly(r.Context(), apps, spread))
		}
	}
	faults = append(faults, h.enqueueAudits(r.Context(), apps, spread), h.resume(r.Context(), wanted))
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("start the nightly round: %w", err)
	}
	h.Log.LogAttrs(r.Context(), slog.LevelInfo, "nightly round started", slog.Int("apps", started),
		slog.Int("leftOut", left))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"started": started, "leftOut": left})
}

// resume enqueues again the tasks that unfinished jobs wait for, in case one was lost.
func (h handler) resume(ctx context.Context, wanted round) error {
	if wanted.App != nil {
		return nil // the round of all apps does it
	}
	return job.Resume(ctx, h.kinds()...)
}

// choose returns those of apps that the round is for.
func (r round) choose(apps []string) ([]string, error) {
	if r.App != nil {
		if !slices.Contains(apps, *r.App) {
			return nil, httpapi.Errorf(http.StatusNotFound, "No app %q", *r.App)
		}
		return []string{*r.App}, nil
	}
	return slices.DeleteFunc(slices.Clone(apps), func(app string) bool { return slices.Contains(r.Except, app) }), nil
}

func decodeRound(body []byte) (round, time.Duration, error) {
	var wanted round
	if len(bytes.TrimSpace(body)) == 0 {
		return wanted, defaultSpread, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil {
		return wanted, 0, httpapi.Errorf(http.StatusUnprocessableEntity,
			`The body must be empty or {"spread":"2h"} with "app":"ID" or "except":["ID"], and "full":true: %v`, err)
	}
	if wanted.App != nil && wanted.Except != nil {
		return wanted, 0, httpapi.Errorf(http.StatusUnprocessableEntity, "app and except cannot both be given")
	}
	if wanted.Spread == nil {
		return wanted, defaultSpread, nil
	}
	spread, err := time.ParseDuration(*wanted.Spread)
	if err != nil || spread < 0 || spread > maxSpread {
		return wanted, 0, httpapi.Errorf(http.StatusUnprocessableEntity, "spread must be a duration from 0s to %s", maxSpread)
	}
	return wanted, spread, nil
}
