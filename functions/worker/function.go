// Package worker is the private function that carries out what Cloud Tasks and
// Cloud Scheduler bring: purges of deleted users, recomputes, re-enrichments, and
// the nightly round. A task may come twice, late, or for something long done; it
// then has no effect. It keeps nothing of its own.
package worker

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/audit"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/purge"
)

// maxBody is what a task may carry.
const maxBody = 100 << 10

type handler struct{ Backends }

// New is the function over its backends.
func New(b Backends) http.Handler {
	rt := b.PrivateRouter()
	h := handler{b}
	rt.Handle("POST "+purge.Path, h.purge)
	h.mount(rt, b.Recompute.Runner)
	h.mount(rt, b.Reenrich.Runner)
	h.mount(rt, b.Moves.Runner)
	rt.Handle("POST /nightly", h.nightly)
	rt.Handle("POST "+audit.Path, h.audit)
	return rt
}

// drop answers a task that can never be carried out: trying again would not mend
// it, so it is answered as done, and told.
func (h handler) drop(w http.ResponseWriter, r *http.Request, reason error) error {
	h.Log.LogAttrs(r.Context(), slog.LevelError, "task dropped", slog.String("task", r.Header.Get("X-CloudTasks-TaskName")), slog.Any("error", reason))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"dropped": reason.Error()})
}

func (h handler) purge(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	order, err := purge.Decode(body)
	if err != nil {
		return h.drop(w, r, err)
	}
	n, err := h.Profiles.Purge(r.Context(), order.App, order.User, time.UnixMilli(order.DeletedUntil))
	if err != nil {
		return fmt.Errorf("purge user: %w", err)
	}
	h.Log.LogAttrs(r.Context(), slog.LevelInfo, "user purged", slog.String("app", order.App), slog.Int("events", n))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"purged": n})
}
