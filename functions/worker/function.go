// Package worker is the private function that carries out what Cloud Tasks
// brings: purges of deleted users. A task may come twice, late, or for something
// long done; it then has no effect. It keeps nothing of its own.
package worker

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/purge"
)

// maxBody is what a task may carry.
const maxBody = 100 << 10

func init() {
	functions.HTTP("Worker", backend.Function(backend.Need{}, New).ServeHTTP)
}

type worker struct{ *backend.Backends }

// New is the function over its backends.
func New(b *backend.Backends) http.Handler {
	rt := httpapi.NewRouter(b.Log)
	rt.Handle("POST "+purge.Path, worker{b}.purge)
	return rt
}

func (wk worker) purge(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	order, err := purge.Decode(body)
	if err != nil {
		// Trying again would not mend it, so the task must end: it is answered as
		// done, and told.
		wk.Log.LogAttrs(r.Context(), slog.LevelError, "task dropped", slog.String("task", r.Header.Get("X-CloudTasks-TaskName")), slog.Any("error", err))
		return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"dropped": err.Error()})
	}
	n, err := wk.Profiles.Purge(r.Context(), order.App, order.User, time.UnixMilli(order.DeletedUntil))
	if err != nil {
		return fmt.Errorf("purge user: %w", err)
	}
	wk.Log.LogAttrs(r.Context(), slog.LevelInfo, "user purged", slog.String("app", order.App), slog.Int("events", n))
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"purged": n})
}
