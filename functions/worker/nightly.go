package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/tasks/night"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	defaultSpread = time.Hour
	maxSpread     = 2 * night.MaxAuditIn
)

// atOnce is how many tasks of a round are created at a time: 5,000 tasks of 20 ms each take
// less than two seconds.
const atOnce = 64

// round is the body of POST /nightly. The round enqueues one task for each app, and spreads
// the tasks evenly over Spread. It covers App if set, otherwise every app that is not in
// Except. An empty body covers all apps within an hour. The recomputes store stale profiles,
// or with Full all of them.
type round struct {
	Spread *string  `json:"spread"`
	App    *string  `json:"app"`
	Except []string `json:"except"`
	Full   bool     `json:"full"`
}

// nightly starts the nightly round. After an error, the caller may call it again: a queue
// takes the task of an app and a night once.
func (h handler) nightly(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	wanted, spread, err := decodeRound(body)
	if err != nil {
		return err
	}
	homes, err := wanted.homes(r.Context(), h.Config)
	if err == nil {
		err = h.enqueueNights(r.Context(), homes, spread, wanted.Full)
	}
	if err != nil {
		return fmt.Errorf("start the nightly round: %w", err)
	}
	h.Log.LogAttrs(r.Context(), slog.LevelInfo, "nightly round started", slog.Int("apps", len(homes)))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]int{"apps": len(homes)})
}

// homes returns the apps that the round is for, in a few requests for all of them. Among them
// are deleted apps whose ids are not free yet.
func (r round) homes(ctx context.Context, c *config.Store) ([]config.Home, error) {
	if r.App == nil {
		homes, err := c.Homes(ctx)
		return slices.DeleteFunc(homes, func(h config.Home) bool { return slices.Contains(r.Except, h.App) }), err
	}
	app, err := c.App(ctx, *r.App)
	if errors.Is(err, config.ErrNotFound) {
		return nil, httpapi.Errorf(http.StatusNotFound, "No app %q", *r.App)
	}
	return []config.Home{{App: app.ID, Region: app.Births()}}, err
}

// enqueueNights enqueues the task of each app. A fault of one does not stop the others.
func (h handler) enqueueNights(ctx context.Context, homes []config.Home, spread time.Duration, full bool) error {
	request := night.Request{Night: h.Now().UTC().Format(time.DateOnly), Full: full,
		AuditSeconds: int(spread.Seconds() / 2)}
	faults := make([]error, len(homes))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, home := range homes {
		g.Go(func() error {
			if faults[i] = ctx.Err(); faults[i] == nil {
				delay := spread / time.Duration(len(homes)) * time.Duration(i)
				faults[i] = h.enqueueNight(ctx, request, home, delay)
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in faults
	faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil })
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d apps have no task, the first because: %w", len(faults), len(homes), faults[0])
}

func (h handler) enqueueNight(ctx context.Context, r night.Request, home config.Home, delay time.Duration) error {
	r.App = home.App
	task, err := night.Task(r, cmp.Or(home.Region, h.Regions.First()), delay)
	if err != nil {
		return err
	}
	return h.Queue.Create(ctx, task)
}

// nightOf starts what the nightly round has for an app, and enqueues again the tasks that its
// unfinished jobs wait for, in case one was lost. After an error it is called again, and
// starts only what has not started yet. Of a deleted app it resumes the deletion.
func (h handler) nightOf(ctx context.Context, request night.Request, _ int) (night.Request, error) {
	_, err := h.Config.App(ctx, request.App)
	if errors.Is(err, config.ErrNotFound) {
		return request, h.Deletions.Resume(ctx, request.App)
	}
	if err != nil {
		return request, err
	}
	tonight := job.Night{Date: request.Night, Full: request.Full}
	var faults []error // one kind of jobs does not stop the others
	for _, k := range h.Kinds() {
		if due, ok := k.(job.Nightly); ok {
			faults = append(faults, due.Nightly(ctx, request.App, tonight))
		}
	}
	delay := time.Duration(request.AuditSeconds) * time.Second
	faults = append(faults, h.enqueueAudit(ctx, request.App, tonight, delay), job.Resume(ctx, request.App, h.Kinds()...))
	return request, errors.Join(faults...)
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
