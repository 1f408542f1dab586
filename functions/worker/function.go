// Package worker is the private function that runs tasks. Cloud Tasks calls it
// for purges of deleted users, refreshes at the end of write windows, audits, the end of
// imports, changes of numeric bands, and the jobs of recomputes, re-enrichments, migrations, crowd statistics, date
// rows, parts of segments and deletions of apps.
// Cloud Scheduler calls it to start the nightly round.
//
// A task may be delivered twice, late, or after its work is done: it then has
// no effect. The function keeps no data.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
	"github.com/affinityengine/affinity/shared/job/tasks/bands"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/job/tasks/refresh"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// maxBody is the maximum size of a task in bytes.
const maxBody = 100 << 10

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 10 * time.Minute

type handler struct{ Backends }

// New returns the function over its backends.
func New(b Backends) http.Handler {
	rt := b.Router(Timeout)
	h := handler{b}
	rt.Handle("POST "+purge.Path, h.purge)
	for _, k := range b.kinds() {
		h.register(rt, k.Core())
	}
	rt.Handle("POST "+segmentbuild.DeltaPath, h.delta)
	rt.Handle("POST "+segmentbuild.CleanPath, h.clean)
	rt.Handle("POST /nightly", h.nightly)
	rt.Handle("POST "+audit.Path, h.audit)
	rt.Handle("POST "+afterimport.Path, h.imported)
	rt.Handle("POST "+refresh.Path, h.refresh)
	rt.Handle("POST "+bands.Path, h.banded)
	return rt
}

// drop logs a task that can never run and answers 200, so that Cloud Tasks does
// not retry it.
func (h handler) drop(w http.ResponseWriter, r *http.Request, reason error) error {
	h.Log.LogAttrs(r.Context(), slog.LevelError, "task dropped", slog.String("task", r.Header.Get("X-CloudTasks-TaskName")), slog.Any("error", reason))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"dropped": reason.Error()})
}

func (h handler) purge(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	request, err := purge.Decode(body)
	if err != nil {
		return h.drop(w, r, err)
	}
	n, err := h.Profiles.Purge(r.Context(), request.App, request.User, time.UnixMilli(request.DeletedUntil))
	if err != nil {
		return fmt.Errorf("purge user: %w", err)
	}
	refused, err := h.Store.ForgetRefused(r.Context(), request.App, request.User)
	if err != nil {
		return fmt.Errorf("purge user: %w", err)
	}
	if err := h.forgetRecent(r.Context(), request); err != nil {
		return fmt.Errorf("purge user: %w", err)
	}
	if !request.Last {
		request.Last = true
		if err := purge.Enqueue(r.Context(), h.Queue, request); err != nil {
			return err
		}
	}
	h.Log.LogAttrs(r.Context(), slog.LevelInfo, "user purged", slog.String("app", request.App), slog.Int("events", n), slog.Int("refused", refused))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"purged": n, "refused": refused})
}

// forgetRecent removes the events of a user from the app's sample that are deleted, or of
// types that the user has opted out of.
func (h handler) forgetRecent(ctx context.Context, request purge.Request) error {
	states, err := h.Profiles.StatesOf(ctx, request.App, []string{request.User})
	if errors.Is(err, config.ErrNotFound) {
		return nil // the deletion of the app removes the sample
	}
	if err != nil {
		return err
	}
	state, known := states[request.User]
	return h.Store.ForgetRecent(ctx, request.App, request.User, func(e store.RecentEvent) bool {
		return !known || state.Excludes(e.Type, e.Time, e.Receipt)
	})
}
